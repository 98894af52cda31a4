package smallfile

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadAcceptsOnlyRegularFiles(t *testing.T) {
	const limit = 1 << 20
	dir := t.TempDir()
	pipe, socket, large, link := dir+"/pipe", dir+"/socket", dir+"/large", dir+"/link"
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ln, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer ln.Close()
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, limit+1))
	require.NoError(t, os.Symlink(pipe, link))
	for path, want := range map[string]string{
		pipe:        pipe + " must be a regular file, but is a named pipe",
		link:        link + " must be a regular file, but is a named pipe",
		dir:         dir + " must be a regular file, but is a directory",
		socket:      socket + " must be a regular file, but is a socket",
		"/dev/zero": "/dev/zero must be a regular file, but is a device",
		large:       large + " is too large: at most 1048576 bytes are read",
		dir + "/no": "open " + dir + "/no: no such file or directory",
	} {
		_, err := Read(path, limit)
		assert.EqualError(t, err, want)
	}
	text, err := Read(large, limit+1)
	require.NoError(t, err)
	assert.Len(t, text, limit+1)
}

func TestWriteReplacesAFileAndKeepsItsMode(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("a.conf", []byte("port 1\n"), 0o600))
	require.NoError(t, os.Chmod("a.conf", 0o640))
	require.NoError(t, os.Symlink("a.conf", "link.conf"))
	require.NoError(t, Write("link.conf", "port 2\n"))
	text, err := os.ReadFile("a.conf")
	require.NoError(t, err)
	assert.Equal(t, "port 2\n", string(text))
	info, err := os.Lstat("link.conf")
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type())
	info, err = os.Stat("a.conf")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())

	require.NoError(t, Write("new.conf", "port 3\n"))
	info, err = os.Stat("new.conf")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.Mkdir("dir", 0o700))
	require.NoError(t, os.WriteFile("dir/keep", nil, 0o600))
	assert.Error(t, Write("dir", "x"))
	left, err := filepath.Glob(".*.tmp-*")
	require.NoError(t, err)
	assert.Empty(t, left, "a failed write leaves no temporary file")
}
