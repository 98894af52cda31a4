package smallfile

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
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
