package hitlog

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
)

// position is a place between the hits of all kinds: before the first of a millisecond, if name is
// nil, otherwise before those whose names are not less than name.
type position struct {
	at   int64
	name []byte
}

// Hit is a hit of a log: with an id, the one with the number Seq of that call.
type Hit struct {
	At  int64
	Seq uint64
	ID  []byte // nil: none
}

// Append appends the name.
func (h Hit) Append(dst []byte) []byte {
	if h.ID != nil {
		return AppendName(dst, h.ID, h.Seq)
	}
	return strconv.AppendUint(begin(dst, h.At), h.Seq, 10)
}

// begin appends what the names of hits without an id begin with.
func begin(dst []byte, at int64) []byte { return append(strconv.AppendInt(dst, at, 10), '-') }

// unit is names of one millisecond that begin with a text and go on with a number; single: the text
// alone, which is that of the number 1.
type unit struct {
	text   []byte
	id     []byte // nil: none
	single bool
	spans
}

// units appends the names of a call.
func (c call) units(all []unit) []unit {
	first, others := c.split()
	if first {
		all = append(all, unit{c.id, c.id, true, spans{{1, 2}}})
	}
	if len(others) > 0 {
		all = append(all, unit{c.prefix(), c.id, false, others})
	}
	return all
}

func (c call) prefix() []byte { return append(append(make([]byte, 0, len(c.id)+1), c.id...), ':') }

// split returns whether the id itself is a name, and the numbers of the others.
func (c call) split() (first bool, others spans) {
	if c.spans[0].lo > 1 || isName(c.id) {
		return false, c.spans
	}
	others = slices.Clone(c.spans)
	if others[0].lo++; others[0].lo == others[0].hi {
		others = others[1:]
	}
	return true, others
}

// outside returns the numbers of the names before a position, and not before another.
func (c call) outside(from, to position) spans {
	first, others := c.split()
	firstFrom, cutFrom := c.cut(from)
	firstTo, cutTo := c.cut(to)
	others = others.without(&cutFrom, &cutTo)
	if first && (firstFrom || !firstTo) {
		return spans{{1, 2}}.union(others)
	}
	return others
}

// cut returns whether the id as a name is before a position, and the cut through the others there.
func (c call) cut(p position) (first bool, others cut) {
	switch {
	case c.at < p.at:
		return true, every
	case c.at > p.at || p.name == nil:
		return false, cut{}
	}
	return bytes.Compare(c.id, p.name) < 0, cutOf(c.prefix(), p.name)
}

// cutOf returns the cut through the numbers of names with a prefix.
func cutOf(prefix, name []byte) cut {
	switch {
	case bytes.HasPrefix(name, prefix):
		return below(name[len(prefix):])
	case bytes.Compare(prefix, name) < 0:
		return every
	}
	return cut{}
}

// before returns how many of the names are less than another.
func (u *unit) before(name []byte) uint64 {
	if u.single {
		if bytes.Compare(u.text, name) < 0 {
			return 1
		}
		return 0
	}
	c := cutOf(u.text, name)
	return u.spans.before(&c)
}

// block is the names [from,to) of a unit, in order, between which no others are.
type block struct {
	*unit
	from, to uint64
}

// blocks returns the names of units in order. Those of one unit lie between two of another, or
// beside all, because no text goes on with digits alone to that of another.
func blocks(units []unit) (all []block) {
	for len(units) > 0 {
		u, n := &units[0], 1
		for !u.single && n < len(units) && bytes.HasPrefix(units[n].text, u.text) {
			n++
		}
		inner := units[1:n]
		units = units[n:]
		done := uint64(0)
		for len(inner) > 0 {
			k := 1
			for !inner[0].single && k < len(inner) && bytes.HasPrefix(inner[k].text, inner[0].text) {
				k++
			}
			if here := u.before(inner[0].text); here > done {
				all = append(all, block{u, done, here})
				done = here
			}
			all = append(all, blocks(inner[:k])...)
			inner = inner[k:]
		}
		if end := u.count(); end > done {
			all = append(all, block{u, done, end})
		}
	}
	return all
}

