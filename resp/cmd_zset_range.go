package resp

import (
	"bytes"
	"errors"
	"strconv"

	"rlserver/engine"
	"rlserver/zset"
)

func init() {
	const (
		walk   = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned."
		limit  = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N))."
		search = "O(log(N)) with N being the number of elements in the sorted set."
		remove = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation."
	)
	register(
		&command{name: "zrange", arity: -4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", group: "sorted-set", since: "1.2.0",
			complexity: walk,
			summary:    "Return a range of members in a sorted set",
			run:        func(c *call) error { return zrange(c, rangeWords{any: true}) }},
		&command{name: "zrevrange", arity: -4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key start stop [WITHSCORES]", group: "sorted-set", since: "1.2.0",
			complexity: walk,
			summary:    "Return a range of members in a sorted set, by index, with scores ordered from high to low",
			deprecated: "6.2.0", replacedBy: "`ZRANGE` with the `REV` argument",
			run: func(c *call) error { return zrange(c, rangeWords{by: engine.ZByRank, reverse: true}) }},
		&command{name: "zrangebyscore", arity: -4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key min max [WITHSCORES] [LIMIT offset count]", group: "sorted-set", since: "1.0.5",
			complexity: limit,
			summary:    "Return a range of members in a sorted set, by score",
			deprecated: "6.2.0", replacedBy: "`ZRANGE` with the `BYSCORE` argument",
			run: func(c *call) error { return zrange(c, rangeWords{by: engine.ZByScore}) }},
		&command{name: "zrevrangebyscore", arity: -4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key max min [WITHSCORES] [LIMIT offset count]", group: "sorted-set", since: "2.2.0",
			complexity: limit,
			summary:    "Return a range of members in a sorted set, by score, with scores ordered from high to low",
			deprecated: "6.2.0", replacedBy: "`ZRANGE` with the `REV` and `BYSCORE` arguments",
			run: func(c *call) error { return zrange(c, rangeWords{by: engine.ZByScore, reverse: true}) }},
		&command{name: "zrangebylex", arity: -4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key min max [LIMIT offset count]", group: "sorted-set", since: "2.8.9",
			complexity: limit,
			summary:    "Return a range of members in a sorted set, by lexicographical range",
			deprecated: "6.2.0", replacedBy: "`ZRANGE` with the `BYLEX` argument",
			run: func(c *call) error { return zrange(c, rangeWords{by: engine.ZByLex}) }},
		&command{name: "zrevrangebylex", arity: -4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key max min [LIMIT offset count]", group: "sorted-set", since: "2.8.9",
			complexity: limit,
			summary:    "Return a range of members in a sorted set, by lexicographical range, ordered from higher to lower strings.",
			deprecated: "6.2.0", replacedBy: "`ZRANGE` with the `REV` and `BYLEX` arguments",
			run: func(c *call) error { return zrange(c, rangeWords{by: engine.ZByLex, reverse: true}) }},
		&command{name: "zrangestore", arity: -5, flags: write | denyOOM, keys: []keySpec{key("OW update", 1), key("RO access", 2)},
			syntax: "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", group: "sorted-set", since: "6.2.0",
			complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored into the destination key.",
			summary:    "Store a range of members from sorted set into another key",
			run:        zrangestore},

		&command{name: "zcount", arity: 4, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key min max", group: "sorted-set", since: "2.0.0",
			complexity: search,
			summary:    "Count the members in a sorted set with scores within the given values",
			run:        func(c *call) error { return zcount(c, engine.ZByScore) }},
		&command{name: "zlexcount", arity: 4, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key min max", group: "sorted-set", since: "2.8.9",
			complexity: search,
			summary:    "Count the number of members in a sorted set between a given lexicographical range",
			run:        func(c *call) error { return zcount(c, engine.ZByLex) }},

		&command{name: "zremrangebyrank", arity: 4, flags: write, keys: []keySpec{key("RW delete", 1)},
			syntax: "key start stop", group: "sorted-set", since: "2.0.0",
			complexity: remove,
			summary:    "Remove all members in a sorted set within the given indexes",
			run:        func(c *call) error { return zremrange(c, engine.ZByRank) }},
		&command{name: "zremrangebyscore", arity: 4, flags: write, keys: []keySpec{key("RW delete", 1)},
			syntax: "key min max", group: "sorted-set", since: "1.2.0",
			complexity: remove,
			summary:    "Remove all members in a sorted set within the given scores",
			run:        func(c *call) error { return zremrange(c, engine.ZByScore) }},
		&command{name: "zremrangebylex", arity: 4, flags: write, keys: []keySpec{key("RW delete", 1)},
			syntax: "key min max", group: "sorted-set", since: "2.8.9",
			complexity: remove,
			summary:    "Remove all members in a sorted set between the given lexicographical range",
			run:        func(c *call) error { return zremrange(c, engine.ZByLex) }},
	)
}

const (
	errScoreBound    = engine.Error("ERR min or max is not a float")
	errLexBound      = engine.Error("ERR min or max not valid string range item")
	errLimitByRank   = engine.Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	errScoresWithLex = engine.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
)

// longReply is from how many members or fields on a reply is written when the locks are let go.
const longReply = 4096

// zrange handles ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES], and the five commands that have its
// options in their names.
func zrange(c *call, words rangeWords) error {
	k := c.args.key()
	words.scores = true
	r, withScores := c.args.zrange(words)
	if err := c.args.end(); err != nil {
		return err
	}

	z, err := c.tx.ZSet(k)
	if err != nil {
		return err
	}

	members := z.Range(&r)
	if members.Len() > longReply {
		members = members.Keep()
		c.postpone(func(c *call) error {
			c.reply.members(members, withScores)
			return nil
		})
		return nil
	}

	c.reply.members(members, withScores)
	return nil
}

