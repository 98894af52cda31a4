package resp

// The families of commands. Each package adds its entries to command.Table when it is imported,
// and nothing here calls it by name: a family that is missing in this list does not exist.
import (
	_ "rlserver/resp/commands/clustering"
	_ "rlserver/resp/commands/diagnose"
	_ "rlserver/resp/commands/hashes"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/limits"
	_ "rlserver/resp/commands/server"
	_ "rlserver/resp/commands/str"
	_ "rlserver/resp/commands/users"
	_ "rlserver/resp/commands/zsets"
)
