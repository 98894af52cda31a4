package logins

import "net/netip"

// Source is where a client comes from: its address, as far as one party can choose it freely. The
// zero value is the Unix socket, and other connections without an address.
type Source struct{ network netip.Prefix }

// loopback is one source: a client on this machine can use any of its addresses.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// SourceOf returns the source of a client by the text of its address and port, such as
// net.Conn.RemoteAddr().String() returns it.
func SourceOf(address string) Source { return sourceOf(ipOf(address)) }

// ipOf returns the address of a client; the zero value if it has none.
func ipOf(address string) netip.Addr {
	at, _ := netip.ParseAddrPort(address)
	return at.Addr().Unmap().WithZone("")
}

func sourceOf(ip netip.Addr) Source {
	bits := ip.BitLen()
	switch {
	case !ip.IsValid():
		return Source{}
	case loopback.Contains(ip):
		return Source{loopback}
	case ip.Is6() && !ip.IsLoopback():
		bits = 64 // usually the network of one machine
	}
	return Source{netip.PrefixFrom(ip, bits).Masked()}
}

// Local reports whether the source is this machine.
func (s Source) Local() bool { return !s.network.IsValid() || s.network.Addr().IsLoopback() }

// wider returns the network of many sources, usually that of one provider: a /16 of IPv4, a /32 of
// IPv6.
func (s Source) wider() Source {
	if !s.network.IsValid() {
		return s
	}
	bits := 16
	if s.network.Addr().Is6() {
		bits = 32
	}
	return Source{netip.PrefixFrom(s.network.Addr(), bits).Masked()}
}
