package engine

import "unsafe"

// What things weigh, in bytes: what the allocator sets aside for them, as measured.
const (
	entryWeight  = 26 // of a key in its database, see package dict
	fieldWeight  = 48 // of a field in a large hash, beside its text
	memberWeight = 56 // of a member in a sorted set, beside its text
	grain        = 16 // in which allocations grow, roughly
)

// MemoryUsage estimates how many bytes a key takes, its name and its share of the keyspace's table included. Of a collection it weighs
// the given number of elements and takes the rest to be alike; 0 weighs all. ok is false if there is no such key.
func (tx *Tx) MemoryUsage(k Key, samples int) (bytes int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return entryWeight + allocated(len(o.head().name)) + weigh(o, samples), true // a short name is part of the object's allocation and weighs as much there
}

func weigh(o object, samples int) int64 {
	switch o := o.(type) {
	case *stringObject:
		return int64(unsafe.Sizeof(*o)) + allocated(cap(o.value))
	case *hashObject:
		return int64(unsafe.Sizeof(*o)) + o.fields.weigh(samples)
	case *zsetObject:
		return int64(unsafe.Sizeof(*o)) + o.weigh(samples)
	case *tokenObject:
		return int64(unsafe.Sizeof(*o))
	default:
		return int64(unsafe.Sizeof(fixedObject{}))
	}
}

// allocated is what n bytes take.
func allocated(n int) int64 { return int64((n + grain - 1) / grain * grain) }

func (h *hash) weigh(samples int) int64 {
	table := int64(cap(h.few)) * int64(unsafe.Sizeof(pair{}))
	if h.many != nil {
		table = int64(h.len()) * fieldWeight
	}
	var text sample
	for field, value := range h.all() {
		if !text.add(allocated(len(field))+allocated(len(value)), samples) {
			break
		}
	}
	return table + text.of(h.len())
}

func (o *zsetObject) weigh(samples int) int64 {
	n := o.set.Len()
	if samples <= 0 || samples > n {
		samples = n
	}
	var text sample
	for member := range o.set.Ascend(0, samples) {
		text.add(int64(len(member)), samples)
	}
	return int64(n)*memberWeight + text.of(n)
}

// sample is the weight of some elements, from which that of all is told.
type sample struct{ elements, weight int64 }

// add takes one more in and reports whether another is wanted; a limit of 0 is none.
func (s *sample) add(weight int64, limit int) (more bool) {
	s.elements++
	s.weight += weight
	return limit <= 0 || s.elements < int64(limit)
}

// of is what n elements weigh.
func (s sample) of(n int) int64 {
	if s.elements == 0 {
		return 0
	}
	return int64(float64(s.weight) / float64(s.elements) * float64(n))
}
