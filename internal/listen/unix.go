package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Unix listens on a Unix socket with permissions in octal; empty: the umask decides. It replaces a
// stale socket, but no other file.
func Unix(path, mode string) (net.Listener, error) {
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	opened, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, systemError(err)
	}
	opened.SetUnlinkOnClose(false)
	ln := &unixListener{UnixListener: opened}
	file, _ := os.Lstat(path)
	ln.remove = sync.OnceFunc(func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(file, now) {
			os.Remove(path)
		}
	})
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

// unixListener removes its file when it is closed, unless the file is another by then.
type unixListener struct {
	*net.UnixListener
	remove func()
}

// Close implements net.Listener.
func (l *unixListener) Close() error {
	l.remove()
	return l.UnixListener.Close()
}

// removeStaleSocket removes a socket that no server listens on, which an orderly stop would have
// removed. It is an error if the path is anything else. A server that hangs refuses no connection.
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
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return errors.New("a server is listening there")
	case errors.Is(err, syscall.ECONNREFUSED):
		err = os.Remove(path)
	case !errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("another server may be using it: %w", systemError(err))
	}
	if errors.Is(err, fs.ErrNotExist) { // another process has removed it
		return nil
	}
	return err
}
