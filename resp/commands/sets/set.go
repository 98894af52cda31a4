package sets

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("set",
		command.OnKey("sadd", -3, command.Write|command.DenyOOM|command.Fast, "RW insert", sadd),
		command.OnKey("srem", -3, command.Write|command.Fast, "RW delete", srem),
		command.OnKey("smembers", 2, command.Readonly, "RO access", smembers),
		command.OnKey("sismember", 3, command.Readonly|command.Fast, "RO", sismember),
		command.OnKey("smismember", -3, command.Readonly|command.Fast, "RO access", smismember),
		command.OnKey("scard", 2, command.Readonly|command.Fast, "RO", command.Length((*engine.Tx).Members)),
		&command.Command{Name: "smove", Arity: 4, Flags: command.Write | command.Fast,
			Keys: []command.KeySpec{command.Key("RW access delete", 1), command.Key("RW insert", 2)}, Run: smove},
		command.OnKey("sscan", -3, command.Readonly, "RO access", sscan),
		command.OnKey("spop", -2, command.Write|command.Fast, "RW access delete", spop),
		command.OnKey("srandmember", -2, command.Readonly, "RO access", srandmember),
	)
}

// open ends the arguments, and returns the set that a key holds.
func open(c *command.Call, k engine.Key) (object.SetView, error) {
	if err := c.Args.End(); err != nil {
		return object.SetView{}, err
	}
	return c.Tx.Members(k)
}

func sadd(c *command.Call) error {
	k, members := c.Args.Key(), c.Args.Rest()
	s, err := open(c, k)
	if err != nil {
		return err
	}
	added := 0
	for i, m := range members {
		if !s.Has(m) {
			s = object.SetIn(c.Tx.Insert(k, object.TypeSet, 0, members[i]))
			added++
		}
	}

	return c.ReplyCount(added, nil)
}

func srem(c *command.Call) error {
	k, members := c.Args.Key(), c.Args.Rest()
	if _, err := open(c, k); err != nil {
		return err
	}

	return c.ReplyCount(c.Tx.SRem(k, members...), nil)
}

func smembers(c *command.Call) error {
	s, err := open(c, c.Args.Key())
	if err != nil {
		return err
	}

	n := s.Len()
	c.Visits(n)
	if n <= command.LongReply {
		writeMembers(&c.Reply, n, ordered(s))
		return nil
	}
	kept := s.Keep()
	c.Postpone(func(c *command.Call) error {
		writeMembers(&c.Reply, n, kept)
		return nil
	})
	return nil
}

// sortedInts is up to how many members Redis keeps a set of integers sorted by default.
const sortedInts = 512

// ordered yields the members of a set: in ascending order, if Redis would.
func ordered(s object.SetView) iter.Seq[string] {
	if !s.Ints() || s.Len() > sortedInts {
		return s.All()
	}
	return slices.Values(slices.SortedFunc(s.All(), func(a, b string) int {
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		return cmp.Compare(x, y)
	}))
}

func writeMembers(r *wire.Reply, n int, members iter.Seq[string]) {
	r.Set(n)
	for m := range members {
		r.BulkString(m)
	}
}

func sismember(c *command.Call) error {
	k, member := c.Args.Key(), c.Args.Next()
	s, err := open(c, k)
	return c.ReplyFlag(s.Has(member), err)
}

func smismember(c *command.Call) error {
	k, members := c.Args.Key(), c.Args.Rest()
	s, err := open(c, k)
	if err != nil {
		return err
	}

	c.Reply.Array(len(members))
	for _, m := range members {
		c.Reply.Flag(s.Has(m))
	}
	return nil
}

func smove(c *command.Call) error {
	from, to, member := c.Args.Key(), c.Args.Key(), c.Args.Next()
	s, err := open(c, from)
	if err != nil {
		return err
	}
	if s.Len() == 0 {
		return c.ReplyFlag(false, nil)
	}
	target, err := c.Tx.Members(to)
	if err != nil {
		return err
	}
	found := s.Has(member)
	if found && !from.Is(to) {
		if !target.Has(member) {
			c.Tx.Insert(to, object.TypeSet, 0, member)
		}
		c.Tx.SRem(from, member)
	}

	return c.ReplyFlag(found, nil)
}

func sscan(c *command.Call) error {
	all := func(k engine.Key) (int, command.Scan, error) {
		s, err := c.Tx.Members(k)
		return s.Len(), func(cursor uint64, n int, visit func(command.Element)) (uint64, error) {
			return s.Scan(cursor, n, func(member string) { visit(command.Element{Name: member}) }), nil
		}, err
	}
	return c.ScanElements(false, all, nil)
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
