package eviction

// Frequency is what an access clock holds while a policy counts accesses, in Redis' form: 16 bits
// of the minute of the last access, 8 bits of a counter that grows with the logarithm of the
// accesses and loses one each minute.
//
//	23            8 7      0
//	[ minute       | count  ]
//
// When the policy changes from one kind to the other, keys are taken for what their bits happen to
// mean until they are used again.
type Frequency uint32

// Count is the counter as it stands at now (Unix ms).
func (f Frequency) Count(now int64) uint8 {
	idle := (MinuteOf(now) - uint32(f>>8)) & 0xffff
	return uint8(max(0, int(uint8(f))-int(idle)))
}

// Use is one more access at now. roll is a uniform random number.
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
	logFactor  = 10 // how much harder each count is to come by
)

// MinuteOf is the minute of a time (Unix ms) in 16 bits.
func MinuteOf(now int64) uint32 { return uint32(now/60_000) & 0xffff }

const (
	ClockBits = 24
	ClockMask = 1<<ClockBits - 1
)
