// Package config holds the server's settings and the parameters by which CONFIG reads and sets
// them.
//
// # Model
//
//	flags -> Defaults -> NewSettings -> Settings <- Parameter.Get, Set <- CONFIG GET, CONFIG SET
//	                                      |
//	                                      +-> atomics, read by their users at each use
//	                                      +-> Settings.Store -> StoreSettings -> Store.Configure
//
//	Defaults          what the server starts with, in Go's types, checked by the caller
//	Settings          what is in force now
//	ConnectionLimits  the part of Settings that connections read, shared by all of them
//	Parameter         name, alias, and how to read and set one setting in Redis' spelling
//	StoreSettings     the store's part of Settings; StoreStatus is its status for INFO
//
// The table Parameters is the only list of parameters: CONFIG GET, CONFIG SET and the documentation
// are made from it. A new setting is a field of Settings, an entry in the table and a flag.
//
// # Setting several parameters
//
// CONFIG SET changes all of its parameters or none. Parameter.Set only parses: it returns a
// function that puts the value into force, or an error in Redis' words. The caller runs the
// functions after all values are parsed.
//
//	CONFIG SET timeout 10 maxmemory 1gb
//	     Set("10")  -> apply1, nil
//	     Set("1gb") -> apply2, nil
//	     apply1(); apply2()
//
// # Invariants
//
//   - Every setting that can change is an atomic. No reader takes a lock, and none keeps a copy
//     beyond the operation at hand.
//   - A value in Settings was checked: readers do not check it again.
//   - What Get returns, Set takes.
//
// # Parameters of absent features
//
// Clients ask for some parameters of features that the server does not have. These have the value
// that says so and refuse any other: an operator who enables keyspace notifications must not be
// answered OK. The parameters hash-max-listpack-* and zset-max-listpack-* change OBJECT ENCODING
// alone.
//
// # Left out on purpose
//
// There is no configuration file, so CONFIG REWRITE returns an error: flags configure a start.
// Dir, appendonly and the addresses are fixed at the start. A log that begins later would lack all
// earlier changes.
package config
