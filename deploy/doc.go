// Package deploy tests the files in this folder. It is a separate module, so that the server does
// not depend on the modules that the tests need.
package deploy
