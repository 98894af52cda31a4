package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"

	"rlserver/resp/config"
)

// listener is a socket that clients connect to.
type listener struct {
	net.Listener
	tls   bool // its clients speak TLS
	proxy bool // the calls of its clients are passed on
}

// listen opens all configured listeners. After an error none is open.
func listen(start *config.Defaults) (listeners []listener, err error) {
	defer func() {
		if err != nil {
			closeAll(listeners)
			listeners = nil
		}
	}()
	for _, on := range []struct {
		port       int
		tls, proxy bool
	}{
		{port: start.Port}, {port: start.TLSPort, tls: true},
		{port: start.Cluster.ProxyPort, tls: start.Port == 0, proxy: true},
	} {
		if on.port == 0 {
			continue
		}
		opened, err := listenTCP(start.Bind, on.port, "--bind")
		for _, ln := range opened {
			listeners = append(listeners, listener{ln, on.tls, on.proxy})
		}
		if err != nil {
			return listeners, err
		}
	}
	if start.UnixSocket != "" {
		ln, err := listenUnix(start.UnixSocket, start.UnixSocketPerm)
		if err != nil {
			return listeners, fmt.Errorf("cannot listen on %s: %w", start.UnixSocket, err)
		}
		listeners = append(listeners, listener{Listener: ln})
	}
	return listeners, nil
}

func closeAll[L io.Closer](listeners []L) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// listenTCP listens on the addresses of a setting.
func listenTCP(addresses []string, port int, setting string) (listeners []net.Listener, err error) {
	lc := net.ListenConfig{KeepAlive: -1} // the server sets it for each connection
	for _, address := range addresses {
		network, hostPort, optional := listenAddress(address, port)
		ln, err := lc.Listen(context.Background(), network, hostPort)
		if optional && addressMissing(err) {
			continue
		}
		if err != nil {
			return listeners, fmt.Errorf("cannot listen on %s: %w", hostPort, systemError(err))
		}
		listeners = append(listeners, ln)
	}
	if len(listeners) == 0 {
		return nil, errors.New("cannot listen: this machine has none of the addresses of " + setting)
	}
	return listeners, nil
}

// addressMissing reports whether the reason of an error is that this machine does not have an
// address.
func addressMissing(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) ||
		errors.Is(err, syscall.EPROTONOSUPPORT)
}

// systemError returns the error of the operating system in a network error.
func systemError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return err
}

// listenUnix listens on a Unix socket. It replaces a stale socket, but no other file.
func listenUnix(path, mode string) (net.Listener, error) {
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
