//go:build !race

package engine

// manyKeys is how many keys the tests of large keyspaces have.
const manyKeys = 1_000_000
