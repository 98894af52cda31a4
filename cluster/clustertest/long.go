package clustertest

import "testing"

// Long leaves a test to make check: make test, which runs with -short, takes less than 4 minutes.
func Long(t testing.TB) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
}
