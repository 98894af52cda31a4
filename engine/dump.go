package engine

// Content is what a key holds, to be written down elsewhere.
type Content struct {
	Type    Type
	Text    []byte   // of a string: good for ever
	Hash    Hash     // good until the key's next change or the Tx's end
	ZSet    ZSet     // good for ever, for one goroutine
	Numbers [4]int64 // of a limiter with a state
}

// Content is what a key holds; ok is false for a missing key.
func (tx *Tx) Content(k Key) (c Content, ok bool) {
	o := tx.lookup(k)
	if o == nil {
		return c, false
	}
	c.Type = o.kind()
	o.content(&c)
	return c, true
}

func (o *stringObject) content(c *Content) { c.Text = o.share() }
func (o *hashObject) content(c *Content)   { c.Hash = hashIn(o) }
func (o *zsetObject) content(c *Content)   { c.ZSet = ZSet{o.set.Clone()} }

// Members are all members, from the least score on.
func (z ZSet) Members() ZMembers { return z.between(0, z.Len(), false) }

// Restored is what a key is to hold.
type Restored struct {
	Type    Type
	Text    []byte    // of a string
	Pairs   [][]byte  // of a hash: its fields, all different, and their values by turns
	Members []ZMember // of a sorted set: all different
	Numbers [4]int64  // of a limiter with a state, as Content has them

	Weight   int64 // roughly what it takes
	ExpireAt int64 // Unix ms; 0: never
	Idle     int64 // for how many seconds nobody has used it; negative: that is not known
	Uses     int64 // how often it is used, by the logarithmic counter of the policies that go by that; negative: that is not known
}

// Valid tells whether a key can hold this.
func (r *Restored) Valid() bool {
	switch r.Type {
	case TypeString:
		return true
	case TypeHash:
		return len(r.Pairs) > 0
	case TypeZSet:
		return len(r.Members) > 0
	}
	f := Effect{}
	at, known := f.putNumbers(r.Type, r.Numbers)
	return known && f.fits(nil) && 0 <= at && at <= latestSince
}

// Restore lets a key hold what was valid, in place of what it held. If its time has come already the key is gone.
func (tx *Tx) Restore(k Key, r *Restored) error {
	if !tx.e.roomFor(r.Weight) {
		return ErrOutOfMemory
	}
	tx.Delete(k)
	if r.ExpireAt != 0 && r.ExpireAt <= tx.now {
		return nil
	}
	o := tx.restore(k, r)
	if r.ExpireAt != 0 && o.head().expireAt != r.ExpireAt {
		tx.apply(o, &Effect{Kind: EffectExpire, Key: k, ExpireAt: r.ExpireAt})
	}
	switch counts := tx.e.memory.frequency.Load(); {
	case counts && r.Uses >= 0:
		o.touch(minuteOf(tx.now)<<8 | uint32(r.Uses))
	case !counts && r.Idle >= 0:
		o.touch(uint32(tx.now/1000 - min(r.Idle, clockMask)))
	}
	return nil
}

func (tx *Tx) restore(k Key, r *Restored) (o object) {
	switch r.Type {
	case TypeString:
		return tx.apply(nil, &Effect{Kind: EffectString, Key: k, Value: r.Text, ExpireAt: r.ExpireAt})
	}
	f := Effect{Key: k, ExpireAt: r.ExpireAt}
	if _, limiter := f.putNumbers(r.Type, r.Numbers); limiter {
		return tx.apply(nil, &f)
	}
	for i := 0; i+1 < len(r.Pairs); i += 2 {
		o = tx.apply(o, &Effect{Kind: EffectHashSet, Key: k, Field: r.Pairs[i], Value: r.Pairs[i+1]})
	}
	for _, m := range r.Members {
		o = tx.apply(o, &Effect{Kind: EffectAdd, Key: k, Field: m.Member, Score: kept(m.Score)})
	}
	return o
}
