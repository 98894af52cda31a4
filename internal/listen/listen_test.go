package listen

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		address, network, hostPort string
		optional                   bool
	}{
		{"127.0.0.1", "tcp4", "127.0.0.1:1", false},
		{"0.0.0.0", "tcp4", "0.0.0.0:1", false},
		{"::1", "tcp6", "[::1]:1", false},
		{"-::1", "tcp6", "[::1]:1", true},
		{"*", "tcp4", "0.0.0.0:1", false},
		{"-::*", "tcp6", "[::]:1", true},
		{"localhost", "tcp", "localhost:1", false},
	} {
		assert.Equal(t, place{test.network, test.hostPort, 1, test.optional}, parse(test.address, 1), test.address)
	}
}

// The container image binds the wildcard addresses of IPv4 and IPv6, two sockets on one port.
func TestIPv4AndIPv6WildcardsShareAPort(t *testing.T) {
	for range 10 {
		free, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		port := free.Addr().(*net.TCPAddr).Port
		ipv6, taken := net.Listen("tcp6", net.JoinHostPort("::", strconv.Itoa(port)))
		require.NoError(t, free.Close())
		if taken != nil && !missing(taken) {
			continue // the port is in use
		}
		want := 1
		if taken == nil {
			require.NoError(t, ipv6.Close())
			want = 2
		}
		listeners, err := TCP([]string{"*", "-::*"}, port, "--bind")
		CloseAll(listeners)
		require.NoError(t, err)
		assert.Len(t, listeners, want)
		return
	}
	t.Fatal("no port is free")
}

// freePorts returns ports that are free on all addresses of IPv4.
func freePorts(t *testing.T, n int) (ports []int) {
	for range n {
		ln, err := net.Listen("tcp4", ":0")
		require.NoError(t, err)
		defer ln.Close()
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// reached returns which of some ports accept connections at addresses.
func reached(ports []int, addresses ...string) (list []string) {
	for i, port := range ports {
		for _, address := range addresses {
			conn, err := net.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
			if err == nil {
				conn.Close()
				list = append(list, strconv.Itoa(i)+" "+address)
			}
		}
	}
	return list
}

const one, two, three, absent = "127.0.0.1", "127.0.0.2", "127.0.0.3", "192.0.2.1"

// TestChanges changes the addresses and ports of a server. What both have stays open, and after an
// error everything is as before.
func TestChanges(t *testing.T) {
	ports := freePorts(t, 3)
	taken, err := net.Listen("tcp4", net.JoinHostPort(one, strconv.Itoa(ports[2])))
	require.NoError(t, err)
	defer taken.Close()
	s, err := Open(Ports{Bind: []string{one}, Port: ports[0]})
	require.NoError(t, err)
	defer func() { CloseAll(s.All()) }()
	for _, step := range []struct {
		bind           []string
		port, tls      int // index in ports, plus 1
		fault          error
		open           []string
		opened, closed int
	}{
		{bind: []string{one, two}, port: 1, open: []string{"0 " + one, "0 " + two}, opened: 1},
		{bind: []string{one, two}, port: 2, open: []string{"1 " + one, "1 " + two}, opened: 2, closed: 2},
		{bind: []string{one, two}, port: 3, fault: syscall.EADDRINUSE, open: []string{"1 " + one, "1 " + two}},
		{bind: []string{two, one, one}, port: 2, fault: syscall.EADDRINUSE, open: []string{"1 " + one, "1 " + two}},
		{bind: []string{one, absent}, port: 1, fault: syscall.EADDRNOTAVAIL, open: []string{"1 " + one, "1 " + two}},
		{bind: []string{"-" + absent, "-" + two}, port: 2, open: []string{"1 " + two}, closed: 1},
		{bind: []string{"*"}, port: 2, open: []string{"1 " + one, "1 " + two, "1 " + three}, opened: 1, closed: 1},
		{bind: []string{one, absent}, port: 2, fault: syscall.EADDRNOTAVAIL,
			open: []string{"1 " + one, "1 " + two, "1 " + three}, opened: 1, closed: 1},
		{bind: []string{three}, port: 2, tls: 1, open: []string{"0 " + three, "1 " + three}, opened: 2, closed: 1},
		{bind: []string{three}, port: 1, tls: 2, open: []string{"0 " + three, "1 " + three}, opened: 2, closed: 2},
		{port: 1},
		{bind: []string{one}},
		{bind: []string{one}, port: 1, open: []string{"0 " + one}, opened: 1},
	} {
		all := append([]int{0}, ports...)
		c := s.Change(context.Background(), Ports{Bind: step.bind, Port: all[step.port], TLSPort: all[step.tls]})
		require.ErrorIs(t, c.Err, step.fault, "%+v", step)
		end := c.Commit
		if c.Err != nil {
			end = func() (opened, closed []Socket) {
				opened, closed, err := c.Undo()
				require.NoError(t, err)
				return opened, closed
			}
		}
		opened, closed := end()
		require.Equal(t, step.open, reached(ports[:2], one, two, three), "%+v", step)
		if step.open != nil {
			require.Equal(t, []int{step.opened, step.closed}, []int{len(opened), len(closed)}, "%+v", step)
			require.Len(t, s.All(), len(s.open))
		}
	}
}

func TestOpenNeedsAnAddressOfEachPort(t *testing.T) {
	ports := freePorts(t, 2)
	_, err := Open(Ports{Bind: []string{"-" + absent}, Port: ports[0]})
	require.EqualError(t, err, "cannot listen: this machine has none of the addresses of --bind")
	_, err = Open(Ports{Bind: []string{one, absent}, Port: ports[0], TLSPort: ports[1]})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.Empty(t, reached(ports, one))
	s, err := Open(Ports{Port: ports[0]})
	require.NoError(t, err)
	require.Empty(t, s.All())
}
