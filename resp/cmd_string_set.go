package resp

import "rlserver/engine"

func init() {
	register(
		&command{name: "set", arity: -3, flags: write | denyOOM, keys: []keySpec{keyVariable("RW access update", 1, setAccess)},
			syntax: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
			group:  "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Set the string value of a key",
			run:        set},
		&command{name: "setnx", arity: 3, flags: write | denyOOM | fast, keys: []keySpec{key("OW insert", 1)},
			syntax: "key value", group: "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Set the value of a key, only if the key does not exist",
			run:        setnx},
		&command{name: "setex", arity: 4, flags: write | denyOOM, keys: []keySpec{key("OW update", 1)},
			syntax: "key seconds value", group: "string", since: "2.0.0",
			complexity: "O(1)",
			summary:    "Set the value and expiration of a key",
			run:        func(c *call) error { return setFor(c, ttlEX) }},
		&command{name: "psetex", arity: 4, flags: write | denyOOM, keys: []keySpec{key("OW update", 1)},
			syntax: "key milliseconds value", group: "string", since: "2.6.0",
			complexity: "O(1)",
			summary:    "Set the value and expiration in milliseconds of a key",
			run:        func(c *call) error { return setFor(c, ttlPX) }},
		&command{name: "getset", arity: 3, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key value", group: "string", since: "1.0.0", deprecated: "6.2.0", replacedBy: "`SET` with the `!GET` argument",
			complexity: "O(1)",
			summary:    "Set the string value of a key and return its old value",
			run:        getset},
		&command{name: "getex", arity: -2, flags: write | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
			group:  "string", since: "6.2.0",
			complexity: "O(1)",
			summary:    "Get the value of a key and optionally set its expiration",
			run:        getex},
	)
}

// setAccess is how SET uses its key: it reads it only for GET.
func setAccess(words [][]byte) string {
	for _, option := range words[3:] {
		if equalFold(option, "GET") {
			return "RW access update"
		}
	}
	return "OW update"
}

// set handles SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds |
// PXAT unix-time-milliseconds | KEEPTTL].
func set(c *call) error {
	k, value := c.args.key(), c.args.next()
	mode, old := c.setOptions()
	if err := c.args.end(); err != nil {
		return err
	}

	if old {
		return setGet(c, k, value, mode)
	}
	done := c.tx.Set(k, value, mode)

	if done {
		c.reply.ok()
	} else {
		c.reply.null()
	}
	return nil
}

// setOptions takes the options of SET; old is GET.
func (c *call) setOptions() (mode engine.SetMode, old bool) {
	var t ttlOption
	for c.args.more() {
		switch {
		case !mode.XX && c.args.word("NX"):
			mode.NX = true
		case !mode.NX && c.args.word("XX"):
			mode.XX = true
		case c.args.word("GET"):
			old = true
		case c.args.ttlOption(&t, ttlKeep):
		default:
			c.args.fail(engine.ErrSyntax)
		}
	}
	mode.KeepTTL = t.word == ttlKeep
	mode.ExpireAt = c.expireAt(t)
	return mode, old
}

// setGet sets a key that holds a string, or nothing, and answers with what it held, whether it was set or not.
// The old value is answered before it may be written over.
func setGet(c *call, k engine.Key, value []byte, mode engine.SetMode) error {
	old, found, err := c.tx.Get(k)
	if err != nil {
		return err
	}
	c.reply.bulkOrNull(old, found)
	c.tx.Set(k, value, mode)
	return nil
}

// getset handles GETSET key value.
func getset(c *call) error {
	k, value := c.args.key(), c.args.next()
	if err := c.args.end(); err != nil {
		return err
	}

	return setGet(c, k, value, engine.SetMode{})
}

// setnx handles SETNX key value.
func setnx(c *call) error {
	k, value := c.args.key(), c.args.next()
	if err := c.args.end(); err != nil {
		return err
	}

	done := c.tx.Set(k, value, engine.SetMode{NX: true})

	c.reply.flag(done)
	return nil
}

// setFor handles SETEX key seconds value and PSETEX key milliseconds value.
func setFor(c *call, unit ttlWord) error {
	k := c.args.key()
	expireAt := c.expireAt(ttlOption{unit, c.args.next()})
	value := c.args.next()
	if err := c.args.end(); err != nil {
		return err
	}

	c.tx.Set(k, value, engine.SetMode{ExpireAt: expireAt})

	c.reply.ok()
	return nil
}

// getex handles GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST].
// As in Redis the number is looked at last of all, and not for a missing key.
func getex(c *call) error {
	k := c.args.key()
	var t ttlOption
	for c.args.more() && c.args.ttlOption(&t, ttlPersist) {
	}
	if err := c.args.end(); err != nil {
		return err
	}

	value, found, err := c.tx.Get(k)
	if err != nil {
		return err
	}
	if !found {
		c.reply.null()
		return nil
	}
	expireAt := c.expireAt(t)
	if c.args.err != nil {
		return c.args.err
	}

	c.reply.bulk(value)
	switch t.word {
	case ttlUnsaid:
	case ttlPersist:
		c.tx.Persist(k)
	default:
		c.tx.Expire(k, expireAt, 0)
	}
	return nil
}

// ttlWord is an option that says what becomes of a key's deadline.
type ttlWord uint8

const (
	ttlUnsaid  ttlWord = iota
	ttlEX              // seconds from now
	ttlPX              // milliseconds from now
	ttlEXAT            // Unix seconds
	ttlPXAT            // Unix milliseconds
	ttlKeep            // as it is
	ttlPersist         // none
)

var ttlWords = [...]string{ttlEX: "EX", ttlPX: "PX", ttlEXAT: "EXAT", ttlPXAT: "PXAT", ttlKeep: "KEEPTTL", ttlPersist: "PERSIST"}

// ttlOption is what the options of a call say of a key's deadline.
type ttlOption struct {
	word   ttlWord
	amount []byte // of EX, PX, EXAT and PXAT: expireAt looks at it, when it is known that all options are in order
}

// ttlOption takes an option of a key's deadline, if one stands next: EX, PX, EXAT, PXAT or the other one that the command knows.
// Two different ones do not go together; of the same one twice the last counts.
func (a *args) ttlOption(t *ttlOption, other ttlWord) bool {
	for w := ttlEX; w <= ttlPersist; w++ {
		if (w <= ttlPXAT || w == other) && (t.word == ttlUnsaid || t.word == w) && a.word(ttlWords[w]) {
			t.word = w
			if w <= ttlPXAT {
				t.amount = a.next()
			}
			return true
		}
	}
	return false
}

// expireAt is the moment that the options say, Unix ms; 0 if they say none.
func (c *call) expireAt(t ttlOption) int64 {
	if t.word == ttlUnsaid || t.word > ttlPXAT {
		return 0
	}
	unit := int64(1)
	if t.word == ttlEX || t.word == ttlEXAT {
		unit = 1000
	}
	return c.deadline(t.amount, 1, unit, t.word == ttlEXAT || t.word == ttlPXAT)
}
