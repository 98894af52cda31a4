// Package commandtest runs commands in tests. A Runner runs handlers without a server and without a
// connection; a test imports the package of the handlers, which registers them. Parts, Client and
// Bubble are for tests through connections to a server, which package resptest starts.
package commandtest
