package resp

import (
	"rlserver/engine"
	"rlserver/zset"
)

func init() {
	const (
		union   = "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set."
		inter   = "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set."
		diff    = "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set."
		sources = "numkeys key [key ...]"
		scoring = " [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]"
	)
	inputs := []keySpec{keysCounted("RO access", 1)}
	outputAndInputs := []keySpec{key("OW update", 1), keysCounted("RO access", 2)}
	register(
		&command{name: "zunion", arity: -3, flags: readonly | movableKeys, keys: inputs,
			syntax: sources + scoring + " [WITHSCORES]", group: "sorted-set", since: "6.2.0",
			complexity: union,
			summary:    "Add multiple sorted sets",
			run:        func(c *call) error { return zcombine(c, zunion, algebraWords{scoring: true, withScores: true}) }},
		&command{name: "zinter", arity: -3, flags: readonly | movableKeys, keys: inputs,
			syntax: sources + scoring + " [WITHSCORES]", group: "sorted-set", since: "6.2.0",
			complexity: inter,
			summary:    "Intersect multiple sorted sets",
			run: func(c *call) error {
				return zcombine(c, zinter, algebraWords{looksUp: true, least: true, scoring: true, withScores: true})
			}},
		&command{name: "zdiff", arity: -3, flags: readonly | movableKeys, keys: inputs,
			syntax: sources + " [WITHSCORES]", group: "sorted-set", since: "6.2.0",
			complexity: diff,
			summary:    "Subtract multiple sorted sets",
			run:        func(c *call) error { return zcombine(c, zdiff, algebraWords{looksUp: true, withScores: true}) }},
		&command{name: "zunionstore", arity: -4, flags: write | denyOOM | movableKeys, keys: outputAndInputs,
			syntax: "destination " + sources + scoring, group: "sorted-set", since: "2.0.0",
			complexity: "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
			summary:    "Add multiple sorted sets and store the resulting sorted set in a new key",
			prepare:    roomForUnion,
			run:        func(c *call) error { return zcombinestore(c, zunion, algebraWords{scoring: true}) }},
		&command{name: "zinterstore", arity: -4, flags: write | denyOOM | movableKeys, keys: outputAndInputs,
			syntax: "destination " + sources + scoring, group: "sorted-set", since: "2.0.0",
			complexity: inter,
			summary:    "Intersect multiple sorted sets and store the resulting sorted set in a new key",
			run: func(c *call) error {
				return zcombinestore(c, zinter, algebraWords{looksUp: true, least: true, scoring: true})
			}},
		&command{name: "zdiffstore", arity: -4, flags: write | denyOOM | movableKeys, keys: outputAndInputs,
			syntax: "destination " + sources, group: "sorted-set", since: "6.2.0",
			complexity: diff,
			summary:    "Subtract multiple sorted sets and store the resulting sorted set in a new key",
			run:        func(c *call) error { return zcombinestore(c, zdiff, algebraWords{looksUp: true}) }},
		&command{name: "zintercard", arity: -3, flags: readonly | movableKeys, keys: inputs,
			syntax: sources + " [LIMIT limit]", group: "sorted-set", since: "7.0.0",
			complexity: "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
			summary:    "Intersect multiple sorted sets and return the cardinality of the result",
			run:        zintercard},
	)
}

const (
	errWeight        = engine.Error("ERR weight value is not a float")
	errNegativeLimit = engine.Error("ERR LIMIT can't be negative")
)

// algebra is what the commands that combine sorted sets are asked to do.
type algebra struct {
	keys       []engine.Key
	sets       []engine.ZSet
	long       bool      // to combine them takes long
	weights    []float64 // nil: all are 1
	aggregate  zset.Aggregate
	withScores bool
	limit      int64
}

func zunion(tx *engine.Tx, a algebra) engine.ZMembers {
	return tx.ZUnion(a.sets, a.weights, a.aggregate)
}
func zinter(tx *engine.Tx, a algebra) engine.ZMembers {
	return tx.ZInter(a.sets, a.weights, a.aggregate)
}
func zdiff(tx *engine.Tx, a algebra) engine.ZMembers { return tx.ZDiff(a.sets) }

// zcombine handles ZUNION and ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES],
// and ZDIFF numkeys key [key ...] [WITHSCORES].
func zcombine(c *call, combine func(*engine.Tx, algebra) engine.ZMembers, known algebraWords) error {
	a := c.algebra(known)
	if err := c.args.end(); err != nil {
		return err
	}

	if a.long {
		a.keep()
		c.postpone(func(c *call) error {
			c.reply.members(combine(c.tx, a), a.withScores)
			return nil
		})
		return nil
	}

	c.reply.members(combine(c.tx, a), a.withScores)
	return nil
}

