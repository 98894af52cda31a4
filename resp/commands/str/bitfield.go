package str

import (
	"bytes"

	"rlserver/engine"
	"rlserver/internal/bitmap"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("bitmap",
		&command.Command{Name: "bitfield", Arity: -2, Flags: command.Write | command.DenyOOM,
			Keys:    []command.KeySpec{command.KeyVariable("RW access update", 1, bitfieldAccess)},
			Prepare: evictForBitfield, Run: bitfield},
		command.OnKey("bitfield_ro", -2, command.Readonly|command.Fast, "RO access", bitfieldRO),
	)
}

const (
	errBitfieldType = engine.Error(
		"ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
	)
	errBitfieldOverflow = engine.Error("ERR Invalid OVERFLOW type specified")
	errBitfieldReadOnly = engine.Error("ERR BITFIELD_RO only supports the GET subcommand")
)

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

// bitfieldStep is an operation of BITFIELD.
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
			overflow = parseOverflow(&c.Args)
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

// parseOverflow parses how an integer that does not fit its field is handled.
func parseOverflow(a *command.Args) bitmap.Overflow {
	switch {
	case a.Word("WRAP"):
		return bitmap.OverflowWrap
	case a.Word("SAT"):
		return bitmap.OverflowSat
	case a.Word("FAIL"):
		return bitmap.OverflowFail
	}
	a.Fail(errBitfieldOverflow)
	return 0
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
