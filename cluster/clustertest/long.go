package clustertest

import "testing"

// Long leaves a test to make check: make test, which runs with -short, is to take a few minutes.
func Long(t testing.TB) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
}
