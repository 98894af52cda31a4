package resp

import (
	"rlserver/engine"
)

// storeTries is how often a result is worked out without locks, before it is under them: each time the sources may have changed meanwhile.
const storeTries = 3

// store lets dst hold what is made of the sorted sets of some keys, and answers how many members that are. If it takes long, the members are worked out when
// the locks are let go, of the sets as they are now, and stored if no set has changed since: then it is as if all had been done at the end.
func (c *call) store(dst engine.Key, keys []engine.Key, sets []engine.ZSet, long bool, combine func([]engine.ZSet) engine.ZMembers) error {
	if !long || c.executing {
		return c.storeMembers(dst, combine(sets))
	}
	w := &storing{dst: dst, sources: keys, keys: c.keys, combine: combine}
	w.watch(c.tx, sets)
	c.postpone(func(c *call) error {
		for try := 1; ; try++ {
			if done, err := w.try(c, try == storeTries); done {
				return err
			}
		}
	})
	return nil
}

func (c *call) storeMembers(dst engine.Key, members engine.ZMembers) error {
	if err := c.tx.RoomToStore(dst, members); err != nil {
		return err
	}
	c.reply.count(c.tx.ZStore(dst, members))
	return nil
}

// storing is a result that is worked out while no lock is held.
type storing struct {
	dst           engine.Key
	sources, keys []engine.Key // keys are all of them
	sets          []engine.ZSet
	combine       func([]engine.ZSet) engine.ZMembers
	changes       engine.Watch // of the sources
}

// watch begins to watch the sources, and keeps what they hold.
func (w *storing) watch(tx *engine.Tx, sets []engine.ZSet) {
	w.sets = sets
	keepAll(w.sets)
	for _, k := range w.sources {
		tx.Watch(&w.changes, k)
	}
}

// try stores the members that are made of the sets, if these are still what the sources hold. If they are not, it takes those of now, and works under the locks
// if it is the last try.
func (w *storing) try(c *call, last bool) (done bool, err error) {
	members := c.tx.Prepare(w.combine(w.sets))
	c.tx.Begin(c.env.clock(), c.db, w.keys, true)
	defer func() { sessionOf(c).see(c.tx.End()) }()
	intact := c.tx.Intact(&w.changes)
	c.tx.Unwatch(&w.changes)
	if intact {
		return true, c.storeMembers(w.dst, members)
	}
	sets, err := c.tx.ZSets(w.sources)
	switch {
	case err != nil:
		return true, err
	case last:
		return true, c.storeMembers(w.dst, w.combine(sets))
	}
	w.watch(c.tx, sets)
	return false, nil
}
