package resp

// The families of commands. Each adds its entries to the command table.
import (
	_ "rlserver/resp/commands/hashes"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/limits"
	_ "rlserver/resp/commands/str"
	_ "rlserver/resp/commands/zsets"
)
