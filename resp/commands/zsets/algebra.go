package zsets

import (
	"bytes"
	"slices"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/zset"
)

func init() {
	register("zunion", zunion, operationOptions{scoring: true}, evictForUnion)
	register("zinter", zinter, operationOptions{lookups: true, smallest: true, scoring: true}, nil)
	register("zdiff", zdiff, operationOptions{lookups: true}, nil)
	command.Register("sorted-set",
		&command.Command{Name: "zintercard", Arity: -3, Flags: command.Readonly | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RO access", 1)}, Run: zintercard},
	)
}

// register adds a command that replies with what combine makes of sorted sets, and one with STORE
// that stores it, which prepare prepares.
func register(
	name string, combine func(*engine.Tx, operation) zset.Members, o operationOptions,
	prepare func(c *command.Call, words [][]byte),
) {
	command.Register("sorted-set",
		&command.Command{Name: name, Arity: -3, Flags: command.Readonly | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RO access", 1)},
			Run:  func(c *command.Call) error { return zcombine(c, combine, o) }},
		&command.Command{Name: name + "store", Arity: -4,
			Flags: command.Write | command.DenyOOM | command.MovableKeys, Prepare: prepare,
			Keys: []command.KeySpec{command.Key("OW update", 1), command.KeysCounted("RO access", 2)},
			Run:  func(c *command.Call) error { return zcombinestore(c, combine, o) }},
	)
}

const (
	errWeight        = engine.Error("ERR weight value is not a float")
	errNegativeLimit = engine.Error("ERR LIMIT can't be negative")
)

// operation holds the arguments of a command that combines sorted sets.
type operation struct {
	keys       []engine.Key
	sets       []zset.View
	long       bool      // combining them takes long
	weights    []float64 // nil: all are 1
	aggregate  zset.Aggregate
	withScores bool
	limit      int64
}

func zunion(tx *engine.Tx, a operation) zset.Members {
	return tx.ZUnion(a.sets, a.weights, a.aggregate)
}
func zinter(tx *engine.Tx, a operation) zset.Members {
	return tx.ZInter(a.sets, a.weights, a.aggregate)
}
func zdiff(tx *engine.Tx, a operation) zset.Members { return tx.ZDiff(a.sets) }

// zcombine handles ZUNION, ZINTER and ZDIFF.
func zcombine(c *command.Call, combine func(*engine.Tx, operation) zset.Members, known operationOptions) error {
	known.withScores = true
	a := parseOperation(c, known)
	if err := c.Args.End(); err != nil {
		return err
	}

	if a.long {
		keepAll(a.sets)
		c.TakesLong()
		c.Postpone(func(c *command.Call) error {
			writeMembers(&c.Reply, combine(c.Tx, a), a.withScores)
			return nil
		})
		return nil
	}

	writeMembers(&c.Reply, combine(c.Tx, a), a.withScores)
	return nil
}

// zcombinestore handles ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE.
func zcombinestore(c *command.Call, combine func(*engine.Tx, operation) zset.Members, known operationOptions) error {
	dst := c.Args.Key()
	a := parseOperation(c, known)
	if err := c.Args.End(); err != nil {
		return err
	}

	return store(c, dst, a.keys, a.sets, a.long, true, func(sets []zset.View) zset.Members {
		a.sets = sets
		return combine(c.Tx, a)
	})
}

// evictForUnion evicts keys to free memory for the largest of the sets: the union is at least as
// large.
func evictForUnion(c *command.Call, words [][]byte) {
	n, ok := grammar.ParseInt(words[2])
	if !ok || n < 1 || n > int64(len(words)-3) {
		return
	}
	largest := int64(0)
	for _, name := range words[3 : 3+n] {
		largest = max(largest, c.Usage(name))
	}
	c.EvictFor(largest - c.Usage(words[1]))
}

func zintercard(c *command.Call) error {
	a := parseOperation(c, operationOptions{lookups: true, smallest: true, limit: true})
	if err := c.Args.End(); err != nil {
		return err
	}

	if a.long {
		keepAll(a.sets)
		c.TakesLong()
		c.Postpone(func(c *command.Call) error {
			return c.ReplyCount(c.Tx.ZInterCard(a.sets, a.limit), nil)
		})
		return nil
	}

	return c.ReplyCount(c.Tx.ZInterCard(a.sets, a.limit), nil)
}

// operationOptions are the options that a command takes after its keys, and how it combines sets.
type operationOptions struct {
	scoring    bool // WEIGHTS and AGGREGATE
	withScores bool // WITHSCORES
	limit      bool // LIMIT
	// if the other sets are much larger, the members of one set are looked up in them: those of the
	// first set,
	lookups  bool
	smallest bool // or of the smallest set
}

// parseOperation parses a number of keys, the keys, and options. Redis looks the keys up before it
// parses the options, so the lookup is part of the parsing here.
func parseOperation(c *command.Call, known operationOptions) (a operation) {
	a.keys, a.sets = operands(c)
	a.long = known.long(a.sets)
	for c.Args.More() {
		switch {
		case known.scoring && c.Args.Left() > len(a.sets) && c.Args.Word("WEIGHTS"):
			a.weights = make([]float64, len(a.sets))
			for i := range a.weights {
				a.weights[i] = c.Args.FloatOr(errWeight)
			}
		case known.scoring && c.Args.Left() > 1 && c.Args.Word("AGGREGATE"):
			a.aggregate = zset.Aggregate(c.Args.Choice(engine.ErrSyntax, "SUM", "MIN", "MAX"))
		case known.withScores && c.Args.Word("WITHSCORES"):
			a.withScores = true
		case known.limit && c.Args.Left() > 1 && c.Args.Word("LIMIT"):
			a.limit = c.Args.IntegerFrom(0, errNegativeLimit)
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	return a
}

// lookUpWork is the number of members that are visited in about the time of one lookup.
const lookUpWork = 8

// long reports whether a command takes long to combine sets.
func (w operationOptions) long(sets []zset.View) bool {
	if len(sets) == 0 {
		return false
	}
	walk, one := 0, sets[0].Len()
	for _, z := range sets {
		if z.IsPlain() && z.Len() > command.LongWork {
			return true
		}
		walk += z.Len()
		if w.smallest {
			one = min(one, z.Len())
		}
	}
	if w.lookups {
		walk = min(walk, lookUpWork*one*len(sets))
	}
	return walk > command.LongWork
}

// keepAll replaces sets by clones, which stay unchanged after the locks are released.
func keepAll(sets []zset.View) {
	for i := range sets {
		sets[i] = sets[i].Keep()
	}
}

func operands(c *command.Call) ([]engine.Key, []zset.View) {
	n := c.Args.Integer()
	if n < 1 {
		c.Args.Fail(engine.Error("ERR at least 1 input key is needed for '" + c.Command.FullName() + "' command"))
	}
	keys := c.Args.CountedKeys(n, 0)
	if c.Args.Err != nil {
		return nil, nil
	}
	sets, err := c.Tx.ZSets(keys)
	if err == nil {
		err = writable(sets)
	}
	if err != nil {
		c.Args.Fail(err)
	}
	return keys, sets
}

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
	w := &Storing{Dst: dst, Sources: slices.Clone(keys), Keys: slices.Clone(c.Keys), Combine: combine, Whole: whole}
	w.keep()
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

// keep copies the names of the keys: what the client sends during a pause overwrites them.
func (w *Storing) keep() {
	w.Dst.Name = bytes.Clone(w.Dst.Name)
	for _, list := range [][]engine.Key{w.Sources, w.Keys} {
		for i := range list {
			list[i].Name = bytes.Clone(list[i].Name)
		}
	}
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
	gone := false
	for !gone && c.Conn.ChangesPaused() { // since the call was checked
		c.Conn.See(c.Tx.End())
		gone = !c.Conn.AwaitChanges()
		c.Tx.Begin(c.Env.Clock(), c.DB, w.Keys, true)
	}
	defer func() { c.Conn.See(c.Tx.End()) }()
	intact := c.Tx.Intact(&w.changes)
	c.Tx.Unwatch(&w.changes)
	if gone {
		return true, nil
	}
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
