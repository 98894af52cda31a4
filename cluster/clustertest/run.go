package clustertest

import (
	"bytes"
	"flag"
	"os"
	"strconv"
	"sync"
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

// Long leaves a test to make check: make test, which runs with -short, is to take a few minutes.
func Long(t testing.TB) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
}

// atOnce is how many tests run at once. They wait most of their time, for elections and for other
// nodes, so that a processor serves several.
const atOnce = 4

// Main runs the tests of a package, for its TestMain. The flag -parallel has the last word.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Text is a buffer for the output of a process that can be read while the process runs. The zero
// value is empty.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String returns all that was written.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
