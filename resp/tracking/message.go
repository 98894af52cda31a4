package tracking

import (
	"rlserver/resp/pubsub"
	"rlserver/resp/wire"
)

// invalidations is the channel of the messages to clients that know no others.
const invalidations = "__redis__:invalidate"

// send adds a message to clients; keys is nil if everything has changed. t.mu is held.
func (t *Table) send(m *pubsub.Conn, list []*Client, keys []string) {
	var targets []*pubsub.Client
	for _, c := range list {
		if to := t.target(m, c); to != nil {
			targets = append(targets, to)
		}
	}
	if len(targets) > 0 {
		m.Direct(targets, message(keys, true), message(keys, false))
	}
}

func message(keys []string, resp3 bool) []byte {
	r := wire.Reply{RESP3: resp3}
	if resp3 {
		r.Push(2)
		r.BulkString("invalidate")
	} else {
		r.Array(3)
		r.BulkString("message")
		r.BulkString(invalidations)
	}
	if keys == nil {
		r.Null()
		return r.B
	}
	r.Array(len(keys))
	for _, key := range keys {
		r.BulkString(key)
	}
	return r.B
}

// target returns who gets the messages of a client that tracks; nil: nobody can.
func (t *Table) target(m *pubsub.Conn, c *Client) *pubsub.Client {
	mode := c.mode.Load()
	if mode.Redirect == 0 {
		if c.to.RESP3() {
			return c.to
		}
		return nil
	}
	to := t.Find(mode.Redirect)
	if to != nil {
		if to.RESP3() || to.Has() {
			return to
		}
		return nil
	}
	if c.broken.Store(true); c.to.RESP3() {
		r := wire.Reply{RESP3: true}
		r.Push(2)
		r.BulkString("tracking-redir-broken")
		r.Integer(mode.Redirect)
		m.Direct([]*pubsub.Client{c.to}, r.B, r.B)
	}
	return nil
}
