package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
)

// Unix listens on a Unix socket with permissions in octal; empty: the umask decides. It replaces a
// stale socket, but no other file.
func Unix(path, mode string) (net.Listener, error) {
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, systemError(err)
	}
	if mode != "" {
		bits, err := strconv.ParseUint(mode, 8, 9)
		if err == nil {
			err = os.Chmod(path, fs.FileMode(bits))
		}
		if err != nil {
			ln.Close()
			return nil, fmt.Errorf("permissions %s: %w", mode, err)
		}
	}
	return ln, nil
}

// removeStaleSocket removes a socket that no server listens on, which an orderly stop would have
// removed. It is an error if the path is anything else.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("the file is not a socket")
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return errors.New("a server is listening there")
	}
	return os.Remove(path)
}
