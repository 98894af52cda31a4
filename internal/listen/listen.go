package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// place is the arguments of net.Listen for an address and a port.
type place struct {
	network, hostPort string
	port              int
	optional          bool // it is skipped if this machine does not have the address
}

// parse returns the place of an address of bind. * means all addresses of IPv4 and ::* those of
// IPv6. An address with the prefix - is optional.
func parse(address string, port int) place {
	host, optional := strings.CutPrefix(address, "-")
	network := "tcp"
	switch host {
	case "*":
		host = "0.0.0.0" // only IPv4, as in Redis: ::* is a separate socket for IPv6
	case "::*":
		host = "::"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		network = "tcp4"
		if ip.Is6() {
			network = "tcp6"
		}
	}
	return place{network, net.JoinHostPort(host, strconv.Itoa(port)), port, optional}
}

// sameAs reports whether two places are the same, optional or not.
func (p place) sameAs(q place) bool { return p.network == q.network && p.hostPort == q.hostPort }

// open listens at a place. It returns nil if the place is optional and this machine lacks it.
func (p place) open(ctx context.Context) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1} // the server sets it for each connection
	ln, err := lc.Listen(ctx, p.network, p.hostPort)
	if err == nil {
		return ln, nil
	}
	if p.optional && missing(err) {
		return nil, nil
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", p.hostPort, systemError(err))
}

// TCP listens on the addresses of a setting, whose name errors contain. After an error no socket is
// open.
func TCP(addresses []string, port int, setting string) (listeners []net.Listener, err error) {
	for _, address := range addresses {
		ln, err := parse(address, port).open(context.Background())
		if err != nil {
			CloseAll(listeners)
			return nil, err
		}
		if ln != nil {
			listeners = append(listeners, ln)
		}
	}
	if len(listeners) == 0 {
		return nil, errNoAddress(setting)
	}
	return listeners, nil
}

func errNoAddress(setting string) error {
	return errors.New("cannot listen: this machine has none of the addresses of " + setting)
}

// CloseAll closes listeners.
func CloseAll[L io.Closer](listeners []L) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// missing reports whether the reason of an error is that this machine does not have an address.
func missing(err error) bool {
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
