package rule

import (
	"bytes"
	"net/netip"
	"strconv"
	"unsafe"
)

// Networks says as what a policy counts ids that are IP addresses: as their networks of so many
// bits, or as they are. The zero value leaves all ids as they are.
type Networks struct {
	IP4, IP6 PrefixLength
}

// PrefixLength is the length of a network's prefix in bits plus 1; 0: addresses are no networks.
type PrefixLength uint8

// Bits returns the length; ok is false if addresses are no networks.
func (p PrefixLength) Bits() (bits int, ok bool) { return int(p) - 1, p > 0 }

const (
	longestIP4 = 32
	longestIP6 = 128
)

func (n Networks) words() (words []string) {
	for _, each := range []struct {
		word   string
		length PrefixLength
	}{{"IP4", n.IP4}, {"IP6", n.IP6}} {
		if bits, ok := each.length.Bits(); ok {
			words = append(words, each.word, strconv.Itoa(bits))
		}
	}
	return words
}

// Append appends the id under which a caller is counted: its network, as 10.1.2.0/24. One of full
// length is written as the address. An address of a kind for which there is no length is appended
// as it was sent.
func (n Networks) Append(b []byte, id []byte, address netip.Addr) []byte {
	length := n.IP6
	if address.Is4() {
		length = n.IP4
	}
	bits, ok := length.Bits()
	switch {
	case !ok:
		return append(b, id...)
	case bits == address.BitLen():
		return address.AppendTo(b)
	}
	network, err := address.Prefix(bits)
	if err != nil {
		panic(err) // the length is in range, and there is no zone
	}
	return network.AppendTo(b)
}

// maxAddress is the longest text that is taken for an address, in bytes: a zone has any length.
const maxAddress = 128

// Address returns the IP address that an id is, as proxies and logs write it: 10.1.2.3,
// 10.1.2.3:443, 2001:db8::1, [2001:db8::1]:443, [2001:db8::1], fe80::1%eth0. A port and a zone are
// dropped, and ::ffff:10.1.2.3 is 10.1.2.3. ok is false for any other id.
func Address(id []byte) (address netip.Addr, ok bool) {
	if !resemblesAddress(id) {
		return netip.Addr{}, false
	}
	host, port := id, []byte(nil)
	switch {
	case id[0] == '[':
		end := bytes.LastIndexByte(id, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		host, port = id[1:end], id[end+1:]
	case bytes.IndexByte(id, '.') >= 0 && bytes.Count(id, []byte{':'}) == 1:
		colon := bytes.IndexByte(id, ':')
		host, port = id[:colon], id[colon:]
	}
	host, zone, zoned := bytes.Cut(host, []byte{'%'})
	if len(host) == 0 || zoned && len(zone) == 0 || !isPort(port) {
		return netip.Addr{}, false
	}
	// the text does not outlive the call: an address without a zone does not refer to it
	address, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(host), len(host)))
	if err != nil || zoned && address.Is4() {
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}

// resemblesAddress rejects nearly all other ids quickly.
func resemblesAddress(id []byte) bool {
	separated := false
	for i, c := range id {
		switch {
		case c == '.', c == ':':
			separated = true
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		case c == '[' && i == 0, c == ']' && id[0] == '[':
		case c == '%':
			return separated && len(id) <= maxAddress
		default:
			return false
		}
	}
	return separated && len(id) <= maxAddress
}

// isPort reports whether a text is a colon and a port, or empty.
func isPort(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	if text[0] != ':' || len(text) < 2 || len(text) > len(":65535") {
		return false
	}
	n := 0
	for _, c := range text[1:] {
		if c < '0' || c > '9' {
			return false
		}
		n = 10*n + int(c-'0')
	}
	return n <= 65535
}
