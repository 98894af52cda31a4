// Package resptest starts servers in tests, as net/http/httptest does: tests of a family of
// commands call it over connections, and so does whatever else needs transactions, pipelines or
// several clients. Tests in package resp itself, which cannot import this, have their own.
package resptest
