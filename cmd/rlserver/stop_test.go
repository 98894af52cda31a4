package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The exit code is 1 if the last snapshot fails, because changes are lost.
func TestFailedLastSnapshotIsAnError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o750))
	p := start(t, "--dir", dir, "--appendonly", "no", "--save", "900 1")
	conn := p.connect()
	fmt.Fprint(conn, "SET k v\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", line)
	require.NoError(t, os.RemoveAll(dir))
	p.Process.Signal(syscall.SIGTERM)
	require.Error(t, p.waitForExit())
	assert.Equal(t, 1, p.ProcessState.ExitCode())
	assert.Contains(t, p.stderr.String(),
		"rlserver: the last snapshot could not be taken, and changes since the one before are lost: ")
}
