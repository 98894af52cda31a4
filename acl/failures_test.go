package acl

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFailuresKeepALimitedNumberOfAddresses(t *testing.T) {
	var f Failures
	address := func(i int) net.Addr {
		return &net.TCPAddr{IP: net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), Port: 1}
	}
	for i := range 3 * mostSources {
		require.Zero(t, f.Add(address(i), 0))
	}
	require.Len(t, f.sources, mostSources)
	require.Equal(t, 1, f.Add(address(3*mostSources-1), 0))
}

func TestUnixSocketsHaveNoAddress(t *testing.T) {
	var f Failures
	for range 2 {
		require.Zero(t, f.Add(&net.UnixAddr{Name: "/run/s"}, 0))
	}
	f.Remove(&net.UnixAddr{Name: "/run/s"})
	require.Empty(t, f.sources)
}
