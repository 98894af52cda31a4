package zset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"

	"rlserver/internal/dict"
)

// element is an element of a set to be built. member aliases an operand.
type element struct {
	member []byte
	score  float64
}

// compare orders elements as a set does.
func (e element) compare(other element) int {
	if e.score != other.score {
		return cmp.Compare(e.score, other.score)
	}
	return bytes.Compare(e.member, other.member)
}

// build returns a set of elements in any order that have different members. It packs whole runs and
// chapters, which is several times as fast as adding single elements, and needs no memory besides
// the set.
func build(h *dict.Hasher, elements []element) *Set {
	s := New(h)
	elements = s.addHits(elements)
	if !slices.IsSortedFunc(elements, element.compare) {
		slices.SortFunc(elements, element.compare)
	}
	if len(elements) > 0 {
		s.others().extend(elements)
	}
	return s
}

// addHits adds the hits among elements, and returns the others, in the same array.
func (s *Set) addHits(elements []element) (others []element) {
	var hits []hit
	others = elements[:0]
	for _, e := range elements {
		if h, ok := hitOf(e.member); ok && h.scored(e.score) {
			hits = append(hits, h)
		} else {
			others = append(others, e)
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	for _, h := range hits {
		s.hits().Add(h.at, h.seq, h.seq+1)
	}
	return others
}

// extend adds sorted elements that are all greater than those of the set.
func (s *rest) extend(elements []element) {
	for len(elements) > 0 {
		n, size := 1, len(elements[0].member)
		for n < min(len(elements), maxMembers) && size+len(elements[n].member) <= maxBytes {
			size += len(elements[n].member)
			n++
		}
		s.seq.append(packed(elements[:n], size))
		elements = elements[n:]
	}
	s.grown()
}

// packed returns a run of elements, which fit one run. size is the length of all members together.
func packed(elements []element, size int) run {
	r := run{
		low:    elements[0].score,
		high:   elements[len(elements)-1].score,
		starts: make([]uint16, len(elements)),
		bytes:  make([]byte, 0, size),
	}
	for i, e := range elements {
		r.starts[i] = uint16(len(r.bytes))
		r.bytes = append(r.bytes, e.member...)
		if r.scores == nil && !selfScored(e.member, e.score) {
			r.scores = make([]float64, len(elements))
			for j := range i {
				r.scores[j] = elements[j].score
			}
		}
		if r.scores != nil {
			r.scores[i] = e.score
		}
	}
	return r
}

// append adds a run whose elements are greater than all others.
func (q *sequence) append(r run) {
	r.owner = q.owner
	ch := q.own(q.last())
	q.count(ch, r.len())
	q.text += r.size()
	q.addRun(ch, len(ch.runs), r)
}

// members is a hash table of elements by member. Its slots have the numbers of the elements.
type members struct {
	h        *dict.Hasher
	elements []element
	slots    []uint64 // upper half of the hash | number of the element + 1; 0: empty
	shift    int
}

// newMembers returns a table with room for n elements.
func newMembers(h *dict.Hasher, n int) *members {
	t := &members{h: h, elements: make([]element, 0, n)}
	t.resize(n)
	return t
}

// resize makes room for n elements: the table is at most two thirds full.
func (t *members) resize(n int) {
	bits := 4
	for 1<<bits*2/3 < n {
		bits++
	}
	old := t.slots
	t.slots, t.shift = make([]uint64, 1<<bits), 64-bits
	for _, slot := range old {
		if slot != 0 {
			t.put(slot)
		}
	}
}

func (t *members) put(slot uint64) {
	i := slot >> t.shift
	for t.slots[i] != 0 {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	t.slots[i] = slot
}

const numberMask = 1<<32 - 1

// find returns the number of the element of a member, -1 if it is missing, and the hash for add.
func (t *members) find(member []byte) (number int, hash uint64) {
	hash = t.h.Sum(member) &^ numberMask
	for i := hash >> t.shift; t.slots[i] != 0; i = (i + 1) & uint64(len(t.slots)-1) {
		if slot := t.slots[i]; slot&^numberMask == hash {
			if number = int(slot&numberMask) - 1; bytes.Equal(t.elements[number].member, member) {
				return number, hash
			}
		}
	}
	return -1, hash
}

// add adds an element whose member find has not found.
func (t *members) add(hash uint64, e element) {
	if len(t.elements) >= len(t.slots)*2/3 {
		t.resize(2 * len(t.elements))
	}
	t.elements = append(t.elements, e)
	t.put(hash | uint64(len(t.elements)))
}

// tableOf returns a table of elements that have different members.
func tableOf(h *dict.Hasher, elements []element) *members {
	t := &members{h: h, elements: elements}
	t.resize(len(elements))
	for i, e := range elements {
		t.put(h.Sum(e.member)&^numberMask | uint64(i+1))
	}
	return t
}

// Collect returns a set of about n elements in any order, whose members differ. A score of -0
// becomes 0, as in sets that Redis stores.
func Collect(h *dict.Hasher, all iter.Seq2[[]byte, float64], n int) *Set {
	elements := make([]element, 0, n)
	for member, score := range all {
		elements = append(elements, element{member, score + 0})
	}
	return build(h, elements)
}

// Pack appends the elements of a set in order: for each the length of the member as an unsigned
// varint, the member, and the bits of the score, little-endian.
func (s *Set) Pack(dst []byte) []byte {
	dst = slices.Grow(dst, s.text()+s.Len()*packedSize)
	for member, score := range s.Ascend(0, s.Len()) {
		dst = binary.AppendUvarint(dst, uint64(len(member)))
		dst = append(dst, member...)
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
	}
	return dst
}

// packedSize is the size of a packed element without its member, if that is short, in bytes.
const packedSize = 1 + 8

// Unpack returns the set that Pack has encoded. It returns an error if the bytes are not such an
// encoding.
func Unpack(h *dict.Hasher, packed []byte) (*Set, error) {
	var elements []element
	for len(packed) > 0 {
		n, size := binary.Uvarint(packed)
		if size <= 0 || n > uint64(len(packed)-size) || uint64(len(packed)-size)-n < 8 {
			return nil, errPacked
		}
		member, rest := packed[size:size+int(n)], packed[size+int(n):]
		e := element{member, math.Float64frombits(binary.LittleEndian.Uint64(rest))}
		if math.IsNaN(e.score) || len(elements) > 0 && elements[len(elements)-1].compare(e) >= 0 {
			return nil, errPacked
		}
		elements, packed = append(elements, e), rest[8:]
	}
	t := newMembers(h, len(elements))
	for _, e := range elements {
		number, hash := t.find(e.member)
		if number >= 0 {
			return nil, errPacked
		}
		t.add(hash, e)
	}
	return build(h, elements), nil
}

var errPacked = errors.New("this is not a sorted set")
