package engine

// frequency is what an access clock holds while a policy counts accesses, in Redis' form: 16 bits of the minute of the last access, 8 bits
// of a counter that grows with the logarithm of the accesses and loses one each minute.
//
//	23            8 7      0
//	[ minute       | count  ]
//
// When the policy changes from one kind to the other, keys are taken for what their bits happen to mean until they are used again.
type frequency uint32

const (
	freshCount = 5  // of a new key, lest it go before it can be used again
	logFactor  = 10 // how much harder each count is to come by
)

func minuteOf(now int64) uint32 { return uint32(now/60_000) & 0xffff }

// count is the counter as it stands at now (Unix ms).
func (f frequency) count(now int64) uint8 {
	idle := (minuteOf(now) - uint32(f>>8)) & 0xffff
	return uint8(max(0, int(uint8(f))-int(idle)))
}

// use is one more access at now. roll is a number that any is as likely as any other.
func (f frequency) use(now int64, roll uint64) frequency {
	count := f.count(now)
	harder := uint64(max(0, int(count)-freshCount))*logFactor + 1
	if count < 255 && roll%harder == 0 {
		count++
	}
	return frequency(minuteOf(now)<<8 | uint32(count))
}

// stamp is what an access clock is to hold when an object is used now. fresh is true when it comes to be.
func (m *memory) stamp(sh *shard, o object, fresh bool) uint32 {
	switch {
	case !m.frequency.Load():
		return uint32(sh.now / 1000)
	case fresh:
		return minuteOf(sh.now)<<8 | freshCount
	}
	return uint32(frequency(o.accessed()).use(sh.now, sh.roll()))
}

// roll gives the shard's next random number: xorshift64*, of Vigna, An experimental exploration of Marsaglia's xorshift generators, 2016.
// It follows from the engine's seed.
func (sh *shard) roll() uint64 {
	sh.dice ^= sh.dice >> 12
	sh.dice ^= sh.dice << 25
	sh.dice ^= sh.dice >> 27
	return sh.dice * 0x2545f4914f6cdd1d >> 32
}

// Frequency is how often a key is used, by the logarithmic counter of the policies that go by that; ok is false for a missing key. To ask
// is not to use.
func (tx *Tx) Frequency(k Key) (count int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return int64(frequency(o.accessed()).count(tx.now)), true
}
