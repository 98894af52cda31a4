package keys

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/wire"
	"rlserver/zset"
)

func init() {
	source, by := command.Key("RO access", 1), command.KeySpec{Access: "RO access", Step: 1, Patterns: true}
	target := command.KeySpec{Access: "OW update", Step: 1, Token: "STORE"}
	command.Register("generic",
		&command.Command{Name: "sort", Arity: -2, Flags: command.Write | command.DenyOOM,
			Categories: "set sortedset list dangerous", Keys: []command.KeySpec{source, by, target},
			Reaches: sortReaches, Refused: sortRefused, Run: command.With(sortSet, true)},
		&command.Command{Name: "sort_ro", Arity: -2, Flags: command.Readonly,
			Categories: "set sortedset list dangerous", Keys: []command.KeySpec{source, by},
			Reaches: sortReaches, Refused: sortRefused, Run: command.With(sortSet, false)},
	)
}

const (
	errByDenied   = engine.Error("ERR BY option of SORT denied due to insufficient ACL permissions.")
	errGetDenied  = engine.Error("ERR GET option of SORT denied due to insufficient ACL permissions.")
	errSortScores = engine.Error("ERR One or more scores can't be converted into double")
)

// sorting holds the options of SORT, and the elements that it sorts.
type sorting struct {
	by       *pattern // nil: by the elements themselves
	unsorted bool     // in the order of the list or sorted set
	get      []pattern
	alpha    bool
	desc     bool
	offset   int64
	count    int64  // negative: all
	store    []byte // the key for the result; nil: it is the reply

	list  []sortable
	found [][]byte // for each element of list, the result of each get; nil: missing
	text  chunks
}

type sortable struct {
	element []byte
	weight  []byte // sort key with ALPHA; nil: not found
	score   float64
	index   int // in found, in steps of get
}

// sortReaches reports whether a call of SORT reads keys that its words do not name.
func sortReaches(words [][]byte) bool {
	return slices.ContainsFunc(words[2:], func(w []byte) bool { return bytes.IndexByte(w, '*') >= 0 })
}

// errors of Redis Cluster
const (
	errSortBy  = engine.Error("ERR BY option of SORT denied in Cluster mode.")
	errSortGet = engine.Error("ERR GET option of SORT denied in Cluster mode.")
)

// sortRefused returns the error of a SORT that reads keys which its words do not name: in a
// cluster they may be on other nodes.
func sortRefused(words [][]byte) error {
	switch {
	case !sortReaches(words):
		return nil
	case slices.ContainsFunc(words[2:], func(w []byte) bool { return grammar.EqualFold(w, "BY") }):
		return errSortBy
	}
	return errSortGet
}

// sortSet handles SORT and SORT_RO. It collects the elements under the locks, and sorts and replies
// after they are released.
func sortSet(c *command.Call, stores bool) error {
	k := c.Args.Key()
	q := parseSorting(c, stores)
	if err := c.Args.Err; err != nil {
		return err
	}
	n, elements, err := q.source(c, k)
	if err != nil {
		return err
	}

	c.Visits(n)
	start, end := q.bounds(int64(n))
	if q.unsorted {
		q.gather(c, int(end-start), elements(int(start), int(end)))
		start, end = 0, end-start
	} else {
		q.gather(c, n, elements(0, n))
		if err := q.weigh(c); err != nil {
			return err
		}
	}
	if q.store != nil {
		q.sort()
		storeSorted(c, &q, start, end)
		return nil
	}
	c.Postpone(func(c *command.Call) error {
		q.sort()
		writeSorted(&c.Reply, &q, start, end)
		return nil
	})
	return nil
}

// source returns how many elements a key has, and yields those of a range of ranks.
func (q *sorting) source(c *command.Call, k engine.Key) (
	n int, elements func(lo, hi int) iter.Seq[[]byte], err error,
) {
	switch c.Tx.Type(k) {
	case object.TypeList:
		l, err := c.Tx.List(k)
		if n = l.Len(); q.unsorted && q.desc {
			return n, func(lo, hi int) iter.Seq[[]byte] { return l.Backward(n-hi, n-lo) }, err
		}
		return n, l.Range, err
	case object.TypeSet:
		s, err := c.Tx.Members(k)
		if q.unsorted && (q.store != nil || c.InScript) { // as in Redis: chance decides nothing
			q.unsorted, q.alpha, q.by = false, true, nil
		}
		return s.Len(), s.Range, err
	}
	set, err := c.Tx.ZSet(k)
	if err == nil && !set.Writable() {
		err = engine.ErrManyWritten
	}
	return set.Len(), func(lo, hi int) iter.Seq[[]byte] {
		members := zset.Members{}
		if lo < hi {
			members = set.Range(&zset.Range{Start: int64(lo), Stop: int64(hi) - 1, Reverse: q.unsorted && q.desc})
		}
		return names(members.All())
	}, err
}

func names(members iter.Seq2[[]byte, float64]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for member := range members {
			if !yield(member) {
				return
			}
		}
	}
}

func (q *sorting) sort() {
	if !q.unsorted {
		slices.SortFunc(q.list, q.compare)
	}
}

