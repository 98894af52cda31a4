package resp

import "rlserver/engine"

func init() {
	register(
		&command{name: "setbit", arity: 4, flags: write | denyOOM, keys: []keySpec{key("RW access update", 1)},
			syntax: "key offset value", group: "bitmap", since: "2.2.0", complexity: "O(1)",
			summary: "Sets or clears the bit at offset in the string value stored at key",
			prepare: roomForBit,
			run:     setbit},
		&command{name: "getbit", arity: 3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key offset", group: "bitmap", since: "2.2.0", complexity: "O(1)",
			summary: "Returns the bit value at offset in the string value stored at key",
			run:     getbit},
		&command{name: "bitcount", arity: -2, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key [start end [BYTE | BIT]]", group: "bitmap", since: "2.6.0", complexity: "O(N)",
			summary: "Count set bits in a string",
			run:     bitcount},
		&command{name: "bitpos", arity: -3, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key bit [start [end [BYTE | BIT]]]", group: "bitmap", since: "2.8.7", complexity: "O(N)",
			summary: "Find first bit set or clear in a string",
			run:     bitpos},
		&command{name: "bitop", arity: -4, flags: write | denyOOM, keys: []keySpec{key("OW update", 2), keysToEnd("RO access", 3, 1)},
			syntax: "operation destkey key [key ...]", group: "bitmap", since: "2.6.0", complexity: "O(N)",
			summary: "Perform bitwise operations between strings",
			prepare: roomForBitop,
			run:     bitop},
	)
}

const (
	errBitOffset = engine.Error("ERR bit offset is not an integer or out of range")
	errBitValue  = engine.Error("ERR bit is not an integer or out of range")
	errBitSought = engine.Error("ERR The bit argument must be 1 or 0.")
	errBitNot    = engine.Error("ERR BITOP NOT must be called with a single source key.")
)

// longBits is from how many bytes on the bits of a string are looked at when its lock is let go of.
const longBits = 256 << 10

// bitOffset takes the offset of a bit, within what a string may have. One that begins with # counts integers of so many bits; 0: there is none.
func (c *call) bitOffset(bits int) int64 {
	word := c.args.next()
	if c.args.err != nil {
		return 0
	}
	offset, ok := c.env.bitOffset(word, bits)
	if !ok {
		c.args.fail(errBitOffset)
	}
	return offset
}

func (e *env) bitOffset(word []byte, bits int) (offset int64, ok bool) {
	if bits > 0 && len(word) > 0 && word[0] == '#' {
		offset, ok = parseInt(word[1:])
		offset *= int64(bits)
	} else {
		offset, ok = parseInt(word)
	}
	return offset, ok && offset >= 0 && offset>>3 < min(e.settings.limits.maxBulk.Load(), engine.MaxString)
}

