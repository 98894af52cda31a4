package main

import (
	"fmt"
	"net"

	"rlserver/internal/listen"
	"rlserver/resp/config"
)

// listener is a socket that clients connect to.
type listener struct {
	net.Listener
	tls   bool // its clients speak TLS
	proxy bool // the calls of its clients are passed on
}

// openListeners opens all configured listeners. Those of the ports for clients are also returned as
// sockets. After an error none is open.
func openListeners(s *config.Settings) (sockets *listen.Sockets, listeners []listener, err error) {
	ports, start := s.Ports(), &s.Start
	sockets, err = listen.Open(ports)
	if err != nil {
		return nil, nil, err
	}
	for _, socket := range sockets.All() {
		listeners = append(listeners, listener{Listener: socket, tls: socket.TLS})
	}
	defer func() {
		if err != nil {
			listen.CloseAll(listeners)
			listeners = nil
		}
	}()
	if port := start.Cluster.ProxyPort; port != 0 {
		opened, err := listen.TCP(ports.Bind, port, "--bind")
		if err != nil {
			return nil, listeners, err
		}
		for _, ln := range opened {
			listeners = append(listeners, listener{ln, ports.Port == 0, true})
		}
	}
	if start.UnixSocket != "" {
		ln, err := listen.Unix(start.UnixSocket, start.UnixSocketPerm)
		if err != nil {
			return nil, listeners, fmt.Errorf("cannot listen on %s: %w", start.UnixSocket, err)
		}
		listeners = append(listeners, listener{Listener: ln})
	}
	return sockets, listeners, nil
}
