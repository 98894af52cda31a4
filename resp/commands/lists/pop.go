package lists

import (
	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/internal/list"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	const flags = command.Write | command.NoScript | command.Blocking
	ends := []command.KeySpec{command.Key("RW access delete", 1), command.Key("RW insert", 2)}
	command.Register("list",
		pops("lpop", false), pops("rpop", true),
		command.OnKey("ltrim", 4, command.Write, "RW delete", ltrim),
		command.OnKey("lrem", 4, command.Write, "RW delete", lrem),
		&command.Command{Name: "lmove", Arity: 5, Flags: command.Write | command.DenyOOM, Keys: ends, Run: lmove},
		&command.Command{Name: "rpoplpush", Arity: 3, Flags: command.Write | command.DenyOOM, Keys: ends,
			Run: mover{fromRight: true}.moveNow},
		&command.Command{Name: "lmpop", Arity: -4, Flags: command.Write | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RW access delete", 1)}, Run: lmpop},
		blockingPops("blpop", false), blockingPops("brpop", true),
		&command.Command{Name: "blmove", Arity: 6, Flags: flags | command.DenyOOM, Keys: ends, Run: blmove},
		&command.Command{Name: "brpoplpush", Arity: 4, Flags: flags | command.DenyOOM, Keys: ends,
			Run: command.With(moveOrWait, mover{fromRight: true})},
		&command.Command{Name: "blmpop", Arity: -5, Flags: command.Write | command.Blocking | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RW access delete", 2)}, Run: blmpop},
	)
}

// pops declares LPOP or RPOP, see pop.
func pops(name string, right bool) *command.Command {
	return command.OnKey(name, -2, command.Write|command.Fast, "RW access delete", command.With(pop, right))
}

// pop handles LPOP and RPOP key [count].
func pop(c *command.Call, right bool) error {
	k := c.Args.Key()
	counted, n := c.Args.More(), int64(1)
	if c.Args.Left() > 1 {
		return c.WrongArity()
	}
	if counted {
		n = c.Args.IntegerFrom(0, command.ErrNotPositive)
	}
	l, err := open(c, k)
	if err != nil {
		return err
	}
	lo, hi := ends(l, n, right)
	switch {
	case l.Len() == 0 && counted:
		c.Reply.NullArray()
	case l.Len() == 0:
		c.Reply.Null()
	case counted:
		writeSpan(c, l, lo, hi, right)
	default:
		c.Reply.Bulk(l.At(lo))
	}
	c.Tx.RemoveSpan(k, lo, hi)
	return nil
}

// ends returns the ranks of up to n elements at an end of a list.
func ends(l list.View, n int64, right bool) (lo, hi int) {
	hi = int(min(n, int64(l.Len())))
	if right {
		return l.Len() - hi, l.Len()
	}
	return 0, hi
}

func ltrim(c *command.Call) error {
	k, start, stop := c.Args.Key(), c.Args.Integer(), c.Args.Integer()
	l, err := open(c, k)
	if err != nil {
		return err
	}
	n := l.Len()
	lo, hi := span(start, stop, n)
	c.Visits(n - (hi - lo))
	c.Tx.RemoveSpan(k, hi, n)
	c.Tx.RemoveSpan(k, 0, lo)
	if n > 0 && hi-lo == n {
		c.Tx.Rewrote(k, effect.RemoveSpan)
	}

	return c.ReplyOK(nil)
}

func lrem(c *command.Call) error {
	k, count, element := c.Args.Key(), c.Args.Integer(), c.Args.Next()
	l, err := open(c, k)
	if err != nil {
		return err
	}
	c.Visits(l.Len())
	s := search{rank: 1, count: max(count, -count, 0)}
	if count < 0 {
		s.rank = -1
	}
	found := s.find(l, element)
	removeAll(c, k, found, count < 0)

	return c.ReplyCount(len(found), nil)
}

// removeAll removes the elements of some ranks, which ascend, or descend if reverse.
func removeAll(c *command.Call, k engine.Key, ranks []int, reverse bool) {
	at := func(i int) int { return ranks[len(ranks)-1-i] }
	if reverse {
		at = func(i int) int { return ranks[i] }
	}
	for i := 0; i < len(ranks); {
		hi := at(i) + 1
		lo := hi - 1
		for i++; i < len(ranks) && at(i) == lo-1; i++ {
			lo--
		}
		c.Tx.RemoveSpan(k, lo, hi)
	}
}

func lmove(c *command.Call) error {
	c.Args.CountedKeys(2, 2)
	m := mover{fromRight: c.Args.Either("RIGHT", "LEFT"), toRight: c.Args.Either("RIGHT", "LEFT")}
	if err := c.Args.End(); err != nil {
		return err
	}
	return m.moveNow(c)
}

// mover moves an element from an end of a list to an end of another.
type mover struct{ fromRight, toRight bool }

// moveNow handles LMOVE and RPOPLPUSH: it moves an element from the first key of the call to the
// second, and replies with it, or with null if there is none.
func (m mover) moveNow(c *command.Call) error {
	found, err := m.Pop(c.Tx, c.Keys, &c.Reply)
	if err == nil && !found {
		c.Reply.Null()
	}
	return err
}

// Pop implements command.Popper: it moves an element from the first key to the second, its target.
// It is inserted before it is removed, as a list that it is moved within keeps its deadline.
func (m mover) Pop(tx *engine.Tx, keys []engine.Key, r *wire.Reply) (found bool, err error) {
	from, to := keys[0], keys[1]
	l, err := tx.List(from)
	if err != nil || l.Len() == 0 {
		return false, err
	}
	if !tx.Join(keys[1:]) {
		return false, command.ErrTargetLocked
	}
	target, err := tx.List(to)
	if err != nil {
		return true, err
	}
	lo, hi := ends(l, 1, m.fromRight)
	element := append([]byte{}, l.At(lo)...)
	r.Bulk(element)
	at := 0
	if m.toRight {
		at = target.Len()
	} else if from.Is(to) {
		lo, hi = lo+1, hi+1
	}
	tx.Insert(to, object.TypeList, at, element)
	tx.RemoveSpan(from, lo, hi)
	return true, nil
}

// popper pops elements for a call: their number, from which end, and the form of the reply.
type popper struct {
	n     int64
	right bool
	many  bool // reply with the elements as an array, as LMPOP does; otherwise with one
}

// Pop implements command.Popper: it replies with the name of the first of the keys that has any
// elements, and these.
func (p popper) Pop(tx *engine.Tx, keys []engine.Key, r *wire.Reply) (found bool, err error) {
	k, l, err := first(tx, keys)
	if err != nil || l.Len() == 0 {
		return false, err
	}
	lo, hi := ends(l, p.n, p.right)
	r.Array(2)
	r.Bulk(k.Name)
	if p.many {
		writeElements(r, l, lo, hi, p.right)
	} else {
		r.Bulk(l.At(lo))
	}
	tx.RemoveSpan(k, lo, hi)
	return true, nil
}

// first returns the first of the keys whose list has elements, and a view of it.
func first(tx *engine.Tx, keys []engine.Key) (k engine.Key, l list.View, err error) {
	for _, k := range keys {
		if l, err = tx.List(k); err != nil || l.Len() > 0 {
			return k, l, err
		}
	}
	return k, l, nil
}

func lmpop(c *command.Call) error {
	keys, right, n := c.Args.Pops("LEFT", "RIGHT")
	if err := c.Args.End(); err != nil {
		return err
	}

	k, l, err := first(c.Tx, keys)
	if err != nil {
		return err
	}
	if l.Len() == 0 {
		c.Reply.NullArray()
		return nil
	}
	lo, hi := ends(l, n, right)
	c.Reply.Array(2)
	c.Reply.Bulk(k.Name)
	writeSpan(c, l, lo, hi, right)
	c.Tx.RemoveSpan(k, lo, hi)
	return nil
}

// popsMany returns what pops n elements for LMPOP and BLMPOP.
func popsMany(right bool, n int64) command.Popper { return popper{n: n, right: right, many: true} }

// blockingPops declares BLPOP or BRPOP key [key ...] timeout.
func blockingPops(name string, right bool) *command.Command {
	return &command.Command{Name: name, Arity: -3, Flags: command.Write | command.NoScript | command.Blocking,
		Keys: []command.KeySpec{{Access: "RW access delete", Begin: 1, Last: -2, Step: 1}},
		Run:  func(c *command.Call) error { return c.PopOne(popper{n: 1, right: right}) }}
}

func blmove(c *command.Call) error {
	ends := command.Args{List: c.Args.List[2:4]}
	m := mover{fromRight: ends.Either("RIGHT", "LEFT"), toRight: ends.Either("RIGHT", "LEFT")}
	if ends.Err != nil {
		return ends.Err
	}
	return moveOrWait(c, m)
}

// moveOrWait moves an element from the first key of the call to the second, or waits for one up to
// the timeout that is its last word.
func moveOrWait(c *command.Call, m mover) error {
	timeout := command.Args{List: c.Args.List[len(c.Args.List)-1:]}
	wait := timeout.Timeout()
	if timeout.Err != nil {
		return timeout.Err
	}
	return c.PopOrWait(c.Keys, 1, wait, m)
}

func blmpop(c *command.Call) error { return c.PopMany("LEFT", "RIGHT", popsMany) }
