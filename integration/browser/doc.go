// Package browser tests the page of the server in headless Chromium. It is a separate module, so
// that the server does not depend on the modules that control a browser: `make page` runs it, and
// `make test` does not.
package browser
