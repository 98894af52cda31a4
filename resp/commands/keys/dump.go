package keys

import (
	"errors"
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/internal/rdb"
	"rlserver/resp/command"
	"rlserver/zset"
)

func init() {
	command.Register("generic",
		command.OnKey("dump", 2, command.Readonly, "RO access", dump),
		&command.Command{Name: "restore", Arity: -4, Flags: command.Write | command.DenyOOM,
			Keys: command.OneKey("OW update"), Categories: "dangerous", Prepare: readPayload, Run: restore},
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

// dump handles DUMP key. A value is encoded after the lock is released if it is still valid then.
func dump(c *command.Call) error {
	content, ok := c.Tx.Content(c.Args.Key())
	if !ok {
		c.Reply.Null()
		return nil
	}
	if content.Many {
		return engine.ErrManyWritten
	}
	var b []byte
	if !content.Lasting {
		b = content.Append(nil)
	}
	c.Postpone(func(c *command.Call) error {
		if content.Lasting {
			b = content.Append(nil)
		}
		c.Reply.Bulk(rdb.AppendFooter(b))
		return nil
	})
	return nil
}

// payload is the decoded payload of RESTORE.
type payload struct {
	value *object.Restored
	err   error
}

// readPayload decodes the payload of a call before locks are taken.
func readPayload(c *command.Call, words [][]byte) {
	options := command.Args{List: words[4:]}
	if parseRestoring(&options); options.End() == nil {
		c.Ready = read(c, words[3], c.EvictFor)
	}
}

// effectWeight is the memory that an element of a collection takes until the journal has it, in
// bytes.
const effectWeight = 256

// read decodes a payload if its value fits in memory. evict is called with its size before that.
func read(c *command.Call, text []byte, evict func(bytes int64)) *payload {
	checked, err := rdb.Check(text, c.Env.Engine.Budget()) // all other keys may be evicted
	if err != nil {
		return &payload{err: refusal(err)}
	}
	weight := checked.Size + int64(checked.Elements)*effectWeight
	if evict(weight); !c.Env.Engine.RoomFor(weight) {
		return &payload{err: engine.ErrOutOfMemory}
	}
	v, err := checked.Value()
	if err != nil {
		return &payload{err: errBadData}
	}
	r := restored(&v)
	if r.Weight = weight; !r.Valid() {
		return &payload{err: errBadData}
	}
	return &payload{value: r}
}

// refusal returns the reply to a payload that cannot be decoded.
func refusal(err error) error {
	var foreign rdb.ForeignError
	switch {
	case errors.Is(err, rdb.ErrChecksum):
		return errPayload
	case errors.Is(err, rdb.ErrTooLarge):
		return engine.ErrOutOfMemory
	case errors.As(err, &foreign):
		return engine.Error("ERR Bad data format: " + err.Error() + ", which this server has no type for")
	}
	return errBadData
}

func restored(v *rdb.Value) *object.Restored {
	r := &object.Restored{Type: object.Type(v.Kind), Text: v.Text, Elements: v.Elements, Numbers: v.Numbers}
	for _, one := range v.Reservations {
		r.Reservations = append(r.Reservations, reserve.Reservation(one))
	}
	r.Terms, r.Ban = v.Terms, v.Ban
	r.Members = slices.Grow(r.Members, len(v.Members))
	for _, m := range v.Members {
		r.Members = append(r.Members, zset.Member{Member: m.Name, Score: m.Score})
	}
	return r
}

// restoring holds the options of RESTORE.
type restoring struct {
	replace, absolute bool
	idle, uses        int64 // -1: not given
}

// restore checks the options first, as Redis does.
func restore(c *command.Call) error {
	k := c.Args.Key()
	ttl, text := command.Args{List: [][]byte{c.Args.Next()}}, c.Args.Next()
	o := parseRestoring(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}
	if !o.replace && c.Tx.Exists(k) {
		return errBusyKey
	}
	expireAt := ttl.Integer()
	switch {
	case ttl.Err != nil:
		return ttl.Err
	case expireAt < 0:
		return errTTLNegative
	case expireAt > 0 && !o.absolute:
		expireAt += c.Tx.Now() // may overflow into the past, as in Redis
	}
	p, ok := c.Ready.(*payload)
	if !ok || c.Executing {
		p = read(c, text, func(int64) {}) // nothing is evicted while locks are held
	}
	c.Ready = nil
	if p.err != nil {
		return p.err
	}
	p.value.ExpireAt, p.value.Idle, p.value.Uses = expireAt, o.idle, o.uses

	return c.ReplyOK(c.Tx.Restore(k, p.value))
}

func parseRestoring(a *command.Args) restoring {
	o := restoring{idle: -1, uses: -1}
	for a.More() {
		switch {
		case a.Word("REPLACE"):
			o.replace = true
		case a.Word("ABSTTL"):
			o.absolute = true
		case a.Left() > 1 && o.uses == -1 && a.Word("IDLETIME"):
			if o.idle = a.Integer(); o.idle < 0 {
				a.Fail(errIdleTime)
			}
		case a.Left() > 1 && o.idle == -1 && a.Word("FREQ"):
			if o.uses = a.Integer(); o.uses < 0 || o.uses > 255 {
				a.Fail(errFreq)
			}
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	return o
}
