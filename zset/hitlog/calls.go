package hitlog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
	"unsafe"

	"rlserver/internal/dict"
)

// MaxNumber is the greatest number of a hit of a call with an id.
const MaxNumber = 1e16 - 1

// calls is the hits of calls with ids. An entry is a call: its time, its id and the numbers of its
// hits, mostly those from 1 to its cost. Entries are in the order of (time, id), and in chunks,
// whose data never changes but for bytes that the owner of the last one appends.
type calls struct {
	n      int // hits
	count  int // calls
	text   int // about how many bytes the names of the hits have
	chunks []callChunk
	hash   *dict.Hasher
	shared bool // with a clone: chunks is copied before it is changed
	// where the calls of an id are; nil: not needed yet, which it is not with one chunk
	index *dict.Dict[indexed]
}

// callChunk is consecutive calls, encoded:
//
//	uvarint: ms since the call before; that of the first counts nothing
//	uvarint: length of the id, and the id
//	uvarint: number of hits × 2, if they are those from 1 on; otherwise number of spans × 2 + 1
//	         and, for each, how far it begins behind the one before, and its hits - 1
type callChunk struct {
	first, last int64 // the times of the first and the last call
	n, base     int   // hits, and those before the chunk since the log was empty
	data        []byte
	head        int // where the first call begins in data: those before it were removed
}

// maxCalls is how many bytes of calls a chunk has at most, unless it is a single call.
const maxCalls = 192

// indexed is the time of a call with an id.
type indexed struct {
	hash uint64
	at   int64
}

// call is the hits of a call with an id.
type call struct {
	at int64
	id []byte
	spans
}

func (c call) compare(at int64, id []byte) int {
	return cmp.Or(cmp.Compare(c.at, at), bytes.Compare(c.id, id))
}

// weight is about how many bytes the names of the hits have.
func (c call) weight() int {
	const most = 1 << 40
	return min(int(min(c.count(), most))*(len(c.id)+4), most)
}

func appendCall(data []byte, since int64, c call) []byte {
	data = binary.AppendUvarint(data, uint64(since))
	data = binary.AppendUvarint(data, uint64(len(c.id)))
	data = append(data, c.id...)
	if len(c.spans) == 1 && c.spans[0].lo == 1 {
		return binary.AppendUvarint(data, c.count()<<1)
	}
	data = binary.AppendUvarint(data, uint64(len(c.spans))<<1|1)
	end := uint64(0)
	for _, s := range c.spans {
		data = binary.AppendUvarint(data, s.lo-end)
		data = binary.AppendUvarint(data, s.hi-s.lo-1)
		end = s.hi
	}
	return data
}

// all yields the calls of a chunk, whose spans are valid until the next.
func (c *callChunk) all() iter.Seq[call] {
	return func(yield func(call) bool) {
		for one := range c.ends() {
			if !yield(one) {
				return
			}
		}
	}
}

// ends is all with the offset behind each call.
func (c *callChunk) ends() iter.Seq2[call, int] {
	return func(yield func(call, int) bool) {
		var buf [1]span
		now, first := call{at: c.first}, true
		for i, r := c.head, (reader{data: c.data}); i < len(c.data); {
			var n uint64
			if n, i = r.uvarint(i); !first {
				now.at += int64(n)
			}
			first = false
			n, i = r.uvarint(i)
			now.id, i = c.data[i:i+int(n)], i+int(n)
			now.spans = buf[:0]
			if n, i = r.uvarint(i); n&1 == 0 {
				now.spans = append(now.spans, span{1, n>>1 + 1})
			} else {
				end := uint64(0)
				for range n >> 1 {
					n, i = r.uvarint(i)
					lo := end + n
					n, i = r.uvarint(i)
					end = lo + n + 1
					now.spans = append(now.spans, span{lo, end})
				}
			}
			if !yield(now, i) {
				return
			}
		}
	}
}

// kept returns the calls of a chunk with spans of their own.
func (c *callChunk) kept() (all []call) {
	for one := range c.all() {
		one.spans = slices.Clone(one.spans)
		all = append(all, one)
	}
	return all
}

// callChunks encodes calls.
func callChunks(all []call) (chunks []callChunk) {
	for _, one := range all {
		chunks = appendTo(chunks, one)
	}
	return chunks
}

// appendTo appends a call at the end of the last chunk, or as a new one.
func appendTo(chunks []callChunk, one call) []callChunk {
	n, base := int(one.count()), 0
	if k := len(chunks) - 1; k >= 0 {
		c := &chunks[k]
		if data := appendCall(c.data, one.at-c.last, one); len(data) <= maxCalls {
			c.data, c.last, c.n = data, one.at, c.n+n
			return chunks
		}
		base = c.base + c.n
	}
	return append(chunks, callChunk{one.at, one.at, n, base, appendCall(nil, 0, one), 0})
}

// clone returns a copy that shares the chunks.
func (l *calls) clone() *calls {
	if l == nil {
		return nil
	}
	l.shared = true
	mine := *l
	mine.index = nil
	return &mine
}

