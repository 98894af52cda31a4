package resp

import (
	"bytes"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "bitfield", arity: -2, flags: write | denyOOM, keys: []keySpec{keyVariable("RW access update", 1, bitfieldAccess)},
			syntax: "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment> " +
				"[GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment> ...]]",
			group: "bitmap", since: "3.2.0", complexity: "O(1) for each subcommand specified",
			summary: "Perform arbitrary bitfield integer operations on strings",
			prepare: roomForBitfield,
			run:     bitfield},
		&command{name: "bitfield_ro", arity: -2, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key [GET encoding offset [GET encoding offset ...]]",
			group:  "bitmap", since: "6.0.0", complexity: "O(1) for each subcommand specified",
			summary: "Perform arbitrary bitfield integer operations on strings. Read-only variant of BITFIELD",
			run:     bitfieldRO},
	)
}

const (
	errBitfieldType     = engine.Error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
	errBitfieldOverflow = engine.Error("ERR Invalid OVERFLOW type specified")
	errBitfieldReadOnly = engine.Error("ERR BITFIELD_RO only supports the GET subcommand")
)

// bitfieldAccess is how BITFIELD uses its key: it changes nothing if it only gets.
func bitfieldAccess(words [][]byte) string {
	for i := 2; i < len(words); i++ {
		switch left := len(words) - i - 1; {
		case equalFold(words[i], "GET") && left >= 2:
			i += 2
		case equalFold(words[i], "OVERFLOW") && left >= 1:
			i++
		default:
			return "RW access update"
		}
	}
	return "RO access"
}

// bitfieldStep is one of the operations of BITFIELD.
type bitfieldStep struct {
	engine.BitChange
	get bool
}

// bitfield handles BITFIELD key [GET type offset | SET type offset value | INCRBY type offset increment | OVERFLOW WRAP | SAT | FAIL] …
func bitfield(c *call) error {
	k := c.args.key()
	steps, length := c.bitfieldSteps()
	if err := c.args.end(); err != nil {
		return err
	}
	if length == 0 {
		return c.bitfieldGets(k, steps)
	}
	if err := c.tx.MayStretch(k, length); err != nil {
		return err
	}

	c.reply.array(len(steps))
	for _, step := range steps {
		if step.get {
			value, _, _ := c.tx.Get(k)
			c.reply.integer(step.In(value))
			continue
		}
		old, now, ok, err := c.tx.ChangeBits(k, step.BitChange)
		switch {
		case err != nil:
			return err
		case !ok:
			c.reply.null()
		case step.Add:
			c.reply.integer(now)
		default:
			c.reply.integer(old)
		}
	}
	return c.tx.Stretch(k, length) // as in Redis, even if nothing was changed
}

// bitfieldRO handles BITFIELD_RO key [GET type offset …].
func bitfieldRO(c *call) error {
	k := c.args.key()
	steps, length := c.bitfieldSteps()
	if err := c.args.end(); err != nil {
		return err
	}
	if length > 0 {
		return errBitfieldReadOnly
	}
	return c.bitfieldGets(k, steps)
}

func (c *call) bitfieldGets(k engine.Key, steps []bitfieldStep) error {
	value, _, err := c.tx.Get(k)
	if err != nil {
		return err
	}
	c.reply.array(len(steps))
	for _, step := range steps {
		c.reply.integer(step.In(value))
	}
	return nil
}

// bitfieldSteps takes the operations, and tells how many bytes the string has to have for those that change it; 0 if none does.
func (c *call) bitfieldSteps() (steps []bitfieldStep, length int64) {
	var overflow engine.Overflow
	for c.args.more() {
		left := c.args.left() - 1
		var step bitfieldStep
		switch {
		case left >= 2 && c.args.word("GET"):
			step.get = true
		case left >= 3 && c.args.word("SET"):
		case left >= 3 && c.args.word("INCRBY"):
			step.Add = true
		case left >= 1 && c.args.word("OVERFLOW"):
			overflow = c.args.overflow()
			continue
		default:
			c.args.fail(engine.ErrSyntax)
			return nil, 0
		}
		step.Signed, step.Bits = c.args.bitfieldType()
		step.Offset, step.Overflow = c.bitOffset(step.Bits), overflow
		if !step.get {
			step.N = c.args.integer()
			length = max(length, step.End())
		}
		steps = append(steps, step)
	}
	return steps, length
}

// overflow takes what becomes of an integer that does not fit its field.
func (a *args) overflow() engine.Overflow {
	switch {
	case a.word("WRAP"):
		return engine.OverflowWrap
	case a.word("SAT"):
		return engine.OverflowSat
	case a.word("FAIL"):
		return engine.OverflowFail
	}
	a.fail(errBitfieldOverflow)
	return 0
}

// bitfieldType takes the type of a field, e.g. i16. As in Redis it ends with a NUL.
func (a *args) bitfieldType() (signed bool, bits int) {
	word, _, _ := bytes.Cut(a.next(), []byte{0})
	if len(word) == 0 || word[0] != 'i' && word[0] != 'u' {
		a.fail(errBitfieldType)
		return false, 0
	}
	signed = word[0] == 'i'
	n, ok := parseInt(word[1:])
	if !ok || n < 1 || n > 64 || n == 64 && !signed {
		a.fail(errBitfieldType)
		return false, 0
	}
	return signed, int(n)
}

func roomForBitfield(c *call, words [][]byte) {
	asked := call{env: c.env, words: words, args: args{list: words[2:]}}
	if _, length := asked.bitfieldSteps(); asked.args.err == nil {
		c.makeRoomToStretch(words[1], length)
	}
}
