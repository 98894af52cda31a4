package engine

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
)

// Delete removes a key, and reports whether there was one.
func (tx *Tx) Delete(k Key) bool {
	o := tx.find(tx.db, k)
	if o == nil {
		tx.deleteExpired(tx.db, k)
		return false
	}
	tx.delete(k, o)
	return true
}

// Exists reports whether a key exists. The lookup does not count as an access.
func (tx *Tx) Exists(k Key) bool { return tx.peek(k) != nil }

// Touch is Exists, but counts as an access.
func (tx *Tx) Touch(k Key) bool {
	o := tx.peek(k)
	if o != nil {
		o.Touch(tx.e.memory.stamp(tx.e.shardOf(k), o, false))
	}
	return o != nil
}

// Type returns the type of a key; TypeNone for a missing key.
func (tx *Tx) Type(k Key) object.Type {
	if o := tx.peek(k); o != nil {
		return o.Kind()
	}
	return object.TypeNone
}

// Rename moves the value of a key, with its deadline, to another key, and replaces the value there.
// A missing key is ErrNoSuchKey; renaming a key to itself does nothing.
func (tx *Tx) Rename(from, to Key) error {
	o := tx.lookup(from)
	if o == nil {
		return ErrNoSuchKey
	}
	if !same(from, to) {
		tx.apply(o, &effect.Effect{Kind: effect.Rename, Key: from, To: to})
	}
	return nil
}

// RenameNX is Rename unless the other key exists, and reports whether it was done: false from a key
// to itself.
func (tx *Tx) RenameNX(from, to Key) (bool, error) {
	o := tx.lookup(from)
	if o == nil {
		return false, ErrNoSuchKey
	}
	if tx.lookup(to) != nil {
		return false, nil
	}
	tx.apply(o, &effect.Effect{Kind: effect.Rename, Key: from, To: to})
	return true, nil
}

// Copy copies the value of a key, with its deadline, to another key in a database that exists, and
// reports whether it was done: false if the key is missing, or if the other one exists and replace
// is false. The copy of a sorted set is lazy. Copying a key to itself is ErrSameObject.
func (tx *Tx) Copy(from, to Key, db int, replace bool) (bool, error) {
	if db == tx.db && same(from, to) {
		return false, ErrSameObject
	}
	o := tx.lookup(from)
	if o == nil || !replace && tx.find(db, to) != nil {
		return false, nil
	}
	if !tx.roomToStore(db, to, object.Weigh(o)) {
		return false, ErrOutOfMemory
	}
	tx.apply(o, &effect.Effect{Kind: effect.Copy, Key: from, To: to, ToDB: db})
	return true, nil
}

// Move moves a key, with its deadline, to another database that exists, and reports whether it was
// done: false if the key is missing here, or exists there. The same database is ErrSameObject.
func (tx *Tx) Move(k Key, db int) (bool, error) {
	if db == tx.db {
		return false, ErrSameObject
	}
	o := tx.lookup(k)
	if o == nil || tx.find(db, k) != nil {
		return false, nil
	}
	tx.apply(o, &effect.Effect{Kind: effect.Move, Key: k, ToDB: db})
	return true, nil
}

func same(a, b Key) bool { return bytes.Equal(a.Name, b.Name) }

// Size returns how many keys the database has, including expired keys that are not deleted yet, as
// in Redis. It is for a call on the whole keyspace.
func (tx *Tx) Size() int { return tx.size(tx.db) }

func (tx *Tx) size(db int) (keys int) {
	for _, sh := range tx.locked {
		keys += sh.dbs[db].size()
	}
	return keys
}

// Flush deletes all keys of the database, in a time that does not depend on their number. It is for
// a call on the whole keyspace.
func (tx *Tx) Flush() { tx.flush(tx.db) }

// FlushAll is Flush for every database.
func (tx *Tx) FlushAll() {
	for db := range tx.e.databases {
		tx.flush(db)
	}
}

func (tx *Tx) flush(db int) {
	if tx.size(db) > 0 {
		tx.perform(nil, &effect.Effect{Kind: effect.Flush, DB: db})
	} else if tx.listening() {
		tx.listen(nil, nil, &effect.Effect{Kind: effect.Flush, DB: db})
	}
}

// Swap swaps two databases that exist. It is for a call on the whole keyspace.
func (tx *Tx) Swap(a, b int) {
	if a != b && tx.size(a)+tx.size(b) > 0 {
		tx.perform(nil, &effect.Effect{Kind: effect.Swap, DB: a, ToDB: b})
	}
}

// Idle returns the seconds since the last access of a key, up to 194 days; ok is false for a
// missing key. The lookup does not count as an access.
func (tx *Tx) Idle(k Key) (seconds int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return int64((uint32(tx.now/1000) - o.Accessed()) & eviction.ClockMask), true
}

// Encoding returns the reply of OBJECT ENCODING: how Redis would encode the value, judging by its
// content and, for strings, by whether a part was written. It is "packed" for types that Redis
// lacks. ok is false for a missing key. The lookup does not count as an access.
func (tx *Tx) Encoding(k Key, p object.Packing) (word string, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return "", false
	}
	return o.Encoding(p), true
}

