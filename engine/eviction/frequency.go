package eviction

// Frequency is the value of an access clock under a policy that counts accesses, in Redis' format:
// 16 bits with the minute of the last access, 8 bits with a counter that grows with the logarithm
// of the number of accesses and decreases by one each minute.
//
//	23            8 7      0
//	[ minute       | count  ]
//
// When the policy changes from one kind to the other, the bits of a key are misread until its next
// access.
type Frequency uint32

// Count returns the counter at now (Unix ms).
func (f Frequency) Count(now int64) uint8 {
	idle := (MinuteOf(now) - uint32(f>>8)) & 0xffff
	return uint8(max(0, int(uint8(f))-int(idle)))
}

// Use returns the value after one more access at now. roll is a uniformly distributed random
// number.
func (f Frequency) Use(now int64, roll uint64) Frequency {
	count := f.Count(now)
	harder := uint64(max(0, int(count)-FreshCount))*logFactor + 1
	if count < 255 && roll%harder == 0 {
		count++
	}
	return Frequency(MinuteOf(now)<<8 | uint32(count))
}

const (
	FreshCount = 5  // of a new key, so that it is not evicted before its second use
	logFactor  = 10 // lfu-log-factor of Redis: the larger, the rarer each increment
)

// MinuteOf returns the minute of a time (Unix ms) in 16 bits.
func MinuteOf(now int64) uint32 { return uint32(now/60_000) & 0xffff }

const (
	ClockBits = 24
	ClockMask = 1<<ClockBits - 1
)

// Dice is a sequence of random numbers: xorshift64* (Vigna, An experimental exploration of
// Marsaglia's xorshift generators, 2016). The first value, not 0, determines it.
type Dice uint64

// Roll returns the next number.
func (d *Dice) Roll() uint64 {
	*d ^= *d >> 12
	*d ^= *d << 25
	*d ^= *d >> 27
	return uint64(*d) * 0x2545f4914f6cdd1d >> 32
}
