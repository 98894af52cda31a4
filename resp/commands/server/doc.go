// Package server has the commands about the server as a whole:
//
//	INFO, MEMORY            what it counts and measures: command.Figures
//	CONFIG                  its settings; package resp applies changes
//	SAVE, BGSAVE, LASTSAVE  snapshots, by storage.Store
//	DEBUG                   subcommands that tests of Redis need
//	SCRIPT, MODULE, ROLE... replies about features that this server lacks
//
// Handlers reach the server by command.Env, and the connection by Call.Conn.
package server