// zcombinestore handles ZUNIONSTORE and ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]]
// [AGGREGATE SUM | MIN | MAX], and ZDIFFSTORE destination numkeys key [key ...].
func zcombinestore(c *call, combine func(*engine.Tx, algebra) engine.ZMembers, known algebraWords) error {
	dst := c.args.key()
	a := c.algebra(known)
	if err := c.args.end(); err != nil {
		return err
	}

	return c.store(dst, a.keys, a.sets, a.long, func(sets []engine.ZSet) engine.ZMembers {
		a.sets = sets
		return combine(c.tx, a)
	})
}

// roomForUnion makes room for the largest of the sets: the union is no smaller.
func roomForUnion(c *call, words [][]byte) {
	n, ok := parseInt(words[2])
	if !ok || n < 1 || n > int64(len(words)-3) {
		return
	}
	largest := int64(0)
	for _, name := range words[3 : 3+n] {
		largest = max(largest, c.usage(name))
	}
	c.makeRoomFor(largest - c.usage(words[1]))
}

// zintercard handles ZINTERCARD numkeys key [key ...] [LIMIT limit].
func zintercard(c *call) error {
	a := c.algebra(algebraWords{looksUp: true, least: true, limit: true})
	if err := c.args.end(); err != nil {
		return err
	}

	if a.long {
		a.keep()
		c.postpone(func(c *call) error {
			c.reply.count(c.tx.ZInterCard(a.sets, a.limit))
			return nil
		})
		return nil
	}

	c.reply.count(c.tx.ZInterCard(a.sets, a.limit))
	return nil
}

// algebraWords says which words a command knows after its keys.
type algebraWords struct {
	scoring    bool // WEIGHTS and AGGREGATE
	withScores bool // WITHSCORES
	limit      bool // LIMIT
	looksUp    bool // it looks the members of one set up in the others, if these are much larger: those of the first,
	least      bool // or of the smallest
}

// algebra takes a number of keys, the keys, and options. Redis looks at what the keys hold before it reads on, so the lookup is part of
// the parsing here.
func (c *call) algebra(known algebraWords) (a algebra) {
	a.keys, a.sets = c.operands()
	a.long = known.long(a.sets)
	for c.args.more() {
		switch {
		case known.scoring && c.args.left() > len(a.sets) && c.args.word("WEIGHTS"):
			a.weights = c.args.weights(len(a.sets))
		case known.scoring && c.args.left() > 1 && c.args.word("AGGREGATE"):
			a.aggregate = c.args.aggregate()
		case known.withScores && c.args.word("WITHSCORES"):
			a.withScores = true
		case known.limit && c.args.left() > 1 && c.args.word("LIMIT"):
			a.limit = c.args.integerFrom(0, errNegativeLimit)
		default:
			c.args.fail(engine.ErrSyntax)
		}
	}
	return a
}

// longWork is from how many members on a call works when its locks are let go: to walk through as many takes some milliseconds.
const longWork = 50_000

// lookUpWork is how many members are walked through in the time in which one is looked up, or a little less.
const lookUpWork = 8

// long tells whether a command takes long to combine sets.
func (w algebraWords) long(sets []engine.ZSet) bool {
	if len(sets) == 0 {
		return false
	}
	walk, one := 0, sets[0].Len()
	for _, z := range sets {
		walk += z.Len()
		if w.least {
			one = min(one, z.Len())
		}
	}
	if w.looksUp {
		walk = min(walk, lookUpWork*one*len(sets))
	}
	return walk > longWork
}

// keep makes the sets stay as they are when the locks are let go.
func (a *algebra) keep() { keepAll(a.sets) }

func keepAll(sets []engine.ZSet) {
	for i := range sets {
		sets[i] = sets[i].Keep()
	}
}

func (c *call) operands() ([]engine.Key, []engine.ZSet) {
	n := c.args.integer()
	if n < 1 {
		c.args.fail(engine.Error("ERR at least 1 input key is needed for '" + c.command.fullName() + "' command"))
	}
	keys := c.args.countedKeys(n, 0)
	if c.args.err != nil {
		return nil, nil
	}
	sets, err := c.tx.ZSets(keys)
	if err != nil {
		c.args.fail(err)
	}
	return keys, sets
}

func (a *args) weights(n int) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = a.floatOr(errWeight)
	}
	return weights
}

func (a *args) aggregate() zset.Aggregate {
	switch {
	case a.word("SUM"):
		return zset.Sum
	case a.word("MIN"):
		return zset.Min
	case a.word("MAX"):
		return zset.Max
	}
	a.fail(engine.ErrSyntax)
	return zset.Sum
}