// zrangestore handles ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count].
func zrangestore(c *call) error {
	dst, src := c.args.key(), c.args.key()
	r, _ := c.args.zrange(rangeWords{any: true})
	if err := c.args.end(); err != nil {
		return err
	}

	z, err := c.tx.ZSet(src)
	if err != nil {
		return err
	}
	sources := c.keys[1:2]
	return c.store(dst, sources, []engine.ZSet{z}, z.Range(&r).Len() > longReply, func(sets []engine.ZSet) engine.ZMembers { return sets[0].Range(&r) })
}

// zcount handles ZCOUNT and ZLEXCOUNT key min max.
func zcount(c *call, by engine.ZBy) error {
	k := c.args.key()
	r := engine.ZRange{By: by}
	c.args.ends(&r, c.args.next(), c.args.next())
	if err := c.args.end(); err != nil {
		return err
	}

	z, err := c.tx.ZSet(k)
	if err != nil {
		return err
	}

	c.reply.count(z.Count(&r))
	return nil
}

// zremrange handles ZREMRANGEBYRANK key start stop, ZREMRANGEBYSCORE and ZREMRANGEBYLEX key min max.
func zremrange(c *call, by engine.ZBy) error {
	k := c.args.key()
	r := engine.ZRange{By: by}
	c.args.ends(&r, c.args.next(), c.args.next())
	if err := c.args.end(); err != nil {
		return err
	}

	removed, err := c.tx.ZRemRange(k, &r)
	if err != nil {
		return err
	}

	c.reply.count(removed)
	return nil
}

// rangeWords says what a command's name has settled, and so is not a word among its options.
type rangeWords struct {
	any     bool       // nothing is settled: the words BYSCORE, BYLEX and REV are known
	by      engine.ZBy // otherwise it is this
	reverse bool
	scores  bool // the word WITHSCORES is known
}

// zrange takes the two ends of a range and its options. Redis looks at the options first, and so at their mistakes.
func (a *args) zrange(known rangeWords) (r engine.ZRange, withScores bool) {
	r = engine.ZRange{By: known.by, Reverse: known.reverse}
	first, last := a.next(), a.next()
	byKnown := !known.any
	limit := int64(-1)
	for a.more() {
		switch {
		case known.scores && a.word("WITHSCORES"):
			withScores = true
		case a.left() >= 3 && a.word("LIMIT"):
			r.Offset, limit = a.integer(), a.integer()
		case known.any && !r.Reverse && a.word("REV"):
			r.Reverse = true
		case !byKnown && a.word("BYLEX"):
			r.By, byKnown = engine.ZByLex, true
		case !byKnown && a.word("BYSCORE"):
			r.By, byKnown = engine.ZByScore, true
		default:
			a.fail(engine.ErrSyntax)
		}
	}
	if limit != -1 && r.By == engine.ZByRank {
		a.fail(errLimitByRank)
	}
	if withScores && r.By == engine.ZByLex {
		a.fail(errScoresWithLex)
	}
	r.Limited, r.Count = true, limit
	if r.Reverse && r.By != engine.ZByRank {
		first, last = last, first // from max to min
	}
	a.ends(&r, first, last)
	return r, withScores
}

// ends makes out the two ends of a range.
func (a *args) ends(r *engine.ZRange, first, last []byte) {
	if a.err != nil {
		return
	}
	var ok, also bool
	bad := engine.ErrNotInteger
	switch r.By {
	case engine.ZByRank:
		r.Start, ok = parseInt(first)
		r.Stop, also = parseInt(last)
	case engine.ZByScore:
		r.Scores.Min, r.Scores.MinOpen, ok = scoreBound(first)
		r.Scores.Max, r.Scores.MaxOpen, also = scoreBound(last)
		bad = errScoreBound
	case engine.ZByLex:
		r.Lex.Min, ok = lexBound(first)
		r.Lex.Max, also = lexBound(last)
		bad = errLexBound
	}
	if !ok || !also {
		a.fail(bad)
	}
}

// scoreBound reads one end of a range of scores: a number, open if a ( stands before it.
func scoreBound(b []byte) (f float64, open, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		b, open = b[1:], true
	}
	if f, ok = parseFloat(b); !ok {
		f, ok = strtod(b)
	}
	return f, open, ok
}

// strtod reads what parseFloat refuses and Redis takes as the end of a range, though not as a score: C's strtod skips spaces before a number,
// makes infinity of what is too large and 0 of what is too small, finds 0 in nothing, and stops at a NUL.
func strtod(b []byte) (f float64, ok bool) {
	b, _, _ = bytes.Cut(b, []byte{0})
	if len(b) == 0 {
		return 0, true
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	if _, ok := scanFloat(b); !ok {
		return 0, false
	}
	text := string(b)
	f, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrSyntax) { // a hexadecimal number without an exponent
		f, _ = strconv.ParseFloat(text+"p0", 64)
	}
	return f, true
}

// lexBound reads one end of a range of members: [member, (member for an open end, - or +.
func lexBound(b []byte) (bound zset.LexBound, ok bool) {
	switch {
	case len(b) == 0:
		return bound, false
	case b[0] == '[' || b[0] == '(':
		return zset.LexBound{Member: b[1:], Open: b[0] == '('}, true
	case len(b) == 1 && b[0] == '-':
		return zset.LexBound{Infinite: -1}, true
	case len(b) == 1 && b[0] == '+':
		return zset.LexBound{Infinite: 1}, true
	}
	return bound, false
}