// own makes the chunks those of this log alone.
func (l *calls) own() {
	if !l.shared {
		return
	}
	l.chunks, l.shared = slices.Clone(l.chunks), false
	for i := range l.chunks {
		l.chunks[i].data = slices.Clip(l.chunks[i].data)
	}
}

// len returns the number of hits; 0 for nil.
func (l *calls) len() int {
	if l == nil {
		return 0
	}
	return l.n
}

// in returns the chunks [i,j) that may have calls of the times [from,to].
func (l *calls) in(from, to int64) (i, j int) {
	i = sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].last >= from })
	j = i
	for j < len(l.chunks) && l.chunks[j].first <= to {
		j++
	}
	return i, j
}

// at returns the calls of a time.
func (l *calls) at(at int64) (all []call) {
	if l == nil {
		return nil
	}
	for i, j := l.in(at, at); i < j; i++ {
		for one := range l.chunks[i].all() {
			if one.at == at {
				one.spans = slices.Clone(one.spans)
				all = append(all, one)
			}
		}
	}
	return all
}

// after returns how many hits are at a time or before.
func (l *calls) after(at int64) (n int) {
	if l == nil || l.n == 0 || l.chunks[0].first > at {
		return 0
	}
	if l.chunks[len(l.chunks)-1].last <= at {
		return l.n
	}
	i := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].last > at })
	for one := range l.chunks[i].all() {
		if one.at > at {
			break
		}
		n += int(one.count())
	}
	return n + l.ahead(i)
}

// ahead returns how many hits are in the chunks before one.
func (l *calls) ahead(i int) int { return l.chunks[i].base - l.chunks[0].base }

// moment returns the time of the hit of a rank, which exists, and how many hits are before that.
func (l *calls) moment(rank int) (at int64, before int) {
	i := sort.Search(len(l.chunks), func(i int) bool { return l.ahead(i) > rank }) - 1
	n := l.ahead(i)
	for one := range l.chunks[i].all() {
		if at = one.at; n+int(one.count()) > rank {
			break
		}
		n += int(one.count())
	}
	return at, l.after(at - 1)
}

// add adds hits of a call. Those that are there remain.
func (l *calls) add(at int64, id []byte, lo, hi uint64) {
	l.own()
	added, known := call{at, id, spans{{lo, hi}}}, false
	if end := len(l.chunks); end == 0 || l.chunks[end-1].endsBefore(at, id) {
		l.chunks = appendTo(l.chunks, added)
	} else {
		i := l.with(at, id)
		all := l.chunks[i].kept()
		k := 0
		k, known = slices.BinarySearchFunc(all, added, func(c, to call) int { return c.compare(to.at, to.id) })
		if known {
			l.count, l.n, l.text = l.count-1, l.n-int(all[k].count()), l.text-all[k].weight()
			added.spans = all[k].union(added.spans)
			all[k] = added
		} else {
			all = slices.Insert(all, k, added)
		}
		l.chunks = slices.Replace(l.chunks, i, i+1, callChunks(all)...)
		l.rebase(i)
	}
	l.count, l.n, l.text = l.count+1, l.n+int(added.count()), l.text+added.weight()
	if !known {
		l.note(added)
	}
}

// with returns the chunk that has the call of a time with an id, if one has, and where it belongs.
func (l *calls) with(at int64, id []byte) int {
	return max(0, sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].starts(at, id) })-1)
}

// endsBefore reports whether the last call of the chunk is before another.
func (c *callChunk) endsBefore(at int64, id []byte) bool {
	if c.last != at {
		return c.last < at
	}
	var last []byte
	for one := range c.all() {
		last = one.id
	}
	return bytes.Compare(last, id) < 0
}

// starts reports whether the first call of the chunk is after another.
func (c *callChunk) starts(at int64, id []byte) bool {
	if c.first != at {
		return c.first > at
	}
	for one := range c.all() {
		return bytes.Compare(one.id, id) > 0
	}
	return false
}

// note adds a new call to the index, if there is one.
func (l *calls) note(c call) {
	if l.index != nil {
		hash := l.hash.Sum(c.id)
		l.index.Insert(hash, indexed{hash, c.at})
	}
}

// build builds the index when it is first needed.
func (l *calls) build() {
	if l.index != nil {
		return
	}
	l.index = dict.New(func(e indexed) uint64 { return e.hash })
	for i := range l.chunks {
		for one := range l.chunks[i].all() {
			l.note(one)
		}
	}
}

// forget removes a call that is gone from the index.
func (l *calls) forget(c call) {
	if l.index != nil {
		hash := l.hash.Sum(c.id)
		l.index.Remove(hash, func(e indexed) bool { return e == indexed{hash, c.at} })
	}
}

// find visits the calls with an id, until visit returns false. Their spans are valid until then.
func (l *calls) find(id []byte, visit func(call) bool) {
	if l == nil || l.n == 0 {
		return
	}
	// visitIn visits those of a chunk at a time, or at any.
	visitIn := func(i int, at int64, any bool) (more bool) {
		for one := range l.chunks[i].all() {
			if (any || one.at == at) && bytes.Equal(one.id, id) && !visit(one) {
				return false
			}
		}
		return true
	}
	if len(l.chunks) == 1 {
		visitIn(0, 0, true)
		return
	}
	l.build()
	hash := l.hash.Sum(id)
	l.index.Find(hash, func(e indexed) (stop bool) {
		return e.hash == hash && !visitIn(l.with(e.at, id), e.at, false)
	})
}

