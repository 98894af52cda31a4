// Package server has the commands about the server as a whole:
//
//	INFO, MEMORY            what it counts and measures: command.Figures
//	CONFIG                  its settings; resp puts changes into force
//	SAVE, BGSAVE, LASTSAVE  snapshots, by storage.Store
//	DEBUG                   what tests of Redis need
//	SCRIPT, MODULE, ROLE... what programs ask of features that this server lacks
//
// Handlers reach the server by command.Env, and the connection by Call.Conn.
package server
