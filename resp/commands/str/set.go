package str

import (
	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("string",
		&command.Command{Name: "set", Arity: -3, Flags: command.Write | command.DenyOOM,
			Keys: []command.KeySpec{command.KeyVariable("RW access update", 1, setAccess)}, Short: true, Run: set},
		command.OnKey("setnx", 3, command.Write|command.DenyOOM|command.Fast, "OW insert", setnx),
		command.OnKey("setex", 4, command.Write|command.DenyOOM, "OW update", ttlEX.setFor),
		command.OnKey("psetex", 4, command.Write|command.DenyOOM, "OW update", ttlPX.setFor),
		command.OnKey("getset", 3, command.Write|command.DenyOOM|command.Fast, "RW access update", getset),
		command.OnKey("getex", -2, command.Write|command.Fast, "RW access update", getex),
	)
}

// setAccess returns the access of SET to its key, which is read only for GET.
func setAccess(words [][]byte) string {
	for _, option := range words[3:] {
		if grammar.EqualFold(option, "GET") {
			return "RW access update"
		}
	}
	return "OW update"
}

func set(c *command.Call) error {
	k, value := c.Args.Key(), c.Args.Next()
	mode, old := setOptions(c)
	if err := c.Args.End(); err != nil {
		return err
	}

	if old {
		return setGet(c, k, value, mode)
	}
	done := c.Tx.Set(k, value, mode)

	if done {
		c.Reply.OK()
	} else {
		c.Reply.Null()
	}
	return nil
}

func setOptions(c *command.Call) (mode engine.SetMode, old bool) {
	var t ttlOption
	for c.Args.More() {
		switch {
		case !mode.XX && c.Args.Word("NX"):
			mode.NX = true
		case !mode.NX && c.Args.Word("XX"):
			mode.XX = true
		case c.Args.Word("GET"):
			old = true
		case parseTtlOption(&c.Args, &t, ttlKeep):
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	mode.KeepTTL = t.word == ttlKeep
	mode.ExpireAt = expireAt(c, t)
	return mode, old
}

// setGet sets a key that holds a string or is missing, and replies with its old value in any case.
// The old value is copied to the reply before it may be overwritten.
func setGet(c *command.Call, k engine.Key, value []byte, mode engine.SetMode) error {
	old, found, err := c.Tx.Get(k)
	if err != nil {
		return err
	}
	c.Reply.BulkOrNull(old, found)
	c.Tx.Set(k, value, mode)
	return nil
}

func getset(c *command.Call) error {
	k, value := c.Args.Key(), c.Args.Next()

	return setGet(c, k, value, engine.SetMode{})
}

func setnx(c *command.Call) error {
	k, value := c.Args.Key(), c.Args.Next()

	return c.ReplyFlag(c.Tx.Set(k, value, engine.SetMode{NX: true}), nil)
}

// setFor handles SETEX key seconds value and PSETEX key milliseconds value.
func (unit ttlWord) setFor(c *command.Call) error {
	k := c.Args.Key()
	expireAt := expireAt(c, ttlOption{unit, c.Args.Next()})
	value := c.Args.Next()
	if err := c.Args.End(); err != nil {
		return err
	}

	c.Tx.Set(k, value, engine.SetMode{ExpireAt: expireAt})

	return c.ReplyOK(nil)
}

// getex checks the number last, and not for a missing key, as Redis does.
func getex(c *command.Call) error {
	k := c.Args.Key()
	var t ttlOption
	for c.Args.More() && parseTtlOption(&c.Args, &t, ttlPersist) {
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	value, found, err := c.Tx.Get(k)
	if err != nil {
		return err
	}
	if !found {
		c.Reply.Null()
		return nil
	}
	expireAt := expireAt(c, t)
	if c.Args.Err != nil {
		return c.Args.Err
	}

	c.Reply.Bulk(value)
	switch t.word {
	case ttlNotGiven:
	case ttlPersist:
		c.Tx.Persist(k)
	default:
		c.Tx.Expire(k, expireAt, 0)
	}
	return nil
}

// ttlWord is an option for the expiry of a key.
type ttlWord uint8

const (
	ttlNotGiven ttlWord = iota
	ttlEX               // seconds from now
	ttlPX               // milliseconds from now
	ttlEXAT             // Unix seconds
	ttlPXAT             // Unix milliseconds
	ttlKeep             // unchanged
	ttlPersist          // none
)

var ttlWords = [...]string{
	ttlEX:      "EX",
	ttlPX:      "PX",
	ttlEXAT:    "EXAT",
	ttlPXAT:    "PXAT",
	ttlKeep:    "KEEPTTL",
	ttlPersist: "PERSIST",
}

// ttlOption is the option of a call for the expiry of a key.
type ttlOption struct {
	word ttlWord
	// the argument of EX, PX, EXAT and PXAT; expireAt parses it after all options have been checked
	amount []byte
}

// parseTtlOption parses the next argument if it is an option for the expiry: EX, PX, EXAT, PXAT, or
// other, which the command allows. Two different options are an error; if one is given twice, the
// last counts.
func parseTtlOption(a *command.Args, t *ttlOption, other ttlWord) bool {
	for w := ttlEX; w <= ttlPersist; w++ {
		if (w <= ttlPXAT || w == other) && (t.word == ttlNotGiven || t.word == w) && a.Word(ttlWords[w]) {
			t.word = w
			if w <= ttlPXAT {
				t.amount = a.Next()
			}
			return true
		}
	}
	return false
}

// expireAt returns the time at which the options make the key expire, Unix ms; 0 if there is none.
func expireAt(c *command.Call, t ttlOption) int64 {
	if t.word == ttlNotGiven || t.word > ttlPXAT {
		return 0
	}
	unit := int64(1)
	if t.word == ttlEX || t.word == ttlEXAT {
		unit = 1000
	}
	return c.Deadline(t.amount, 1, unit, t.word == ttlEXAT || t.word == ttlPXAT)
}