// remove removes the hits from one position on to another, which is not before it.
func (l *calls) remove(from, to position) {
	if l == nil || l.n == 0 {
		return
	}
	i, j := l.in(from.at, to.at)
	if i == j {
		return
	}
	l.own()
	if from.at <= l.chunks[0].first && from.name == nil && to.name == nil {
		l.trim(to.at)
		return
	}
	var left []call
	for k := i; k < j; k++ {
		for one := range l.chunks[k].all() {
			rest := call{one.at, one.id, one.outside(from, to)}
			l.n -= int(one.count() - rest.count())
			l.text -= one.weight()
			if len(rest.spans) > 0 {
				left = append(left, rest)
				l.text += rest.weight()
			} else {
				l.count--
				l.forget(one)
			}
		}
	}
	l.replace(i, j, callChunks(left))
}

// trim removes the calls before a time.
func (l *calls) trim(at int64) {
	n := 0
	for n < len(l.chunks) && l.chunks[n].last < at {
		l.gone(&l.chunks[n], len(l.chunks[n].data))
		n++
	}
	clear(l.chunks[:n])
	if l.chunks = l.chunks[n:]; len(l.chunks) == 0 {
		*l = calls{hash: l.hash}
		return
	}
	c, head := &l.chunks[0], 0
	for one, end := range c.ends() {
		if one.at >= at {
			break
		}
		head = end
	}
	if head > 0 {
		l.gone(c, head)
	}
}

// gone counts the calls of a chunk up to an offset as removed.
func (l *calls) gone(c *callChunk, head int) {
	k := 0
	for one, end := range c.ends() {
		if end > head {
			c.first = one.at
			break
		}
		k += int(one.count())
		l.count--
		l.text -= one.weight()
		l.forget(one)
	}
	c.head = head
	c.n, c.base, l.n = c.n-k, c.base+k, l.n-k
}

// without removes the hits of a call whose numbers are in [lo,hi).
func (l *calls) without(at int64, id []byte, lo, hi uint64) {
	if l == nil || l.n == 0 {
		return
	}
	i := l.with(at, id)
	all := l.chunks[i].kept()
	k, found := slices.BinarySearchFunc(all, at, func(c call, at int64) int { return c.compare(at, id) })
	if !found {
		return
	}
	var left spans
	for _, s := range all[k].spans {
		left = left.with(s.lo, min(s.hi, max(s.lo, lo)))
		left = left.with(max(s.lo, min(s.hi, hi)), s.hi)
	}
	l.own()
	l.n -= int(all[k].count() - left.count())
	l.text -= all[k].weight()
	if all[k].spans = left; len(left) > 0 {
		l.text += all[k].weight()
	} else {
		l.count--
		l.forget(all[k])
		all = slices.Delete(all, k, k+1)
	}
	l.replace(i, i+1, callChunks(all))
}

// before returns how many hits are before a time, or at it with a lesser name.
func (l *calls) before(at int64, name []byte) int {
	n := l.after(at - 1)
	for _, c := range l.at(at) {
		first, cut := c.cut(position{at, name})
		has, others := c.split()
		if first && has {
			n++
		}
		n += int(others.before(&cut))
	}
	return n
}

// replace replaces the chunks [i,j), and merges what is small.
func (l *calls) replace(i, j int, fresh []callChunk) {
	if i > 0 && len(fresh) > 0 && len(l.chunks[i-1].data)+len(fresh[0].data) <= maxCalls/2 {
		i--
		fresh = callChunks(slices.Concat(l.chunks[i].kept(), keptOf(fresh)))
	}
	switch {
	case i == 0 && len(fresh) == 0:
		clear(l.chunks[:j])
		l.chunks = l.chunks[j:]
	default:
		l.chunks = slices.Replace(l.chunks, i, j, fresh...)
		l.rebase(i)
	}
	if l.n == 0 {
		*l = calls{hash: l.hash}
	}
}

// rebase corrects the bases of the chunks from one on.
func (l *calls) rebase(i int) {
	for i = max(i, 1); i < len(l.chunks); i++ {
		l.chunks[i].base = l.chunks[i-1].base + l.chunks[i-1].n
	}
}

func keptOf(chunks []callChunk) (all []call) {
	for i := range chunks {
		all = append(all, chunks[i].kept()...)
	}
	return all
}

// weight estimates how many bytes the calls take; 0 for nil.
func (l *calls) weight() int {
	if l == nil {
		return 0
	}
	const indexWeight = 26
	n := int(unsafe.Sizeof(*l))
	if len(l.chunks) > 1 { // a reader may build the index at any time
		n += l.count * indexWeight
	}
	if k := len(l.chunks); k > 0 {
		n += k * (int(unsafe.Sizeof(callChunk{})) + maxCalls)
		n += 2*cap(l.chunks[k-1].data) - maxCalls
	}
	return n
}
