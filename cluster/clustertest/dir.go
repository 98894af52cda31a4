package clustertest

import (
	"os"
	"syscall"
	"testing"
)

// memory is a file system in memory that Linux machines have.
const memory = "/dev/shm"

// enough is how many free bytes the memory must have: each replica of a group allocates 8 MB when
// it begins, and several tests run at once.
const enough = 2 << 30

// Dir returns an empty folder that is removed when the test ends. It is in memory if there is
// enough of it: terms and votes are synced to disk whatever the settings, and on a disk that others
// write to as well, a dozen groups take many seconds to begin.
func Dir(t testing.TB) string {
	t.Helper()
	var free syscall.Statfs_t
	if syscall.Statfs(memory, &free) != nil || free.Bavail*uint64(free.Bsize) < enough {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "rlserver-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
