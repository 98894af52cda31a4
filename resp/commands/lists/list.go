package lists

import (
	"math"
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/list"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("list",
		pushes("lpush", false, false), pushes("rpush", true, false),
		pushes("lpushx", false, true), pushes("rpushx", true, true),
		command.OnKey("lset", 4, command.Write|command.DenyOOM, "RW update", lset),
		command.OnKey("linsert", 5, command.Write|command.DenyOOM, "RW insert", linsert),
		command.OnKey("llen", 2, command.Readonly|command.Fast, "RO", command.Length((*engine.Tx).List)),
		command.OnKey("lrange", 4, command.Readonly, "RO access", lrange),
		command.OnKey("lindex", 3, command.Readonly, "RO access", lindex),
		command.OnKey("lpos", -3, command.Readonly, "RO access", lpos),
	)
}

const (
	errNoKey    = engine.Error("ERR no such key")
	errNoIndex  = engine.Error("ERR index out of range")
	errRankZero = engine.Error("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
		"or use negative to start from the end of the list")
	errCount  = engine.Error("ERR COUNT can't be negative")
	errMaxLen = engine.Error("ERR MAXLEN can't be negative")
)

// pushes declares LPUSH, RPUSH, LPUSHX or RPUSHX, see push.
func pushes(name string, right, exists bool) *command.Command {
	return command.OnKey(name, -3, command.Write|command.DenyOOM|command.Fast, "RW insert",
		func(c *command.Call) error { return push(c, right, exists) })
}

// open ends the arguments, and returns the list that a key holds.
func open(c *command.Call, k engine.Key) (list.View, error) {
	if err := c.Args.End(); err != nil {
		return list.View{}, err
	}
	return c.Tx.List(k)
}

// push handles LPUSH, RPUSH, LPUSHX and RPUSHX key element [element ...]. right: behind the last
// element; exists: only if the list exists.
func push(c *command.Call, right, exists bool) error {
	k, elements := c.Args.Key(), c.Args.Rest()
	l, err := open(c, k)
	if err != nil {
		return err
	}
	n := l.Len()
	switch {
	case exists && n == 0:
		return c.ReplyCount(0, nil)
	case right:
		c.Tx.Insert(k, object.TypeList, n, elements...)
	default:
		c.Tx.Insert(k, object.TypeList, 0, reversed(elements)...)
	}

	return c.ReplyCount(n+len(elements), nil)
}

// reversed returns elements from the last to the first.
func reversed(elements [][]byte) [][]byte {
	if len(elements) > 1 {
		elements = slices.Clone(elements)
		slices.Reverse(elements)
	}
	return elements
}

func lset(c *command.Call) error {
	k, index, element := c.Args.Key(), command.Args{List: [][]byte{c.Args.Next()}}, c.Args.Next()
	l, err := open(c, k)
	switch {
	case err != nil:
		return err
	case l.Len() == 0:
		return errNoKey
	}
	i, ok := rank(index.Integer(), l.Len())
	switch {
	case index.Err != nil:
		return index.Err
	case !ok:
		return errNoIndex
	}
	c.Tx.Insert(k, object.TypeList, i, element)
	c.Tx.RemoveSpan(k, i+1, i+2)

	return c.ReplyOK(nil)
}

func linsert(c *command.Call) error {
	k, after := c.Args.Key(), c.Args.Either("AFTER", "BEFORE")
	pivot, element := c.Args.Next(), c.Args.Next()
	l, err := open(c, k)
	if err != nil {
		return err
	}
	n := l.Len()
	if n == 0 {
		return c.ReplyCount(0, nil)
	}
	c.Visits(n)
	at, found := 0, false
	for e := range l.Range(0, n) {
		if found = string(e) == string(pivot); found {
			break
		}
		at++
	}
	if !found {
		return c.ReplyInteger(-1, nil)
	}
	if after {
		at++
	}
	c.Tx.Insert(k, object.TypeList, at, element)

	return c.ReplyCount(n+1, nil)
}

// rank returns the rank of an element by its index, which counts from the end if it is negative; ok
// is false if there is no such element.
func rank(index int64, n int) (i int, ok bool) {
	if index < 0 {
		index += int64(n)
	}
	return int(index), 0 <= index && index < int64(n)
}