// group returns the hits of a time in order, given the calls.
func (l *Log) group(at int64, list []call) []block {
	if len(list) == 1 && l.plain.Len() == 0 && list[0].spans[0].hi == 2 && len(list[0].spans) == 1 {
		return []block{{&unit{id: list[0].id, spans: list[0].spans}, 0, 1}}
	}
	units := make([]unit, 0, 2*len(list)+1)
	for _, c := range list {
		units = c.units(units)
	}
	if s := l.plain.spansAt(at); len(s) > 0 {
		units = append(units, unit{begin(nil, at), nil, false, s})
	}
	slices.SortFunc(units, func(a, b unit) int { return bytes.Compare(a.text, b.text) })
	return blocks(units)
}

// nth returns a hit of a group.
func nth(at int64, group []block, i uint64) Hit {
	for _, b := range group {
		if n := b.to - b.from; i >= n {
			i -= n
			continue
		}
		return Hit{at, b.spans.nth(b.from + i), b.id}
	}
	panic("hitlog: rank out of range")
}

// ascend yields the hits of a group but for the first skip.
func ascend(at int64, group []block, skip uint64, yield func(Hit) bool) bool {
	for _, b := range group {
		n := b.to - b.from
		if skip >= n {
			skip -= n
			continue
		}
		more := true
		b.spans.ascend(b.from+skip, func(seq uint64) bool {
			n--
			more = yield(Hit{at, seq, b.id})
			return more && n > skip
		})
		if skip = 0; !more {
			return false
		}
	}
	return true
}

// descend yields the hits of a group in the opposite order but for the last skip.
func descend(at int64, group []block, skip uint64, yield func(Hit) bool) bool {
	for _, b := range slices.Backward(group) {
		n := b.to - b.from
		if skip >= n {
			skip -= n
			continue
		}
		more := true
		b.spans.descend(b.spans.count()-b.to+skip, func(seq uint64) bool {
			n--
			more = yield(Hit{at, seq, b.id})
			return more && n > skip
		})
		if skip = 0; !more {
			return false
		}
	}
	return true
}

// groups yields the calls of each millisecond from a time on.
func (l *calls) groups(from int64) iter.Seq[[]call] {
	return func(yield func([]call) bool) {
		var group []call
		var kept spans
		i, _ := l.in(from, from)
		for ; i < len(l.chunks); i++ {
			for one := range l.chunks[i].all() {
				if one.at < from {
					continue
				}
				if len(group) > 0 && group[0].at != one.at {
					if !yield(group) {
						return
					}
					group, kept = group[:0], kept[:0]
				}
				kept = append(kept, one.spans...)
				one.spans = kept[len(kept)-len(one.spans) : len(kept) : len(kept)]
				group = append(group, one)
			}
		}
		if len(group) > 0 {
			yield(group)
		}
	}
}

// groupsBack yields the calls of each millisecond up to a time, from the last on.
func (l *calls) groupsBack(to int64) iter.Seq[[]call] {
	return func(yield func([]call) bool) {
		var group []call
		_, i := l.in(to, to)
		for i--; i >= 0; i-- {
			for _, one := range slices.Backward(l.chunks[i].kept()) {
				if one.at > to {
					continue
				}
				if len(group) > 0 && group[0].at != one.at {
					if !yield(group) {
						return
					}
					group = group[:0]
				}
				group = append(group, one)
			}
		}
		if len(group) > 0 {
			yield(group)
		}
	}
}

// spansAt returns the numbers of the hits of a time.
func (l *plain) spansAt(at int64) (s spans) {
	if l.Len() == 0 || at > l.at || at < l.First() {
		return nil
	}
	i := l.search(func(c *chunk) bool { return c.first < at })
	for i = max(0, i-1); i < l.chunks() && l.chunk(i).first <= at; i++ {
		var here spans
		for r := l.chunk(i).reader(); r.more(); {
			if r.next(); r.at > at {
				break
			}
			if r.at == at {
				here = append(here, r.span)
			}
		}
		if len(here) > 0 {
			s = s.union(here)
		}
	}
	return s
}
