package rule

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddressesCountAsTheirNetworks(t *testing.T) {
	for _, test := range []struct {
		definition string
		id, want   string
	}{
		{"IP4 24 IP6 64", "10.1.2.3", "10.1.2.0/24"},
		{"IP4 24 IP6 64", "10.1.2.3:443", "10.1.2.0/24"},
		{"IP4 24 IP6 64", "[10.1.2.3]:443", "10.1.2.0/24"},
		{"IP4 24 IP6 64", "2001:DB8::1", "2001:db8::/64"},
		{"IP4 24 IP6 64", "[2001:db8::1]", "2001:db8::/64"},
		{"IP4 24 IP6 64", "[2001:db8:0:0:8::1]:65535", "2001:db8::/64"},
		{"IP4 24 IP6 64", "fe80::1%eth0", "fe80::/64"},
		{"IP4 24 IP6 64", "[fe80::1%eth0]:80", "fe80::/64"},
		{"IP4 24 IP6 64", "fe80::1%a/strange.zone", "fe80::/64"},
		{"IP4 24 IP6 64", "::ffff:10.1.2.3", "10.1.2.0/24"},
		{"IP4 24 IP6 64", "[::ffff:10.1.2.3]:80", "10.1.2.0/24"},
		{"IP4 24 IP6 64", "::FFFF:a01:203", "10.1.2.0/24"},
		{"IP4 0 IP6 0", "10.1.2.3", "0.0.0.0/0"},
		{"IP4 0 IP6 0", "2001:db8::1", "::/0"},
		{"IP4 32 IP6 128", "10.1.2.3:80", "10.1.2.3"},
		{"IP4 32 IP6 128", "[2001:DB8:0::1%eth0]:80", "2001:db8::1"},
		{"IP4 9 IP6 33", "10.255.2.3", "10.128.0.0/9"},
		{"IP4 9 IP6 33", "2001:db8:ffff::1", "2001:db8:8000::/33"},
		{"IP4 24", "2001:DB8::1", "2001:DB8::1"}, // no IP6
		{"IP6 64", "10.1.2.3:80", "10.1.2.3:80"}, // no IP4
	} {
		d, err := ParsePolicy([]byte("p"), bytes.Fields([]byte("SLIDE 5 1m "+test.definition)))
		require.NoError(t, err)
		address, ok := Address([]byte(test.id))
		require.True(t, ok, test.id)
		assert.Equal(t, test.want, string(d.Networks.Append(nil, []byte(test.id), address)), "%+v", test)
	}
}

func TestOtherIDsAreNoAddresses(t *testing.T) {
	for _, id := range []string{
		"", "ann", "user:42", "42", "dead.beef", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.02.3.4", "10.1.2.0/24",
		"1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:80a", "1.2.3.4:-1", "1.2.3.4%eth0", "fe80::1%", "[::1", "::1]",
		"[::1]80", "[::1]:", "[]", "[]:80", ":", ".", "...", "::1:", "1:2:3:4:5:6:7:8:9", "[[::1]]", "1.2.3.4 ",
		"a:b", "face:b00c", "::1%" + strings.Repeat("z", 200), strings.Repeat("1:", 100),
	} {
		_, ok := Address([]byte(id))
		assert.False(t, ok, id)
	}
}

func TestAddressDoesNotAllocate(t *testing.T) {
	b, n := make([]byte, 0, 64), Networks{IP4: 25, IP6: 65}
	for _, id := range []string{"10.1.2.3", "[2001:db8::1%eth0]:443", "user:42"} {
		text := []byte(id)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if address, ok := Address(text); ok {
				b = n.Append(b[:0], text, address)
			}
		}), id)
	}
}

// Whatever a text is: a network counts as itself, in one spelling, and it contains the address.
func FuzzNetworks(f *testing.F) {
	for _, id := range []string{"10.1.2.3:80", "[2001:db8::1%a]:443", "::ffff:1.2.3.4", "ann"} {
		f.Add([]byte(id), uint8(24), uint8(64))
	}
	f.Fuzz(func(t *testing.T, id []byte, ip4, ip6 uint8) {
		address, ok := Address(id)
		if !ok {
			return
		}
		n := Networks{PrefixLength(ip4 % 34), PrefixLength(ip6 % 130)}
		counted := string(n.Append(nil, id, address))
		if network, err := netip.ParsePrefix(counted); err == nil {
			require.Equal(t, network.Masked(), network)
			require.True(t, network.Contains(address))
			return
		}
		again, ok := Address([]byte(counted))
		require.True(t, ok)
		require.Equal(t, counted, string(n.Append(nil, []byte(counted), again)))
	})
}
