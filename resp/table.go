package resp

// The families of commands. Each package adds its entries to command.Table when it is imported. A
// package that is missing from this list is not part of the server.
import (
	_ "rlserver/resp/commands/clustering"
	_ "rlserver/resp/commands/diagnose"
	_ "rlserver/resp/commands/hashes"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/limits"
	_ "rlserver/resp/commands/lists"
	_ "rlserver/resp/commands/pubsub"
	_ "rlserver/resp/commands/scripting"
	_ "rlserver/resp/commands/server"
	_ "rlserver/resp/commands/sets"
	_ "rlserver/resp/commands/str"
	_ "rlserver/resp/commands/users"
	_ "rlserver/resp/commands/zsets"
)
