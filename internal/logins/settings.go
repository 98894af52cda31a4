package logins

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
)

// Settings are the settings of a Limiter. Any goroutine may read and change them.
type Settings struct {
	PerAddress atomic.Int64 // failures of a source per minute; 0: no limit
	Total      atomic.Int64 // failures of all sources per minute; 0: no limit
	Addresses  atomic.Int64 // the largest number of sources in each list
	exempt     atomic.Pointer[[]netip.Prefix]
}

// Defaults of Settings.
const (
	DefaultPerAddress = 30
	DefaultTotal      = 600
	DefaultAddresses  = 16384
)

// Most is the largest value of the settings.
const Most = 1_000_000

// Init sets the defaults.
func (s *Settings) Init() {
	s.PerAddress.Store(DefaultPerAddress)
	s.Total.Store(DefaultTotal)
	s.Addresses.Store(DefaultAddresses)
}

// Exempt returns the networks without limits as text, separated by spaces.
func (s *Settings) Exempt() string {
	var words []string
	for _, network := range s.networks() {
		words = append(words, network.String())
	}
	return strings.Join(words, " ")
}

// SetExempt sets the networks without limits.
func (s *Settings) SetExempt(networks []netip.Prefix) { s.exempt.Store(&networks) }

func (s *Settings) networks() []netip.Prefix {
	if networks := s.exempt.Load(); networks != nil {
		return *networks
	}
	return nil
}

// mapped is how many bits an address of IPv4 has before it when it is written as one of IPv6.
const mapped = 128 - 32

// ParseNetworks parses addresses and networks, such as 10.0.0.0/8, separated by spaces or commas.
func ParseNetworks(text string) (networks []netip.Prefix, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		network, err := netip.ParsePrefix(word)
		if err != nil {
			address, bad := netip.ParseAddr(word)
			if bad != nil || address.Zone() != "" {
				return nil, fmt.Errorf("'%.64s' is not an address or a network such as 10.0.0.0/8", word)
			}
			network = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		}
		if network.Addr().Is4In6() {
			if network.Bits() < mapped {
				return nil, fmt.Errorf("'%.64s' is neither a network of IPv4 nor one of IPv6: write it as 10.0.0.0/8",
					word)
			}
			network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}
