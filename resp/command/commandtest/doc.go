// Package commandtest runs the handlers of commands for tests, without a server and without a
// connection. A test imports the package of the handlers, which registers them.
package commandtest
