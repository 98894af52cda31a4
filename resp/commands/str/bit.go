package str

import (
	"bytes"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/bitmap"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("bitmap",
		&command.Command{Name: "setbit", Arity: 4, Flags: command.Write | command.DenyOOM,
			Keys: command.OneKey("RW access update"), Prepare: evictForBit, Run: setbit},
		command.OnKey("getbit", 3, command.Readonly|command.Fast, "RO access", getbit),
		command.OnKey("bitcount", -2, command.Readonly, "RO access", bitcount),
		command.OnKey("bitpos", -3, command.Readonly, "RO access", bitpos),
		&command.Command{Name: "bitop", Arity: -4, Flags: command.Write | command.DenyOOM,
			Keys:    []command.KeySpec{command.Key("OW update", 2), command.KeysToEnd("RO access", 3, 1)},
			Prepare: evictForBitop, Run: bitop},
		&command.Command{Name: "bitfield", Arity: -2, Flags: command.Write | command.DenyOOM,
			Keys:    []command.KeySpec{command.KeyVariable("RW access update", 1, bitfieldAccess)},
			Prepare: evictForBitfield, Run: bitfield},
		command.OnKey("bitfield_ro", -2, command.Readonly|command.Fast, "RO access", bitfieldRO),
	)
}

const (
	errBitOffset    = engine.Error("ERR bit offset is not an integer or out of range")
	errBitValue     = engine.Error("ERR bit is not an integer or out of range")
	errBitSought    = engine.Error("ERR The bit argument must be 1 or 0.")
	errBitNot       = engine.Error("ERR BITOP NOT must be called with a single source key.")
	errBitfieldType = engine.Error(
		"ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
	)
	errBitfieldOverflow = engine.Error("ERR Invalid OVERFLOW type specified")
	errBitfieldReadOnly = engine.Error("ERR BITFIELD_RO only supports the GET subcommand")
)

// LongBits is the length in bytes from which the bits of a string are read after its lock is
// released.
const LongBits = 256 << 10

// nextBitOffset parses the offset of a bit, up to the maximum length of a string. An offset that
// begins with # counts integers of the given number of bits; if bits is 0, # is not allowed.
func nextBitOffset(c *command.Call, bits int) int64 {
	word := c.Args.Next()
	if c.Args.Err != nil {
		return 0
	}
	offset, ok := parseBitOffset(c.Env, word, bits)
	if !ok {
		c.Args.Fail(errBitOffset)
	}
	return offset
}

func parseBitOffset(e *command.Env, word []byte, bits int) (offset int64, ok bool) {
	if bits > 0 && len(word) > 0 && word[0] == '#' {
		offset, ok = grammar.ParseInt(word[1:])
		offset *= int64(bits)
	} else {
		offset, ok = grammar.ParseInt(word)
	}
	return offset, ok && offset >= 0 && offset>>3 < min(e.Settings.Limits.MaxBulk.Load(), object.MaxString)
}

