package acl

import (
	"math"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// FailureMemory is how long the failed logins of an address count after the last one.
	FailureMemory = time.Minute
	mostSources   = 4096 // maximum number of addresses
)

// Failures counts failed logins by client address. The zero value is ready to use, by any
// goroutine.
type Failures struct {
	mu      sync.Mutex
	sources map[netip.Prefix]failure
}

type failure struct {
	count int // in a row, at most 16
	last  time.Duration
}

// Add counts a failed login at an elapsed time, and returns how many in a row failed before it, at
// most 16. It returns 0 for a Unix socket. If there are too many addresses, it removes one.
func (f *Failures) Add(from net.Addr, now time.Duration) (before int) {
	source, ok := sourceOf(from)
	if !ok {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources == nil {
		f.sources = make(map[netip.Prefix]failure)
	}
	old, known := f.sources[source]
	if now-old.last > FailureMemory {
		old.count = 0
	}
	if !known && len(f.sources) >= mostSources {
		f.removeOne(now)
	}
	f.sources[source] = failure{min(old.count+1, 16), now}
	return old.count
}

// removeOne removes the address with the fewest failures out of a sample, so that an attacker with
// many addresses does not displace those with more failures.
func (f *Failures) removeOne(now time.Duration) {
	const sample = 8
	var least netip.Prefix
	n, count := 0, math.MaxInt
	for address, failure := range f.sources {
		if now-failure.last > FailureMemory {
			failure.count = 0
		}
		if failure.count < count {
			least, count = address, failure.count
		}
		if n++; n == sample {
			break
		}
	}
	delete(f.sources, least)
}

// Remove removes an address after a successful login.
func (f *Failures) Remove(from net.Addr) {
	source, ok := sourceOf(from)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sources, source)
}

// sourceOf returns the address of a client; for IPv6 the /64 network, which usually belongs to one
// machine. ok is false for a Unix socket.
func sourceOf(a net.Addr) (source netip.Prefix, ok bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, false
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	source, err := address.Prefix(bits)
	return source, err == nil
}
