// Package deploy tests the files in this folder. It is a module of its own, so that the server does
// not depend on what the tests need.
package deploy