// parseSorting parses the options. BY and GET read keys that are not in the call: the user must be
// allowed to read all keys.
func parseSorting(c *command.Call, stores bool) (q sorting) {
	a := &c.Args
	q.count = -1
	for a.More() {
		left := a.Left() - 1
		switch {
		case a.Word("ASC"):
			q.desc = false
		case a.Word("DESC"):
			q.desc = true
		case a.Word("ALPHA"):
			q.alpha = true
		case left >= 2 && a.Word("LIMIT"):
			q.offset, q.count = a.Integer(), a.Integer()
		case stores && left >= 1 && a.Word("STORE"):
			q.store = a.Next()
		case left >= 1 && a.Word("BY"):
			p := newPattern(a.Next())
			if q.by = &p; p.star && !c.MayReadAnyKey() {
				a.Fail(errByDenied)
			}
			q.unsorted = q.unsorted || !p.star // as in Redis, even if another BY follows
		case left >= 1 && a.Word("GET"):
			if q.get = append(q.get, newPattern(a.Next())); !c.MayReadAnyKey() {
				a.Fail(errGetDenied)
			}
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	return q
}

// bounds returns the range of elements in the reply, from start up to but not including end, of n.
func (q *sorting) bounds(n int64) (start, end int64) {
	start = min(max(q.offset, 0), n)
	end = n
	if q.count >= 0 {
		end = start + min(q.count, n-start)
	}
	return start, end
}

// gather collects n elements and the values that GET finds for them.
func (q *sorting) gather(c *command.Call, n int, elements iter.Seq[[]byte]) {
	q.list = make([]sortable, 0, n)
	q.found = make([][]byte, 0, n*len(q.get))
	for e := range elements {
		element := q.text.keep(e)
		q.list = append(q.list, sortable{element: element, index: len(q.list)})
		for i := range q.get {
			value := element
			if !q.get[i].itself {
				value = q.get[i].find(c, element)
			}
			q.found = append(q.found, value)
		}
	}
}

// weigh finds the weights by which the elements are sorted. Without ALPHA they are numbers, and 0
// if missing.
func (q *sorting) weigh(c *command.Call) error {
	if q.alpha && q.by == nil {
		return nil
	}
	for i := range q.list {
		e := &q.list[i]
		weight := e.element
		if q.by != nil {
			weight = q.by.find(c, e.element)
		}
		switch {
		case q.alpha:
			e.weight = weight
		case weight != nil:
			var ok bool
			if e.score, ok = sortScore(weight); !ok {
				return errSortScores
			}
		}
	}
	return nil
}

// sortScore parses a number like C's strtod: leading space is skipped, and an empty text is 0.
func sortScore(b []byte) (score float64, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	return grammar.ParseFloat(bytes.TrimLeft(b, " \t\n\v\f\r"))
}

func (q *sorting) compare(a, b sortable) (order int) {
	switch {
	case !q.alpha:
		order = cmp.Compare(a.score, b.score)
	case q.by != nil && (a.weight == nil) != (b.weight == nil):
		order = 1
		if a.weight == nil {
			order = -1
		}
	case q.by != nil:
		order = bytes.Compare(a.weight, b.weight)
	}
	if order == 0 {
		order = bytes.Compare(a.element, b.element)
	}
	if q.desc {
		order = -order
	}
	return order
}

// writeSorted replies with the elements from start up to but not including end, or with the values
// that GET has found for them.
func writeSorted(r *wire.Reply, q *sorting, start, end int64) {
	each := len(q.get)
	r.Array(int(end-start) * max(each, 1))
	for _, e := range q.list[start:end] {
		if each == 0 {
			r.Bulk(e.element)
		}
		for _, value := range q.found[e.index*each:][:each] {
			r.BulkOrNull(value, value != nil)
		}
	}
}

// storeSorted stores what writeSorted would reply as a list, and replies with its length. What GET
// has not found is an empty element.
func storeSorted(c *command.Call, q *sorting, start, end int64) {
	list := q.found[:0]
	each := len(q.get)
	if each == 0 {
		for _, e := range q.list[start:end] {
			list = append(list, e.element)
		}
	} else {
		list = make([][]byte, 0, int(end-start)*each)
		for _, e := range q.list[start:end] {
			list = append(list, q.found[e.index*each:][:each]...)
		}
	}
	k := c.Env.Engine.Key(q.store)
	c.Tx.Delete(k)
	if len(list) > 0 {
		c.Tx.Insert(k, object.TypeList, 0, list...)
	}
	c.Reply.Count(len(list))
}

// pattern names a key for each element: the first * is replaced by the element, and -> is followed
// by the field of a hash.
type pattern struct {
	before, after []byte
	field         []byte // nil: the key holds a string
	star          bool   // without a star it finds nothing
	itself        bool   // #: the element

	name []byte // of the last key; the buffer is reused
}

func newPattern(text []byte) (p pattern) {
	p.itself = string(text) == "#"
	if p.before, p.after, p.star = bytes.Cut(text, []byte("*")); !p.star {
		return p
	}
	if key, field, ok := bytes.Cut(p.after, []byte("->")); ok && len(field) > 0 {
		p.after, p.field = key, field
	}
	return p
}

// find returns the value of the key for an element, or nil if it is missing. The value does not
// change, so it may be used after the locks are released. All shards are locked.
func (p *pattern) find(c *command.Call, element []byte) []byte {
	if !p.star {
		return nil
	}
	p.name = append(append(append(p.name[:0], p.before...), element...), p.after...)
	k := c.Env.Engine.Key(p.name)
	if p.field == nil {
		value, ok, _ := c.Tx.Share(k)
		if ok && value == nil {
			value = []byte{}
		}
		return value
	}
	h, err := c.Tx.Hash(k)
	if err != nil {
		return nil
	}
	if value, ok := h.Get(p.field); ok {
		return []byte(value)
	}
	return nil
}

// chunks stores many small texts in few allocations. None of them is nil.
type chunks struct{ free []byte }

const chunk = 32 << 10

func (c *chunks) keep(text []byte) []byte {
	if len(text) > chunk/8 {
		return append([]byte{}, text...)
	}
	if c.free == nil || cap(c.free)-len(c.free) < len(text) {
		c.free = make([]byte, 0, chunk)
	}
	start := len(c.free)
	c.free = append(c.free, text...)
	return c.free[start:len(c.free):len(c.free)]
}
