package sets

import (
	"iter"
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("set",
		command.OnKey("spop", -2, command.Write|command.Fast, "RW access delete", spop),
		command.OnKey("srandmember", -2, command.Readonly, "RO access", srandmember),
	)
}

// spop handles SPOP key [count]. Its effects name the members, so replay needs no randomness.
func spop(c *command.Call) error {
	k := c.Args.Key()
	if c.Args.Left() > 1 {
		return engine.ErrSyntax
	}
	counted, n := c.Args.More(), int64(1)
	if counted {
		n = c.Args.IntegerFrom(0, command.ErrNotPositive)
	}
	s, err := open(c, k)
	if err != nil {
		return err
	}
	if !counted {
		m, found := s.Random(c.Random)
		c.Reply.BulkOrNull(object.BytesOf(m), found)
		if found {
			c.Tx.SRem(k, object.BytesOf(m))
		}
		return nil
	}
	popMany(c, k, s, n)
	return nil
}

// popMany removes n random members, which all have the same probability, and replies with them.
func popMany(c *command.Call, k engine.Key, s object.SetView, n int64) {
	n = min(n, int64(s.Len()))
	c.Visits(int(n))
	if n == int64(s.Len()) {
		writeMembers(&c.Reply, int(n), ordered(s))
		c.Tx.Delete(k)
		return
	}
	popped := make([]string, 0, n)
	for m := range s.Sample(c.Random, n) {
		if len(popped) < int(n) {
			popped = append(popped, m)
		}
	}
	writeMembers(&c.Reply, int(n), slices.Values(popped))
	for _, m := range popped {
		c.Tx.SRem(k, object.BytesOf(m))
	}
}

func srandmember(c *command.Call) error {
	k := c.Args.Key()
	if c.Args.Left() > 1 {
		return engine.ErrSyntax
	}
	if !c.Args.More() {
		s, err := open(c, k)
		m, found := s.Random(c.Random)
		return c.ReplyOrNull(object.BytesOf(m), found, err)
	}
	n, _ := c.Args.Picks("")
	s, err := open(c, k)
	if err != nil {
		return err
	}
	switch {
	case s.Len() == 0:
		c.Reply.Array(0)
	case n >= int64(s.Len()):
		writePicked(&c.Reply, s.Len(), ordered(s))
	case n >= 0:
		writePicked(&c.Reply, int(n), s.Sample(c.Random, n))
	default:
		writePicked(&c.Reply, int(-n), s.Pick(c.Random, int(-n)))
	}
	return nil
}

func writePicked(r *wire.Reply, n int, members iter.Seq[string]) {
	r.Array(n)
	for m := range members {
		r.BulkString(m)
	}
}
