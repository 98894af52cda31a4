// Package config holds the server's settings and the parameters by which CONFIG reads and sets
// them.
//
// # Model
//
//	file, environment, flags -> GivenValues -> Settings <-> CONFIG GET, SET, REWRITE
//	                                             |
//	                                             +-> atomics, read at each use
//	                                             +-> storage.Settings -> Store.Configure
//
//	Parameter         one setting: name, default, help, and how to read and set its value
//	GivenValues       the values given at the start, and where; a later source takes precedence
//	Settings          the current values
//	Start             the part of Settings that is fixed at the start
//	ConnectionLimits  the part of Settings that connections read, shared by all of them
//	conffile          the syntax of the configuration file
//
// The table Parameters is the only list of settings: flags and their help, the names of environment
// variables, the directives of the configuration file, CONFIG and the documentation are made from
// it.
//
// # How to add a setting
//
//  1. table.go: add an entry to Parameters with its name (the one of Redis if Redis has the
//     setting), default, form and help, and a Value that reads, parses and sets it.
//  2. settings.go: add a field to Settings: an atomic if CONFIG SET can change it, otherwise a
//     field of Start.
//  3. If it is fixed at the start, use a Value without Set: fixedText, fixedInteger or fixedChoice
//     in parameter.go.
//
// CONFIG REWRITE and --check-config need nothing more.
//
// # Setting several parameters
//
// CONFIG SET changes all of its parameters or none. Parameter.Set only parses: it returns a
// function that applies the value, or an error with the text of Redis. The caller runs the
// functions after all values are parsed.
//
//	CONFIG SET timeout 10 maxmemory 1gb
//	     Set("10")  -> apply1, nil
//	     Set("1gb") -> apply2, nil
//	     apply1(); apply2()
//
// The parameters of TLS change together: their Value.TLS returns their field of TLSFiles, and the
// caller has the resulting files read before it runs any apply. So do bind, port and tls-port: the
// caller opens the resulting sockets first.
//
// # Invariants
//
//   - Every setting that can change is an atomic. No reader takes a lock, and none keeps a copy
//     beyond the operation at hand.
//   - A value in Settings was checked: readers do not check it again.
//   - Set accepts every value that Get returns.
//
// # Parameters of absent features
//
// Clients ask for some parameters of features that the server does not have. These have the value
// that means absence and refuse any other: an attempt to use replicas must not be answered with
// OK. The parameters hash-max-listpack-* and zset-max-listpack-* only change the
// replies of OBJECT ENCODING.
//
// # The configuration file
//
// It has the syntax and the directives of redis.conf. Directives that the server does not have are
// errors. CONFIG REWRITE writes only settings that have changed since the start: values from flags
// and the environment, passwords among them, are not written to the file, and its other lines stay
// as they are.
//
// # Left out on purpose
//
// Dir, appendonly and the addresses of HTTP and of the cluster are fixed at the start. A log that
// begins later would lack all earlier changes.
package config
