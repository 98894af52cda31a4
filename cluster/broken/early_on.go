//go:build broken_early

package broken

const Early = true
