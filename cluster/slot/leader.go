package slot

import "errors"

// ErrNoLeader reports that no node leads a group of slots, as far as this one knows.
var ErrNoLeader = errors.New("no node leads the group")

// MovedError reports that another node leads a group of slots.
type MovedError struct {
	Node string // its name
	// host:port for clients without TLS and with; empty if the error is not for clients
	Address, TLSAddress string
}

// AddressFor returns the address for a client with or without TLS.
func (e *MovedError) AddressFor(tls bool) string {
	if tls {
		return e.TLSAddress
	}
	return e.Address
}

func (e *MovedError) Error() string { return "node " + e.Node + " leads the group" }
