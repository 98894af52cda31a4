package sets

import (
	"iter"
	"maps"
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/command"
)

func init() {
	register("sinter", inter, "RW update")
	register("sunion", union, "OW update")
	register("sdiff", diff, "OW update")
	command.Register("set",
		&command.Command{Name: "sintercard", Arity: -3, Flags: command.Readonly | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RO access", 1)}, Run: sintercard},
	)
}

// register adds a command that replies with the result of an operation, and one with STORE that
// stores it with an access to the destination.
func register(name string, o operation, access string) {
	command.Register("set",
		&command.Command{Name: name, Arity: -2, Flags: command.Readonly,
			Keys: []command.KeySpec{command.KeysToEnd("RO access", 1, 1)}, Run: command.With(combine, o)},
		&command.Command{Name: name + "store", Arity: -3, Flags: command.Write | command.DenyOOM,
			Keys: []command.KeySpec{command.Key(access, 1), command.KeysToEnd("RO access", 2, 1)},
			Run:  command.With(store, o)},
	)
}

const (
	errNegativeLimit = engine.Error("ERR LIMIT can't be negative")
	errTooManyKeys   = engine.Error("ERR Number of keys can't be greater than number of args")
)

// operation is how sets are combined.
type operation struct {
	lookups  bool // one set is walked, and its members are looked up in the others: the first set,
	smallest bool // or the smallest
	// whether a member of the walked set belongs to the result, by how many of the others have it
	others func(having, others int) bool
}

var (
	union = operation{}
	inter = operation{lookups: true, smallest: true,
		others: func(having, others int) bool { return having == others }}
	diff = operation{lookups: true, others: func(having, _ int) bool { return having == 0 }}
)

// lookUpWork is the number of members that are visited in about the time of one lookup.
const lookUpWork = 8

func (o operation) long(sets []object.SetView) bool {
	walk := 0
	for _, s := range sets {
		walk += s.Len()
	}
	if o.lookups {
		walk = min(walk, lookUpWork*sets[o.walked(sets)].Len()*len(sets))
	}
	return walk > command.LongWork
}

func (o operation) walked(sets []object.SetView) (first int) {
	if o.smallest {
		for i, s := range sets {
			if s.Len() < sets[first].Len() {
				first = i
			}
		}
	}
	return first
}

// result yields the members of the result, each once.
func (o operation) result(sets []object.SetView) iter.Seq[string] {
	if !o.lookups {
		return func(yield func(string) bool) {
			seen := make(map[string]struct{})
			for _, s := range sets {
				for m := range ordered(s) {
					if _, again := seen[m]; again {
						continue
					}
					if seen[m] = struct{}{}; !yield(m) {
						return
					}
				}
			}
		}
	}
	walked := o.walked(sets)
	return func(yield func(string) bool) {
		for m := range ordered(sets[walked]) {
			having := 0
			for i, s := range sets {
				if i != walked && s.Has(object.BytesOf(m)) {
					having++
				}
			}
			if o.others(having, len(sets)-1) && !yield(m) {
				return
			}
		}
	}
}

// count returns how many of the others have each member of the walked set, or of any set without
// lookups, from the members of all sets as they were.
func (o operation) count(walked int, kept []iter.Seq[string]) map[string]int {
	having := make(map[string]int)
	if o.lookups {
		for m := range kept[walked] {
			having[m] = 0
		}
	}
	for i, members := range kept {
		for m := range members {
			if _, known := having[m]; known && i != walked {
				having[m]++
			} else if !o.lookups {
				having[m] = 0
			}
		}
	}
	return having
}

// later returns the result as it is now, to be computed after the locks are released.
func (o operation) later(sets []object.SetView) func() []string {
	walked, kept := o.walked(sets), make([]iter.Seq[string], len(sets))
	for i, s := range sets {
		kept[i] = s.Keep()
	}
	return func() []string {
		having := o.count(walked, kept)
		if o.lookups {
			maps.DeleteFunc(having, func(_ string, n int) bool { return !o.others(n, len(sets)-1) })
		}
		return slices.Collect(maps.Keys(having))
	}
}

// combine handles SINTER, SUNION and SDIFF key [key ...].
func combine(c *command.Call, o operation) error {
	sets, err := operands(c, int64(c.Args.Left()))
	if err != nil {
		return err
	}

	if !o.long(sets) {
		members := slices.Collect(o.result(sets))
		writeMembers(&c.Reply, len(members), slices.Values(members))
		return nil
	}
	c.TakesLong()
	later := o.later(sets)
	c.Postpone(func(c *command.Call) error {
		members := later()
		writeMembers(&c.Reply, len(members), slices.Values(members))
		return nil
	})
	return nil
}

// operands takes n keys and returns their sets.
func operands(c *command.Call, n int64) ([]object.SetView, error) {
	keys := c.Args.CountedKeys(n, 0)
	if c.Args.Err != nil {
		return nil, c.Args.Err
	}
	return lookup(c, keys)
}

func lookup(c *command.Call, keys []engine.Key) ([]object.SetView, error) {
	sets := make([]object.SetView, len(keys))
	for i, k := range keys {
		var err error
		if sets[i], err = c.Tx.Members(k); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// store handles SINTERSTORE, SUNIONSTORE and SDIFFSTORE destination key [key ...]. It computes the
// result under the locks.
func store(c *command.Call, o operation) error {
	dst := c.Args.Key()
	sets, err := operands(c, int64(c.Args.Left()))
	if err != nil {
		return err
	}

	if o.long(sets) {
		c.TakesLong()
	}
	var members [][]byte
	for m := range o.result(sets) {
		members = append(members, object.BytesOf(m))
	}
	c.Tx.Delete(dst)
	if len(members) > 0 {
		c.Tx.Insert(dst, object.TypeSet, 0, members...)
	}

	return c.ReplyCount(len(members), nil)
}

func sintercard(c *command.Call) error {
	n := c.Args.IntegerFrom(1, command.ErrNumKeys)
	if n > int64(c.Args.Left()) {
		c.Args.Fail(errTooManyKeys)
	}
	keys := c.Args.CountedKeys(n, 0)
	limit := int64(0)
	for c.Args.More() {
		if c.Args.Left() < 2 || !c.Args.Word("LIMIT") {
			return engine.ErrSyntax
		}
		limit = c.Args.IntegerFrom(0, errNegativeLimit)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	sets, err := lookup(c, keys)
	if err != nil {
		return err
	}
	if inter.long(sets) {
		c.TakesLong()
	}
	found := 0
	for range inter.result(sets) {
		if found++; int64(found) == limit {
			break
		}
	}

	return c.ReplyCount(found, nil)
}
