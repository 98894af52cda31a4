package dict

import "github.com/dchest/siphash"

// Hasher is SipHash-2-4 under a secret key (Aumasson and Bernstein, 2012):
// who does not know the key cannot make keys that collide, and who does
// gets the same hashes on any machine. The key is drawn at the edge of the
// program; a Hasher holds no other state and may be copied and shared freely.
type Hasher struct{ k0, k1 uint64 }

// NewHasher returns the hasher of the 128-bit key k0, k1.
func NewHasher(k0, k1 uint64) Hasher { return Hasher{k0, k1} }

// Sum returns the hash of b. It neither keeps b nor allocates.
func (h Hasher) Sum(b []byte) uint64 { return siphash.Hash(h.k0, h.k1, b) }