// Address returns the memory address of a key's object; ok is false for a missing key. The lookup
// does not count as an access.
func (tx *Tx) Address(k Key) (text string, ok bool) {
	o := tx.peek(k)
	return fmt.Sprintf("%p", o), o != nil
}

// References returns the reply of OBJECT REFCOUNT: 1, except for integers that Redis shares among
// keys. ok is false for a missing key. The lookup does not count as an access.
func (tx *Tx) References(k Key) (n int64, ok bool) {
	switch o := tx.peek(k).(type) {
	case nil:
		return 0, false
	case *object.String:
		return o.References(), true
	}
	return 1, true
}

// A SCAN cursor is a shard and a position in it: shard<<cursorShift | position. Both are in the
// order of the keys' hashes, so a key that exists throughout is visited once, whatever keys are
// added and removed meanwhile.
const cursorShift = 32

// scanStep is how many keys Scan visits under one lock of a shard.
const scanStep = 256

// scanned is a key that Scan has found.
type scanned struct {
	name []byte
	kind object.Type
}

// Scan visits about count keys of the database from the cursor on, and returns the cursor at which
// to continue, 0 after the last key. A scan begins with 0; a cursor that no scan returned may visit
// nothing. A name stays valid, and must not be written to.
//
// It is called on an idle Tx, not between Begin and End, and locks one shard after the other, for a
// few hundred keys at a time; visit is called under no lock. After BeginAll it uses the locks and
// the time of that call. The next End returns the position of the latest change it has seen. It
// reports false if a script holds a key of the next shard for too long.
func (tx *Tx) Scan(
	now int64, db int, cursor uint64, count int, visit func(name []byte, t object.Type),
) (next uint64, ok bool) {
	var found []scanned
	index, position := cursor>>cursorShift, cursor&(1<<cursorShift-1)
	for index < uint64(len(tx.e.shards)) {
		if count <= 0 {
			return index<<cursorShift | position, true
		}
		sh, held := &tx.e.shards[index], len(tx.locked) > 0
		if !held {
			tx.locked, tx.whole = append(tx.locked, sh), true
			if !tx.begin(now, db, false, false) {
				return 0, false
			}
		}
		var seen int
		position, seen = tx.scanShard(sh, db, position, min(count, scanStep), &found)
		if !held {
			tx.endStep()
		}
		for _, key := range found {
			visit(key.name, key.kind)
		}
		clear(found)
		found = found[:0]
		if count -= seen; position == 0 {
			index++
		}
	}
	return 0, true
}

// scanShard appends about count keys of a shard, from the position on, to found. Expired keys count
// as seen but are deleted instead.
func (tx *Tx) scanShard(sh *shard, db int, position uint64, count int, found *[]scanned) (next uint64, seen int) {
	keys := sh.dbs[db].keys
	if keys == nil {
		return 0, 0
	}
	var expired []object.Object
	var names []byte // one allocation for all, as those of the keys may be overwritten
	next = keys.Scan(position, count, func(o object.Object) {
		seen++
		if o.Expired(tx.now) {
			expired = append(expired, o)
		} else {
			start := len(names)
			names = append(names, o.Name()...)
			*found = append(*found, scanned{names[start:len(names):len(names)], o.Kind()})
		}
	})
	for _, o := range expired {
		tx.lapse(db, tx.e.Key(object.BytesOf(o.Name())), o)
	}
	return next, seen
}

// Keys yields every key of the database, in no particular order. It is for a call on the whole
// keyspace. A name is valid until the next change or End, and must not be written to.
func (tx *Tx) Keys() iter.Seq2[[]byte, object.Type] {
	return func(yield func([]byte, object.Type) bool) {
		for _, sh := range tx.locked {
			keys := sh.dbs[tx.db].keys
			if keys == nil {
				continue
			}
			for o := range keys.All() {
				if !o.Expired(tx.now) && !yield(object.BytesOf(o.Name()), o.Kind()) {
					return
				}
			}
		}
	}
}

// randomTries is how many keys RandomKey draws before it takes the first live one.
const randomTries = 100

// RandomKey returns a random key of the database; ok is false if the database is empty. It is for a
// call on the whole keyspace. The name is valid as long as those of Keys.
//
// Each key has the same probability, unless nearly all keys have expired: then it returns the first
// live one.
func (tx *Tx) RandomKey(r *rand.Rand) (name []byte, ok bool) {
	for range randomTries {
		total := tx.Size()
		if total == 0 {
			return nil, false
		}
		o := tx.nth(r.IntN(total), r)
		if name = object.BytesOf(o.Name()); !o.Expired(tx.now) {
			return name, true
		}
		tx.lapse(tx.db, tx.e.Key(name), o)
	}
	for name := range tx.Keys() {
		return name, true
	}
	return nil, false
}

// nth returns a random key of the shard that holds the n-th key.
func (tx *Tx) nth(n int, r *rand.Rand) object.Object {
	for _, sh := range tx.locked {
		s := &sh.dbs[tx.db]
		if n < s.size() {
			return s.keys.Random(r)
		}
		n -= s.size()
	}
	panic("engine: more keys were counted than there are")
}

func (s *space) size() int {
	if s.keys == nil {
		return 0
	}
	return s.keys.Len()
}
