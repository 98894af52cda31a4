package zsets

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/zset"
)

// storeTries is the number of tries to compute a result without locks, while the sources may
// change. After that it is computed under the locks.
const storeTries = 3

// writable returns an error if one of the sets is a log with too many hits to be written out.
func writable(sets []zset.View) error {
	for _, z := range sets {
		if !z.Writable() {
			return engine.ErrManyWritten
		}
	}
	return nil
}

// store stores in dst what combine returns for the sorted sets of some keys, and replies with the
// number of members. If that takes long, it is computed from clones after the locks are released,
// and stored if no source has changed since. The call then takes effect at its end.
func store(
	c *command.Call, dst engine.Key, keys []engine.Key, sets []zset.View, long, whole bool,
	combine func([]zset.View) zset.Members,
) error {
	if !long || c.Executing {
		return storeMembers(c, dst, combine(sets))
	}
	c.TakesLong()
	w := &Storing{Dst: dst, Sources: keys, Keys: c.Keys, Combine: combine, Whole: whole}
	w.Watch(c.Tx, sets)
	c.Postpone(func(c *command.Call) error {
		for try := 1; ; try++ {
			if done, err := w.Try(c, try == storeTries); done {
				return err
			}
		}
	})
	return nil
}

func storeMembers(c *command.Call, dst engine.Key, members zset.Members) error {
	if !members.Writable() {
		return engine.ErrManyWritten
	}
	if err := c.Tx.RoomToStore(dst, members); err != nil {
		return err
	}
	return c.ReplyCount(c.Tx.ZStore(dst, members), nil)
}

// Storing is a result that is computed while no lock is held.
type Storing struct {
	Dst           engine.Key
	Sources, Keys []engine.Key // Keys are Sources and Dst
	sets          []zset.View
	Combine       func([]zset.View) zset.Members
	Whole         bool         // Combine writes out whole sets
	changes       engine.Watch // of the sources
}

// Watch starts watching the sources, and clones their sets.
func (w *Storing) Watch(tx *engine.Tx, sets []zset.View) {
	w.sets = sets
	keepAll(w.sets)
	for _, k := range w.Sources {
		tx.Watch(&w.changes, k)
	}
}

// Try stores the result if the sources have not changed since Watch. If they have, it clones the
// current sets; the last try computes and stores the result under the locks.
func (w *Storing) Try(c *command.Call, last bool) (done bool, err error) {
	members := w.Combine(w.sets)
	if members.Writable() {
		members = c.Tx.Prepare(members)
	}
	c.Tx.Begin(c.Env.Clock(), c.DB, w.Keys, true)
	defer func() { c.Conn.See(c.Tx.End()) }()
	intact := c.Tx.Intact(&w.changes)
	c.Tx.Unwatch(&w.changes)
	if intact {
		return true, storeMembers(c, w.Dst, members)
	}
	sets, err := c.Tx.ZSets(w.Sources)
	if err == nil && w.Whole {
		err = writable(sets)
	}
	switch {
	case err != nil:
		return true, err
	case last:
		return true, storeMembers(c, w.Dst, w.Combine(sets))
	}
	w.Watch(c.Tx, sets)
	return false, nil
}
