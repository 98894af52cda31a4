package policy

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"unsafe"
)

// Overrides are other numbers of policies for some ids: those whose keys are in one shard, by the
// name of the key, policy:{id}. A million take some 80 bytes each: one string for all of an
// override, in a table without pointers to anything else. The zero value is not ready to use.
type Overrides struct {
	hash   func(key string) uint64 // the same as callers pass: it has no common bits
	slots  []string                // records, "": free. Each is behind the place of its hash
	used   int
	bytes  int64 // of the records
	shared bool  // a walk reads slots: they are copied before they change
}

// NewOverrides returns an empty table. hash is that of all keys which are passed.
func NewOverrides(hash func(key string) uint64) *Overrides {
	return &Overrides{hash: hash, slots: make([]string, fewestSlots)}
}

const fewestSlots = 8 // a power of 2

// Override is what a policy says for one id.
type Override struct {
	Key        string // policy:{id}
	Definition string // an algorithm and its numbers: SLIDE 5 1m
	Since      uint64 // the version of the policies to which it was added; 0: there are none
}

// Of reports whether the override is one of a policy.
func (o *Override) Of(name string) bool {
	return o.Policy() == name
}

// Policy returns the name of the policy.
func (o *Override) Policy() string {
	name, _, _ := SplitKey(o.Key)
	return name
}

// ID returns the id.
func (o *Override) ID() string {
	_, id, _ := SplitKey(o.Key)
	return id
}

// encode returns the record of an override.
func (o *Override) encode() string {
	b := make([]byte, 0, 2*binary.MaxVarintLen64+len(o.Key)+len(o.Definition))
	b = binary.AppendUvarint(binary.AppendUvarint(b, o.Since), uint64(len(o.Key)))
	return string(append(append(b, o.Key...), o.Definition...))
}

func decode(record string) (o Override) {
	b := unsafe.Slice(unsafe.StringData(record), len(record))
	since, n := binary.Uvarint(b)
	length, m := binary.Uvarint(b[n:])
	key := n + m
	end := key + int(length)
	return Override{Key: record[key:end], Definition: record[end:], Since: since}
}

// Len returns the number of overrides.
func (t *Overrides) Len() int { return t.used }

// Bytes returns the memory of the table.
func (t *Overrides) Bytes() int64 { return t.bytes + int64(cap(t.slots))*int64(unsafe.Sizeof("")) }

func (t *Overrides) home(hash uint64) int { return int(hash >> (64 - bits.Len(uint(len(t.slots)-1)))) }

// slot returns where the override of a key is, or would be.
func (t *Overrides) slot(hash uint64, key []byte) (i int, found bool) {
	for i = t.home(hash); t.slots[i] != ""; i = (i + 1) & (len(t.slots) - 1) {
		if o := decode(t.slots[i]); o.Key == string(key) {
			return i, true
		}
	}
	return i, false
}

// Find returns the override of a key.
func (t *Overrides) Find(hash uint64, key []byte) (o Override, ok bool) {
	i, ok := t.slot(hash, key)
	if ok {
		o = decode(t.slots[i])
	}
	return o, ok
}

// Put adds an override, in place of the one of the same key.
func (t *Overrides) Put(o Override) {
	t.own()
	i, found := t.slot(t.hash(o.Key), []byte(o.Key))
	if found {
		t.bytes -= recordSize(t.slots[i])
	} else {
		t.used++
	}
	t.slots[i] = o.encode()
	t.bytes += recordSize(t.slots[i])
	if t.used > len(t.slots)*3/4 {
		t.resize(2 * len(t.slots))
	}
}

// recordSize returns the memory of a record: allocations are in steps of 16 bytes or more.
func recordSize(record string) int64 { return int64(len(record)+15) &^ 15 }

// Delete removes the override of a key, and reports whether there was one.
func (t *Overrides) Delete(hash uint64, key []byte) bool {
	i, found := t.slot(hash, key)
	if !found {
		return false
	}
	t.own()
	t.free(i)
	t.shrink()
	return true
}

// free empties a slot, and moves those behind it that could no longer be found.
func (t *Overrides) free(i int) {
	t.bytes -= recordSize(t.slots[i])
	t.used--
	mask := len(t.slots) - 1
	for next := (i + 1) & mask; t.slots[next] != ""; next = (next + 1) & mask {
		home := t.home(t.hash(decode(t.slots[next]).Key))
		if (next-home)&mask >= (next-i)&mask {
			t.slots[i], i = t.slots[next], next
		}
	}
	t.slots[i] = ""
}

// DeleteAll removes those of a policy, and returns how many there were.
func (t *Overrides) DeleteAll(name string) (deleted int) {
	left := make([]string, 0, t.used)
	for _, record := range t.slots {
		if record == "" {
			continue
		}
		if o := decode(record); !o.Of(name) {
			left = append(left, record)
		}
	}
	if deleted = t.used - len(left); deleted > 0 {
		t.slots, t.shared, t.used, t.bytes = make([]string, fewestSlots), false, 0, 0
		for _, record := range left {
			t.Put(decode(record))
		}
	}
	return deleted
}

// Cut is All for a walk that goes on while the table changes: it visits those of now.
func (t *Overrides) Cut() iter.Seq[Override] {
	t.shared = true
	return t.All()
}

// All visits all overrides, in any order.
func (t *Overrides) All() iter.Seq[Override] {
	slots := t.slots
	return func(yield func(Override) bool) {
		for _, record := range slots {
			if record != "" && !yield(decode(record)) {
				return
			}
		}
	}
}

func (t *Overrides) own() {
	if t.shared {
		t.slots, t.shared = slices.Clone(t.slots), false
	}
}

func (t *Overrides) shrink() {
	if n := len(t.slots); n > fewestSlots && t.used < n/8 {
		t.resize(n / 2)
	}
}

func (t *Overrides) resize(n int) {
	before := t.slots
	t.slots, t.shared = make([]string, n), false
	for _, record := range before {
		if record != "" {
			key := decode(record).Key
			i, _ := t.slot(t.hash(key), unsafe.Slice(unsafe.StringData(key), len(key)))
			t.slots[i] = record
		}
	}
}

// Scan visits the overrides whose hashes are at least from, in steps of the places of hashes, until
// it has visited some n. It returns where the next Scan continues; more is false at the end. One
// that is there all the time is visited, whatever changes in between, and some are visited twice.
func (t *Overrides) Scan(from uint64, n int, visit func(Override)) (next uint64, more bool) {
	shift := 64 - bits.Len(uint(len(t.slots)-1))
	mask := len(t.slots) - 1
	for place := int(from >> shift); place < len(t.slots); place++ {
		if n <= 0 {
			return uint64(place) << shift, true
		}
		for i := place; t.slots[i] != ""; i = (i + 1) & mask {
			if o := decode(t.slots[i]); t.home(t.hash(o.Key)) == place {
				visit(o)
				n--
			}
		}
	}
	return 0, false
}
