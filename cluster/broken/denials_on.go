//go:build broken_denials

package broken

const Denials = true
