package lists

import (
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/list"
	"rlserver/resp/command"
)

func init() {
	command.Register("list",
		pushes("lpush", false, false), pushes("rpush", true, false),
		pushes("lpushx", false, true), pushes("rpushx", true, true),
		command.OnKey("lset", 4, command.Write|command.DenyOOM, "RW update", lset),
		command.OnKey("linsert", 5, command.Write|command.DenyOOM, "RW insert", linsert),
	)
}

const (
	errNoKey   = engine.Error("ERR no such key")
	errNoIndex = engine.Error("ERR index out of range")
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
