package dict

import "github.com/dchest/siphash"

// Hasher is SipHash-2-4 with a secret key (Aumasson and Bernstein, 2012). Names that collide cannot
// be constructed without the key. With the key, the hashes are the same on any machine. The caller
// chooses the key. A Hasher has no other state, and may be copied and shared.
type Hasher struct{ k0, k1 uint64 }

// NewHasher returns the hasher with the 128-bit key k0, k1.
func NewHasher(k0, k1 uint64) Hasher { return Hasher{k0, k1} }

// Sum returns the hash of b. It neither keeps b nor allocates.
func (h Hasher) Sum(b []byte) uint64 { return siphash.Hash(h.k0, h.k1, b) }