// setbit handles SETBIT key offset value.
func setbit(c *call) error {
	k, offset, value := c.args.key(), c.bitOffset(0), c.args.integerOr(errBitValue)
	if value&^1 != 0 {
		c.args.fail(errBitValue)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	was, err := c.tx.SetBit(k, offset, value == 1)
	if err != nil {
		return err
	}

	c.reply.flag(was)
	return nil
}

func roomForBit(c *call, words [][]byte) {
	if offset, ok := c.env.bitOffset(words[2], 0); ok {
		c.makeRoomToStretch(words[1], offset>>3+1)
	}
}

// getbit handles GETBIT key offset.
func getbit(c *call) error {
	k, offset := c.args.key(), c.bitOffset(0)
	if err := c.args.end(); err != nil {
		return err
	}

	value, _, err := c.tx.Get(k)
	if err != nil {
		return err
	}

	c.reply.flag(engine.Bit(value, offset))
	return nil
}

// bitcount handles BITCOUNT key [start end [BYTE | BIT]]. As in Redis nothing more is looked at for a missing key.
func bitcount(c *call) error {
	value, found, err := c.tx.Share(c.args.key())
	if err != nil || !found {
		c.reply.integer(0)
		return err
	}
	from, to, err := c.bitsCounted(int64(len(value)))
	if err != nil {
		return err
	}
	if to-from < longBits*8 {
		c.reply.integer(engine.CountBits(value, from, to))
		return nil
	}
	c.postpone(func(c *call) error {
		c.reply.integer(engine.CountBits(value, from, to))
		return nil
	})
	return nil
}

// bitsCounted takes which bits of so many bytes are to be counted. As in Redis the unit is not looked at when two places from the end are
// the wrong way round.
func (c *call) bitsCounted(length int64) (from, to int64, err error) {
	switch c.args.left() {
	case 0:
		return 0, length * 8, nil
	case 2, 3:
	default:
		return 0, 0, engine.ErrSyntax
	}
	start, end := c.args.integer(), c.args.integer()
	if c.args.err != nil || start < 0 && end < 0 && start > end {
		return 0, 0, c.args.err
	}
	unit := c.bitUnit()
	from, to = bitRange(start, end, length, unit)
	return from, to, c.args.end()
}

// bitUnit takes how many bits the places of a call count by.
func (c *call) bitUnit() int64 {
	switch {
	case c.args.word("BIT"):
		return 1
	case c.args.more() && !c.args.word("BYTE"):
		c.args.fail(engine.ErrSyntax)
	}
	return 8
}

// bitRange gives the bits from one place of a string up to and including another, both within it. Negative places count from its end.
func bitRange(start, end, length, unit int64) (from, to int64) {
	total := length * 8 / unit
	start, end = fromEnd(start, total), min(fromEnd(end, total), total-1)
	if start > end {
		return 0, 0
	}
	return start * unit, (end + 1) * unit
}

// bitpos handles BITPOS key bit [start [end [BYTE | BIT]]]. As in Redis nothing more is looked at for a missing key.
func bitpos(c *call) error {
	k, bit := c.args.key(), c.args.integer()
	if c.args.err != nil {
		return c.args.err
	}
	if bit&^1 != 0 {
		return errBitSought
	}
	value, found, err := c.tx.Share(k)
	if err != nil {
		return err
	}
	if !found {
		c.reply.integer(-bit)
		return nil
	}
	from, to, bounded, err := c.bitsSearched(int64(len(value)))
	if err != nil {
		return err
	}
	answer := func(c *call) error {
		at := engine.FindBit(value, bit == 1, from, to)
		if at < 0 && bit == 0 && !bounded && from < to {
			at = to // behind the end come zeros
		}
		c.reply.integer(at)
		return nil
	}
	if to-from < longBits*8 {
		return answer(c)
	}
	c.postpone(answer)
	return nil
}

// bitsSearched takes which bits of so many bytes are to be searched, and tells whether they were given an end.
func (c *call) bitsSearched(length int64) (from, to int64, bounded bool, err error) {
	if c.args.left() > 3 {
		return 0, 0, false, engine.ErrSyntax
	}
	if !c.args.more() {
		return 0, length * 8, false, nil
	}
	start, last := c.args.integer(), int64(-1)
	var end args
	if bounded = c.args.more(); bounded {
		end = args{list: [][]byte{c.args.next()}} // which Redis looks at after the unit
	}
	unit := c.bitUnit()
	if err := c.args.end(); err != nil {
		return 0, 0, false, err
	}
	if bounded {
		last = end.integer()
	}
	from, to = bitRange(start, last, length, unit)
	return from, to, bounded, end.err
}

// bitop handles BITOP AND | OR | XOR | NOT destkey key [key ...].
func bitop(c *call) error {
	var op engine.BitOperation
	switch {
	case c.args.word("AND"):
		op = engine.BitAnd
	case c.args.word("OR"):
		op = engine.BitOr
	case c.args.word("XOR"):
		op = engine.BitXor
	case c.args.word("NOT"):
		op = engine.BitNot
	default:
		return engine.ErrSyntax
	}
	dst, sources := c.args.key(), c.args.keys
	if op == engine.BitNot && len(sources) != 1 {
		return errBitNot
	}

	length, err := c.tx.BitOp(op, dst, sources)
	if err != nil {
		return err
	}

	c.reply.count(length)
	return nil
}

func roomForBitop(c *call, words [][]byte) {
	longest := int64(0)
	for _, name := range words[3:] {
		longest = max(longest, c.env.engine.StringLength(c.db, c.env.engine.Key(name)))
	}
	c.makeRoomFor(longest)
}