func setbit(c *command.Call) error {
	k, offset, value := c.Args.Key(), nextBitOffset(c, 0), c.Args.IntegerOr(errBitValue)
	if value&^1 != 0 {
		c.Args.Fail(errBitValue)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyFlag(c.Tx.SetBit(k, offset, value == 1))
}

func evictForBit(c *command.Call, words [][]byte) {
	if offset, ok := parseBitOffset(c.Env, words[2], 0); ok {
		c.EvictForString(words[1], offset>>3+1)
	}
}

func getbit(c *command.Call) error {
	k, offset := c.Args.Key(), nextBitOffset(c, 0)
	value, _, err := open(c, k)
	if err != nil { // the offset may be none
		return err
	}
	return c.ReplyFlag(bitmap.Bit(value, offset), nil)
}

// bitcount checks no more arguments for a missing key, as Redis does.
func bitcount(c *command.Call) error {
	value, found, err := c.Tx.Share(c.Args.Key())
	if err != nil || !found {
		c.Reply.Integer(0)
		return err
	}
	from, to, err := bitsCounted(c, int64(len(value)))
	if err != nil {
		return err
	}
	if to-from < LongBits*8 {
		return c.ReplyInteger(bitmap.Count(value, from, to), nil)
	}
	c.Postpone(func(c *command.Call) error {
		return c.ReplyInteger(bitmap.Count(value, from, to), nil)
	})
	return nil
}

// bitsCounted takes the range of bits to count in a string of length bytes. As in Redis, the unit
// is not checked if both positions count from the end and start is after end.
func bitsCounted(c *command.Call, length int64) (from, to int64, err error) {
	switch c.Args.Left() {
	case 0:
		return 0, length * 8, nil
	case 2, 3:
	default:
		return 0, 0, engine.ErrSyntax
	}
	start, end := c.Args.Integer(), c.Args.Integer()
	if c.Args.Err != nil || start < 0 && end < 0 && start > end {
		return 0, 0, c.Args.Err
	}
	unit := bitUnit(c)
	from, to = bitRange(start, end, length, unit)
	return from, to, c.Args.End()
}

// bitUnit takes the unit of the positions of a call, in bits.
func bitUnit(c *command.Call) int64 {
	switch {
	case c.Args.Word("BIT"):
		return 1
	case c.Args.More() && !c.Args.Word("BYTE"):
		c.Args.Fail(engine.ErrSyntax)
	}
	return 8
}

// bitRange returns the range of bits from start up to but not including to, limited to the string.
// Negative positions count from the end of the string.
func bitRange(start, end, length, unit int64) (from, to int64) {
	total := length * 8 / unit
	start, end = fromEnd(start, total), min(fromEnd(end, total), total-1)
	if start > end {
		return 0, 0
	}
	return start * unit, (end + 1) * unit
}

// bitpos checks no more arguments for a missing key, as Redis does.
func bitpos(c *command.Call) error {
	k, bit := c.Args.Key(), c.Args.Integer()
	if c.Args.Err != nil {
		return c.Args.Err
	}
	if bit&^1 != 0 {
		return errBitSought
	}
	value, found, err := c.Tx.Share(k)
	if err != nil {
		return err
	}
	if !found {
		return c.ReplyInteger(-bit, nil)
	}
	from, to, bounded, err := bitsSearched(c, int64(len(value)))
	if err != nil {
		return err
	}
	reply := func(c *command.Call) error {
		at := bitmap.Find(value, bit == 1, from, to)
		if at < 0 && bit == 0 && !bounded && from < to {
			at = to // zeros follow the end
		}
		return c.ReplyInteger(at, nil)
	}
	if to-from < LongBits*8 {
		return reply(c)
	}
	c.Postpone(reply)
	return nil
}

// bitsSearched takes the range of bits to search in a string of length bytes. bounded reports
// whether an end was given.
func bitsSearched(c *command.Call, length int64) (from, to int64, bounded bool, err error) {
	if c.Args.Left() > 3 {
		return 0, 0, false, engine.ErrSyntax
	}
	if !c.Args.More() {
		return 0, length * 8, false, nil
	}
	start, last := c.Args.Integer(), int64(-1)
	var end command.Args
	if bounded = c.Args.More(); bounded {
		end = command.Args{List: [][]byte{c.Args.Next()}} // Redis checks it after the unit
	}
	unit := bitUnit(c)
	if err := c.Args.End(); err != nil {
		return 0, 0, false, err
	}
	if bounded {
		last = end.Integer()
	}
	from, to = bitRange(start, last, length, unit)
	return from, to, bounded, end.Err
}

func bitop(c *command.Call) error {
	op := bitmap.Operation(c.Args.Choice(engine.ErrSyntax, "AND", "OR", "XOR", "NOT"))
	if c.Args.Err != nil {
		return c.Args.Err
	}
	dst, sources := c.Args.Key(), c.Args.Keys
	if op == bitmap.Not && len(sources) != 1 {
		return errBitNot
	}

	return c.ReplyCount(c.Tx.BitOp(op, dst, sources))
}

func evictForBitop(c *command.Call, words [][]byte) {
	longest := int64(0)
	for _, name := range words[3:] {
		longest = max(longest, c.Env.Engine.StringLength(c.DB, c.Env.Engine.Key(name)))
	}
	c.EvictFor(longest)
}

// bitfieldAccess returns the access of BITFIELD to its key, which is read-only if it only gets.
func bitfieldAccess(words [][]byte) string {
	for i := 2; i < len(words); i++ {
		switch left := len(words) - i - 1; {
		case grammar.EqualFold(words[i], "GET") && left >= 2:
			i += 2
		case grammar.EqualFold(words[i], "OVERFLOW") && left >= 1:
			i++
		default:
			return "RW access update"
		}
	}
	return "RO access"
}

type bitfieldStep struct {
	bitmap.Change
	get bool
}

func bitfield(c *command.Call) error {
	k := c.Args.Key()
	steps, length := bitfieldSteps(c)
	if err := c.Args.End(); err != nil {
		return err
	}
	if length == 0 {
		return bitfieldGets(c, k, steps)
	}
	if err := c.Tx.MayStretch(k, length); err != nil {
		return err
	}

	c.Reply.Array(len(steps))
	for _, step := range steps {
		if step.get {
			value, _, _ := c.Tx.Get(k)
			c.Reply.Integer(step.In(value))
			continue
		}
		old, now, ok, err := c.Tx.ChangeBits(k, step.Change)
		switch {
		case err != nil:
			return err
		case !ok:
			c.Reply.Null()
		case step.Add:
			c.Reply.Integer(now)
		default:
			c.Reply.Integer(old)
		}
	}
	return c.Tx.Stretch(k, length) // as in Redis, even if nothing was changed
}

func bitfieldRO(c *command.Call) error {
	k := c.Args.Key()
	steps, length := bitfieldSteps(c)
	if err := c.Args.End(); err != nil {
		return err
	}
	if length > 0 {
		return errBitfieldReadOnly
	}
	return bitfieldGets(c, k, steps)
}

func bitfieldGets(c *command.Call, k engine.Key, steps []bitfieldStep) error {
	value, _, err := c.Tx.Get(k)
	if err != nil {
		return err
	}
	c.Reply.Array(len(steps))
	for _, step := range steps {
		c.Reply.Integer(step.In(value))
	}
	return nil
}

// bitfieldSteps takes the operations, and returns how many bytes the string needs for those that
// change it; 0 if none does.
func bitfieldSteps(c *command.Call) (steps []bitfieldStep, length int64) {
	var overflow bitmap.Overflow
	for c.Args.More() {
		left := c.Args.Left() - 1
		var step bitfieldStep
		switch {
		case left >= 2 && c.Args.Word("GET"):
			step.get = true
		case left >= 3 && c.Args.Word("SET"):
		case left >= 3 && c.Args.Word("INCRBY"):
			step.Add = true
		case left >= 1 && c.Args.Word("OVERFLOW"):
			overflow = bitmap.Overflow(c.Args.Choice(errBitfieldOverflow, "WRAP", "SAT", "FAIL"))
			continue
		default:
			c.Args.Fail(engine.ErrSyntax)
			return nil, 0
		}
		step.Signed, step.Bits = parseBitfieldType(&c.Args)
		step.Offset, step.Overflow = nextBitOffset(c, step.Bits), overflow
		if !step.get {
			step.N = c.Args.Integer()
			length = max(length, step.End())
		}
		steps = append(steps, step)
	}
	return steps, length
}

// parseBitfieldType parses the type of a field, e.g. i16. As in Redis it ends with a NUL.
func parseBitfieldType(a *command.Args) (signed bool, bits int) {
	word, _, _ := bytes.Cut(a.Next(), []byte{0})
	if len(word) == 0 || word[0] != 'i' && word[0] != 'u' {
		a.Fail(errBitfieldType)
		return false, 0
	}
	signed = word[0] == 'i'
	n, ok := grammar.ParseInt(word[1:])
	if !ok || n < 1 || n > 64 || n == 64 && !signed {
		a.Fail(errBitfieldType)
		return false, 0
	}
	return signed, int(n)
}

func evictForBitfield(c *command.Call, words [][]byte) {
	parsed := command.Call{Env: c.Env, Words: words, Args: command.Args{List: words[2:]}}
	if _, length := bitfieldSteps(&parsed); parsed.Args.Err == nil {
		c.EvictForString(words[1], length)
	}
}