func lrange(c *command.Call) error {
	k, start, stop := c.Args.Key(), c.Args.Integer(), c.Args.Integer()
	l, err := open(c, k)
	if err != nil {
		return err
	}

	lo, hi := span(start, stop, l.Len())
	writeSpan(c, l, lo, hi, false)
	return nil
}

// span returns the ranks from lo up to but not including hi of the elements from an index up to and
// including another, which count from the end if they are negative.
func span(start, stop int64, n int) (lo, hi int) {
	if start < 0 {
		start = max(start+int64(n), 0)
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n)-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop) + 1
}

// writeSpan replies with elements, backward from the last if reverse. A long reply is written after
// the locks are released.
func writeSpan(c *command.Call, l list.View, lo, hi int, reverse bool) {
	c.Visits(hi - lo)
	if hi-lo <= command.LongReply {
		writeElements(&c.Reply, l, lo, hi, reverse)
		return
	}
	kept := l.Keep(lo, hi)
	c.Postpone(func(c *command.Call) error {
		writeElements(&c.Reply, kept, 0, kept.Len(), reverse)
		return nil
	})
}

func writeElements(r *wire.Reply, l list.View, lo, hi int, reverse bool) {
	r.Array(hi - lo)
	elements := l.Range
	if reverse {
		elements = l.Backward
	}
	for e := range elements(lo, hi) {
		r.Bulk(e)
	}
}

func lindex(c *command.Call) error {
	k, index := c.Args.Key(), command.Args{List: [][]byte{c.Args.Next()}}
	l, err := open(c, k)
	if err != nil {
		return err
	}
	if l.Len() == 0 {
		c.Reply.Null()
		return nil
	}
	i, ok := rank(index.Integer(), l.Len())
	switch {
	case index.Err != nil:
		return index.Err
	case ok:
		c.Reply.Bulk(l.At(i))
	default:
		c.Reply.Null()
	}
	return nil
}

// search holds the options of LPOS.
type search struct {
	rank   int64 // of the first match that counts, backward from the end if it is negative
	count  int64 // 0: all; -1: not given
	maxLen int64 // elements compared; 0: all
}

func lpos(c *command.Call) error {
	k, element := c.Args.Key(), c.Args.Next()
	s := parseSearch(&c.Args)
	l, err := open(c, k)
	if err != nil {
		return err
	}
	c.Visits(l.Len())
	found := s.find(l, element)
	switch {
	case s.count >= 0:
		c.Reply.Array(len(found))
		for _, i := range found {
			c.Reply.Count(i)
		}
	case len(found) > 0:
		c.Reply.Count(found[0])
	default:
		c.Reply.Null()
	}
	return nil
}

func parseSearch(a *command.Args) search {
	s := search{rank: 1, count: -1}
	for a.More() {
		switch left := a.Left(); {
		case left > 1 && a.Word("RANK"):
			s.rank = a.Integer()
			switch {
			case a.Err != nil:
			case s.rank == 0:
				a.Fail(errRankZero)
			case s.rank == math.MinInt64:
				a.Fail(command.ErrBelowLongMin)
			}
		case left > 1 && a.Word("COUNT"):
			s.count = a.IntegerFrom(0, errCount)
		case left > 1 && a.Word("MAXLEN"):
			s.maxLen = a.IntegerFrom(0, errMaxLen)
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	return s
}

// find returns the ranks of the elements that match.
func (s search) find(l list.View, element []byte) (found []int) {
	n := l.Len()
	at, step, elements, skip := 0, 1, l.Range(0, n), s.rank-1
	if s.rank < 0 {
		at, step, elements, skip = n-1, -1, l.Backward(0, n), -s.rank-1
	}
	compared := int64(0)
	for e := range elements {
		if string(e) == string(element) {
			if skip--; skip < 0 {
				found = append(found, at)
			}
			if s.count != 0 && int64(len(found)) >= max(s.count, 1) {
				break
			}
		}
		if compared++; compared == s.maxLen {
			break
		}
		at += step
	}
	return found
}
