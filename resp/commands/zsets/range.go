package zsets

import (
	"bytes"
	"errors"
	"strconv"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/zset"
)

func init() {
	ranges := func(name string, words rangeWords) *command.Command {
		return command.OnKey(name, -4, command.Readonly, "RO access", words.zrange)
	}
	command.Register("sorted-set",
		ranges("zrange", rangeWords{any: true}),
		ranges("zrevrange", rangeWords{by: zset.ByRank, reverse: true}),
		ranges("zrangebyscore", rangeWords{by: zset.ByScore}),
		ranges("zrevrangebyscore", rangeWords{by: zset.ByScore, reverse: true}),
		ranges("zrangebylex", rangeWords{by: zset.ByLex}),
		ranges("zrevrangebylex", rangeWords{by: zset.ByLex, reverse: true}),
		&command.Command{Name: "zrangestore", Arity: -5, Flags: command.Write | command.DenyOOM,
			Keys: []command.KeySpec{command.Key("OW update", 1), command.Key("RO access", 2)}, Run: zrangestore},

		command.OnKey("zcount", 4, command.Readonly|command.Fast, "RO access", rangeWords{by: zset.ByScore}.zcount),
		command.OnKey("zlexcount", 4, command.Readonly|command.Fast, "RO access", rangeWords{by: zset.ByLex}.zcount),

		command.OnKey("zremrangebyrank", 4, command.Write, "RW delete", rangeWords{by: zset.ByRank}.zremrange),
		command.OnKey("zremrangebyscore", 4, command.Write, "RW delete", rangeWords{by: zset.ByScore}.zremrange),
		command.OnKey("zremrangebylex", 4, command.Write, "RW delete", rangeWords{by: zset.ByLex}.zremrange),
	)
}

const (
	errScoreBound  = engine.Error("ERR min or max is not a float")
	errLexBound    = engine.Error("ERR min or max not valid string range item")
	errLimitByRank = engine.Error(
		"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
	)
	errScoresWithLex = engine.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
)

// zrange handles ZRANGE, and the five commands with its options in their names.
func (words rangeWords) zrange(c *command.Call) error {
	k := c.Args.Key()
	words.scores = true
	r, withScores := parseZrange(&c.Args, words)
	z, err := open(c, k)
	if err != nil {
		return err
	}

	members := z.Range(&r)
	c.Visits(members.Len())
	if members.Len() > command.LongReply {
		members = members.Keep()
		c.Postpone(func(c *command.Call) error {
			writeMembers(&c.Reply, members, withScores)
			return nil
		})
		return nil
	}

	writeMembers(&c.Reply, members, withScores)
	return nil
}

func zrangestore(c *command.Call) error {
	dst, src := c.Args.Key(), c.Args.Key()
	r, _ := parseZrange(&c.Args, rangeWords{any: true})
	z, err := open(c, src)
	if err != nil {
		return err
	}
	long := z.Range(&r).Len() > command.LongReply
	return store(c, dst, c.Keys[1:2], []zset.View{z}, long, false,
		func(sets []zset.View) zset.Members { return sets[0].Range(&r) })
}

func (words rangeWords) zcount(c *command.Call) error {
	k := c.Args.Key()
	r := zset.Range{By: words.by}
	parseEnds(&c.Args, &r, c.Args.Next(), c.Args.Next())
	z, err := open(c, k)
	return c.ReplyCount(z.Count(&r), err)
}

func (words rangeWords) zremrange(c *command.Call) error {
	k := c.Args.Key()
	r := zset.Range{By: words.by}
	parseEnds(&c.Args, &r, c.Args.Next(), c.Args.Next())
	if err := c.Args.End(); err != nil {
		return err
	}

	if z, err := c.Tx.ZSet(k); err == nil {
		c.Visits(z.Count(&r))
	}
	return c.ReplyCount(c.Tx.ZRemRange(k, &r))
}

// rangeWords are the options that the name of a command implies, and which are not arguments of it.
type rangeWords struct {
	any     bool    // nothing is implied: BYSCORE, BYLEX and REV are options
	by      zset.By // otherwise the implied kind
	reverse bool
	scores  bool // WITHSCORES is an option
}

// parseZrange parses the ends of a range and its options. As in Redis, errors of the options come
// first.
func parseZrange(a *command.Args, known rangeWords) (r zset.Range, withScores bool) {
	r = zset.Range{By: known.by, Reverse: known.reverse}
	first, last := a.Next(), a.Next()
	byKnown := !known.any
	limit := int64(-1)
	for a.More() {
		switch {
		case known.scores && a.Word("WITHSCORES"):
			withScores = true
		case a.Left() >= 3 && a.Word("LIMIT"):
			r.Offset, limit = a.Integer(), a.Integer()
		case known.any && !r.Reverse && a.Word("REV"):
			r.Reverse = true
		case !byKnown && a.Word("BYLEX"):
			r.By, byKnown = zset.ByLex, true
		case !byKnown && a.Word("BYSCORE"):
			r.By, byKnown = zset.ByScore, true
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	if limit != -1 && r.By == zset.ByRank {
		a.Fail(errLimitByRank)
	}
	if withScores && r.By == zset.ByLex {
		a.Fail(errScoresWithLex)
	}
	r.Limited, r.Count = true, limit
	if r.Reverse && r.By != zset.ByRank {
		first, last = last, first // from max to min
	}
	parseEnds(a, &r, first, last)
	return r, withScores
}

func parseEnds(a *command.Args, r *zset.Range, first, last []byte) {
	if a.Err != nil {
		return
	}
	var firstOK, lastOK bool
	bad := engine.ErrNotInteger
	switch r.By {
	case zset.ByRank:
		r.Start, firstOK = grammar.ParseInt(first)
		r.Stop, lastOK = grammar.ParseInt(last)
	case zset.ByScore:
		r.Scores.Min, r.Scores.MinOpen, firstOK = scoreBound(first)
		r.Scores.Max, r.Scores.MaxOpen, lastOK = scoreBound(last)
		bad = errScoreBound
	case zset.ByLex:
		r.Lex.Min, firstOK = lexBound(first)
		r.Lex.Max, lastOK = lexBound(last)
		bad = errLexBound
	}
	if !firstOK || !lastOK {
		a.Fail(bad)
	}
}

// scoreBound parses one end of a range of scores: a number, open if it begins with (.
func scoreBound(b []byte) (f float64, open, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		b, open = b[1:], true
	}
	if f, ok = grammar.ParseFloat(b); !ok {
		f, ok = strtod(b)
	}
	return f, open, ok
}

// strtod parses bounds that ParseFloat refuses and Redis accepts as the end of a range, though not
// as a score. Like C's strtod it skips leading space, returns infinity for numbers that are too
// large and 0 for those too small or empty, and stops at a NUL.
func strtod(b []byte) (f float64, ok bool) {
	b, _, _ = bytes.Cut(b, []byte{0})
	if len(b) == 0 {
		return 0, true
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	if !grammar.IsFloat(b) {
		return 0, false
	}
	text := string(b)
	f, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrSyntax) { // a hexadecimal number without an exponent
		f, _ = strconv.ParseFloat(text+"p0", 64)
	}
	return f, true
}

// lexBound parses one end of a range of members: [member, (member for an open end, - or +.
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
