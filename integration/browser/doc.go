// Package browser tests the page of the server in headless Chromium. It is a module of its own, so
// that the server's module does not depend on what drives a browser: `make page` runs it, and
// `make test` does not.
package browser
