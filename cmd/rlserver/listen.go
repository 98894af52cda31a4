package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// listen opens all that the configuration names, or nothing.
func listen(c config) (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, ln := range listeners {
				ln.Close()
			}
			listeners = nil
		}
	}()
	if c.Port != 0 {
		if listeners, err = listenTCP(c); err != nil {
			return listeners, err
		}
	}
	if c.Unixsocket != "" {
		ln, err := listenUnix(c.Unixsocket, c.Unixsocketperm)
		if err != nil {
			return listeners, fmt.Errorf("cannot listen on %s: %w", c.Unixsocket, err)
		}
		listeners = append(listeners, ln)
	}
	return listeners, nil
}

func listenTCP(c config) (listeners []net.Listener, err error) {
	for _, address := range c.addresses() {
		host, optional := strings.CutPrefix(address, "-")
		network := "tcp"
		switch {
		case host == "*":
			host = ""
		case strings.Contains(host, ":"):
			network = "tcp6"
		}
		keepalive := net.ListenConfig{KeepAlive: c.keepalive()}
		ln, err := keepalive.Listen(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(c.Port)))
		if optional && absent(err) {
			continue
		}
		if err != nil {
			return listeners, fmt.Errorf("cannot listen on %s port %d: %w", host, c.Port, plain(err))
		}
		listeners = append(listeners, ln)
	}
	return listeners, nil
}

// addresses are what --bind names, in Redis' way too: separated by spaces.
func (c *config) addresses() (list []string) {
	for _, word := range c.Bind {
		list = append(list, strings.Fields(word)...)
	}
	return list
}

// keepalive turns seconds into what net.ListenConfig takes, where 0 is its default and less than 0 none.
func (c *config) keepalive() time.Duration {
	if c.TcpKeepalive == 0 {
		return -1
	}
	return time.Duration(c.TcpKeepalive) * time.Second
}

// absent tells whether an address is one that this machine lacks.
func absent(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EPROTONOSUPPORT)
}

// plain leaves only the system's own words of a network error.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return err
}

// listenUnix takes the place of a socket that no server answers on, but of nothing else.
func listenUnix(path, mode string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, errors.New("there is something that is not a socket")
		}
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, errors.New("a server is listening there")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, plain(err)
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
