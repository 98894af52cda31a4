package listen

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that accepts nobody any more is not taken for one that has died.
func TestTheSocketOfAServerThatHangsStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 0))
	for {
		waiting, err := net.Dial("unix", path)
		if err != nil {
			require.ErrorIs(t, err, syscall.EAGAIN)
			break
		}
		defer waiting.Close()
	}
	_, err = Unix(path, "")
	assert.EqualError(t, err, "another server may be using it: resource temporarily unavailable")
	assert.FileExists(t, path)
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())

	ln, err := Unix(path, "600")
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
	_, err = Unix(path, "")
	assert.EqualError(t, err, "a server is listening there")
	require.NoError(t, ln.Close())
	assert.NoFileExists(t, path)
}

// A server that stops leaves the socket of the one that has taken its place.
func TestTheSocketOfAnotherServerStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Unix(path, "")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	second, err := Unix(path, "")
	require.NoError(t, err)
	require.NoError(t, first.Close())
	assert.FileExists(t, path)
	require.NoError(t, second.Close())
	assert.NoFileExists(t, path)

	third, err := Unix(path, "")
	require.NoError(t, err)
	second.Close()
	assert.FileExists(t, path, "closed twice")
	require.NoError(t, third.Close())
}
