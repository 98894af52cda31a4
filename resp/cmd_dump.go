package resp

import (
	"errors"

	"rlserver/engine"
	"rlserver/rdb"
)

func init() {
	register(
		&command{name: "dump", arity: 2, flags: readonly, keys: []keySpec{key("RO access", 1)}, tips: "nondeterministic_output",
			syntax: "key", group: "generic", since: "2.6.0",
			complexity: "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
			summary:    "Return a serialized version of the value stored at the specified key.",
			run:        dump},
		&command{name: "restore", arity: -4, flags: write | denyOOM, keys: []keySpec{key("OW update", 1)}, categories: "dangerous",
			syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]", group: "generic", since: "2.6.0",
			complexity: "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
			summary:    "Create a key using the provided serialized value, previously obtained using DUMP.",
			prepare:    readPayload,
			run:        restore},
	)
}

const (
	errIdleTime    = engine.Error("ERR Invalid IDLETIME value, must be >= 0")
	errFreq        = engine.Error("ERR Invalid FREQ value, must be >= 0 and <= 255")
	errBusyKey     = engine.Error("BUSYKEY Target key name already exists.")
	errTTLNegative = engine.Error("ERR Invalid TTL value, must be >= 0")
	errPayload     = engine.Error("ERR DUMP payload version or checksum are wrong")
	errBadData     = engine.Error("ERR Bad data format")
)

// dump handles DUMP key. What is large is written down when the lock is let go of, but for hashes.
func dump(c *call) error {
	content, ok := c.tx.Content(c.args.key())
	if !ok {
		c.reply.null()
		return nil
	}
	var b []byte
	switch content.Type {
	case engine.TypeHash:
		b = rdb.AppendHash(b, content.Hash.Len())
		for field, value := range content.Hash.All() {
			b = rdb.AppendText(rdb.AppendText(b, field), value)
		}
	}
	c.postpone(func(c *call) error {
		switch content.Type {
		case engine.TypeString:
			b = rdb.AppendString(b, content.Text)
		case engine.TypeZSet:
			b = rdb.AppendSortedSet(b, content.ZSet.Len())
			for member, score := range content.ZSet.Members().All() {
				b = rdb.AppendMember(b, member, score)
			}
		case engine.TypeHash: // written down already
		default:
			b = rdb.AppendLimiter(b, content.Type.String(), content.Numbers)
		}
		c.reply.bulk(rdb.AppendFooter(b))
		return nil
	})
	return nil
}

// payload is what the payload of RESTORE says.
type payload struct {
	value *engine.Restored
	err   error
}

// readPayload reads the payload of a call before any lock is taken.
func readPayload(c *call, words [][]byte) {
	p := c.read(words[3])
	c.ready = p
	if p.err == nil {
		c.makeRoomFor(p.value.Weight)
	}
}

// effectWeight is what an element of a collection takes until the journal has it.
const effectWeight = 256

func (c *call) read(text []byte) *payload {
	v, err := rdb.Decode(text, c.env.engine.Budget()) // all keys may go
	var foreign rdb.ForeignError
	switch {
	case errors.Is(err, rdb.ErrChecksum):
		return &payload{err: errPayload}
	case errors.Is(err, rdb.ErrTooLarge):
		return &payload{err: engine.ErrOutOfMemory}
	case errors.As(err, &foreign):
		return &payload{err: engine.Error("ERR Bad data format: " + err.Error() + ", which this server has no type for")}
	case err != nil:
		return &payload{err: errBadData}
	}
	r := restored(&v)
	if !r.Valid() {
		return &payload{err: errBadData}
	}
	return &payload{value: r}
}

func restored(v *rdb.Value) *engine.Restored {
	r := &engine.Restored{Text: v.Text, Pairs: v.Pairs, Weight: v.Size + int64(len(v.Pairs)/2+len(v.Members))*effectWeight}
	switch v.Kind {
	case rdb.String:
		r.Type = engine.TypeString
	case rdb.Hash:
		r.Type = engine.TypeHash
	case rdb.SortedSet:
		r.Type = engine.TypeZSet
		r.Members = make([]engine.ZMember, len(v.Members))
		for i, m := range v.Members {
			r.Members[i] = engine.ZMember{Member: m.Name, Score: m.Score}
		}
	case rdb.Limiter:
		r.Type, r.Numbers = engine.Type(v.Type), v.Numbers
	}
	return r
}

// restoring is what the options of RESTORE say.
type restoring struct {
	replace, absolute bool
	idle, uses        int64 // -1: they do not say
}

// restore handles RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]. As in Redis the options are
// looked at first.
func restore(c *call) error {
	k := c.args.key()
	ttl, text := args{list: [][]byte{c.args.next()}}, c.args.next()
	o := c.args.restoring()
	if err := c.args.end(); err != nil {
		return err
	}
	if !o.replace && c.tx.Exists(k) {
		return errBusyKey
	}
	expireAt := ttl.integer()
	switch {
	case ttl.err != nil:
		return ttl.err
	case expireAt < 0:
		return errTTLNegative
	case expireAt > 0 && !o.absolute:
		expireAt += c.tx.Now() // beyond the end of time it is a time that has passed, as for Redis
	}
	p, ok := c.ready.(*payload)
	if !ok || c.executing {
		p = c.read(text)
	}
	c.ready = nil
	if p.err != nil {
		return p.err
	}
	p.value.ExpireAt, p.value.Idle, p.value.Uses = expireAt, o.idle, o.uses

	if err := c.tx.Restore(k, p.value); err != nil {
		return err
	}

	c.reply.ok()
	return nil
}

func (a *args) restoring() restoring {
	o := restoring{idle: -1, uses: -1}
	for a.more() {
		switch {
		case a.word("REPLACE"):
			o.replace = true
		case a.word("ABSTTL"):
			o.absolute = true
		case a.left() > 1 && o.uses == -1 && a.word("IDLETIME"):
			if o.idle = a.integer(); o.idle < 0 {
				a.fail(errIdleTime)
			}
		case a.left() > 1 && o.idle == -1 && a.word("FREQ"):
			if o.uses = a.integer(); o.uses < 0 || o.uses > 255 {
				a.fail(errFreq)
			}
		default:
			a.fail(engine.ErrSyntax)
		}
	}
	return o
}
