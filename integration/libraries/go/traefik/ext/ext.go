// Package ext takes the place of traefik's package of this name, which traefik's module does not
// contain.
package ext

// HTTP is no part of the limiter.
type HTTP struct{}

// Router is no part of the limiter.
type Router struct{}
