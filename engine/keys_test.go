package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/zset"
)

// keyspace is an engine for tests of calls on several keys, which compare dumps.
type keyspace struct {
	t   *testing.T
	e   *Engine
	tx  *Tx
	log *recorder
	now int64
	db  int
}

func newKeyspace(t *testing.T) *keyspace {
	log := new(recorder)
	e := New(Options{Databases: 4, Journal: log})
	return &keyspace{t: t, e: e, tx: e.NewTx(), log: log, now: epoch}
}

// do makes a call on keys.
func (b *keyspace) do(call func(k []Key), names ...string) {
	var keys []Key
	for _, name := range names {
		keys = append(keys, b.e.Key([]byte(name)))
	}
	b.tx.Begin(b.now, b.db, keys, true)
	defer b.tx.End()
	call(keys)
}

// all makes a call on the whole keyspace.
func (b *keyspace) all(call func()) {
	b.tx.BeginAll(b.now, b.db, true)
	defer b.tx.End()
	call()
}

func (b *keyspace) set(name, value string, expireAt int64) {
	b.do(func(k []Key) { b.tx.Set(k[0], []byte(value), SetMode{ExpireAt: expireAt}) }, name)
}

// holds compares all keys with lines of the form: database name value deadline.
func (b *keyspace) holds(want ...string) {
	b.t.Helper()
	var lines []string
	for _, w := range want {
		f := strings.Fields(w)
		lines = append(lines, fmt.Sprintf("%s %q: string, deadline %s: %q", f[0], f[1], f[3], f[2]))
	}
	assert.Equal(b.t, lines, dump(b.e))
	assert.Equal(b.t, lines, dump(b.log.replayed(Options{Databases: 4, Shards: 2})), "replayed")
	requireSound(b.t, b.e)
}

// requireNoEffects checks that do records no effects.
func (b *keyspace) requireNoEffects(do func()) {
	b.t.Helper()
	before := len(b.log.effects())
	do()
	assert.Equal(b.t, before, len(b.log.effects()), "nothing changed, so nothing is recorded")
}

func TestDeleteRemovesKeys(t *testing.T) {
	b := newKeyspace(t)
	b.set("a", "1", 0)
	b.set("b", "2", epoch+5)
	b.now = epoch + 6
	b.do(func(k []Key) {
		assert.True(t, b.tx.Delete(k[0]))
		assert.False(t, b.tx.Delete(k[0]))
		assert.False(t, b.tx.Delete(k[1]), "it has expired")
		assert.False(t, b.tx.Delete(k[2]))
	}, "a", "b", "c")
	b.holds()
	assert.EqualValues(t, 1, b.e.Memory().Stats().Expired)
}

func TestRenameMovesKeys(t *testing.T) {
	b := newKeyspace(t)
	rename := func(from, to string) (err error) {
		b.do(func(k []Key) { err = b.tx.Rename(k[0], k[1]) }, from, to)
		return err
	}
	renameNX := func(from, to string) (done bool, err error) {
		b.do(func(k []Key) { done, err = b.tx.RenameNX(k[0], k[1]) }, from, to)
		return done, err
	}
	b.requireNoEffects(func() {
		assert.Equal(t, ErrNoSuchKey, rename("a", "b"))
		assert.Equal(t, ErrNoSuchKey, rename("a", "a"))
		_, err := renameNX("a", "a")
		assert.Equal(t, ErrNoSuchKey, err)
	})
	b.set("a", "1", epoch+5)
	b.set("b", "2", epoch+9)
	b.set("c", "3", 0)
	b.requireNoEffects(func() {
		assert.NoError(t, rename("a", "a"))
		done, err := renameNX("a", "a")
		assert.NoError(t, err)
		assert.False(t, done)
		done, err = renameNX("a", "b")
		assert.NoError(t, err)
		assert.False(t, done)
	})
	require.NoError(t, rename("a", "b"))
	b.holds(fmt.Sprint("0 b 1 ", epoch+5), "0 c 3 0")
	require.NoError(t, rename("b", "new"))
	b.holds("0 c 3 0", fmt.Sprint("0 new 1 ", epoch+5))
	b.now = epoch + 6
	assert.Equal(t, ErrNoSuchKey, rename("new", "c"), "it has expired")
	done, err := renameNX("c", "new")
	assert.NoError(t, err)
	assert.True(t, done, "to an expired key")
	b.holds("0 new 3 0")
}

func TestCopyCopiesKeys(t *testing.T) {
	b := newKeyspace(t)
	copyTo := func(from, to string, db int, replace bool) (done bool) {
		b.do(func(k []Key) {
			var err error
			done, err = b.tx.Copy(k[0], k[1], db, replace)
			require.NoError(t, err)
		}, from, to)
		return done
	}
	b.set("a", "1", epoch+5)
	b.set("b", "2", 0)
	b.requireNoEffects(func() {
		assert.False(t, copyTo("missing", "b", 0, true))
		assert.False(t, copyTo("a", "b", 0, false))
		b.do(func(k []Key) {
			_, err := b.tx.Copy(k[0], k[0], 0, true)
			assert.Equal(t, ErrSameObject, err)
			_, err = b.tx.Copy(k[1], k[1], 0, true)
			assert.Equal(t, ErrSameObject, err, "even for a missing key")
		}, "a", "missing")
	})
	assert.True(t, copyTo("a", "b", 0, true))
	assert.True(t, copyTo("a", "c", 0, false))
	assert.True(t, copyTo("a", "a", 3, false))
	assert.False(t, copyTo("a", "a", 3, false))
	d := fmt.Sprint(epoch + 5)
	b.holds("0 a 1 "+d, "0 b 1 "+d, "0 c 1 "+d, "3 a 1 "+d)
	b.now = epoch + 6
	b.set("b", "3", 0)
	assert.False(t, copyTo("a", "b", 0, true), "it has expired")
	assert.True(t, copyTo("b", "c", 0, false), "to an expired key")
	assert.True(t, copyTo("b", "a", 3, false))
	b.holds("0 a 1 "+d, "0 b 3 0", "0 c 3 0", "3 a 3 0")
}

// A copy and its original are independent, for every type.
func TestCopiesAreIndependent(t *testing.T) {
	b := newKeyspace(t)
	rules := []limit.Window{{Limit: 1000, Length: 60_000}}
	grow := map[string]func(k Key){
		"string": func(k Key) { b.tx.Append(k, []byte("more")) },
		"hash":   func(k Key) { b.tx.HSet(k, [][]byte{fmt.Append(nil, b.tx.now), []byte("v")}) },
		"list":   func(k Key) { b.tx.Insert(k, object.TypeList, 0, fmt.Append(nil, b.tx.now)) },
		"set":    func(k Key) { b.tx.Insert(k, object.TypeSet, 0, fmt.Append(nil, b.tx.now)) },
		"log":    func(k Key) { b.tx.Slide(k, rules, 200, nil) },
		"bucket": func(k Key) { b.tx.Token(k, limit.Bucket{Capacity: 1000, Refill: 1, Period: 1000}, 2) },
		"window": func(k Key) { b.tx.Fixed(k, limit.Fixed{Limit: 1000, Window: limit.Every(60_000)}, 2) },
	}
	content := func(k Key) string { return contentOf(b.tx.find(0, k)) }
	for name, add := range grow {
		b.do(func(k []Key) {
			add(k[0])
			_, err := b.tx.Copy(k[0], k[1], 0, false)
			require.NoError(t, err)
			before := content(k[0])
			require.Equal(t, before, content(k[1]), name)
			b.tx.now++
			add(k[1])
			assert.Equal(t, before, content(k[0]), name)
			assert.NotEqual(t, before, content(k[1]), name)
			after := content(k[1])
			b.tx.now++
			add(k[0])
			assert.Equal(t, after, content(k[1]), name)
		}, name, name+" copy")
	}
	assert.Equal(t, dump(b.e), dump(b.log.replayed(Options{Databases: 4})))
}

func TestMoveMovesKeysToDatabases(t *testing.T) {
	b := newKeyspace(t)
	move := func(name string, db int) (done bool) {
		b.do(func(k []Key) {
			var err error
			done, err = b.tx.Move(k[0], db)
			require.NoError(t, err)
		}, name)
		return done
	}
	b.set("a", "1", epoch+5)
	b.set("b", "2", 0)
	b.db = 1
	b.set("b", "3", epoch+5)
	b.db = 0
	b.requireNoEffects(func() {
		assert.False(t, move("missing", 1))
		assert.False(t, move("b", 1), "it exists there")
		b.do(func(k []Key) {
			_, err := b.tx.Move(k[0], 0)
			assert.Equal(t, ErrSameObject, err, "even for a missing key")
		}, "missing")
	})
	assert.True(t, move("a", 2))
	b.holds("0 b 2 0", fmt.Sprint("1 b 3 ", epoch+5), fmt.Sprint("2 a 1 ", epoch+5))
	b.now = epoch + 6
	assert.True(t, move("b", 1), "to an expired key")
	b.db = 2
	assert.False(t, move("a", 0), "it has expired")
	b.holds("1 b 2 0", fmt.Sprint("2 a 1 ", epoch+5))
}

func TestFlushAndSwapChangeDatabases(t *testing.T) {
	b := newKeyspace(t)
	b.requireNoEffects(func() {
		b.all(func() {
			b.tx.Flush()
			b.tx.FlushAll()
			b.tx.Swap(0, 3)
		})
	})
	for db := range 3 {
		b.db = db
		b.set("k", fmt.Sprint(db), epoch+int64(db))
		b.set("l", fmt.Sprint(db), 0)
	}
	b.requireNoEffects(func() { b.all(func() { b.tx.Swap(2, 2) }) })
	b.db = 1
	b.all(func() { b.tx.Flush() })
	b.holds(fmt.Sprint("0 k 0 ", epoch), "0 l 0 0", fmt.Sprint("2 k 2 ", epoch+2), "2 l 2 0")
	b.all(func() { b.tx.Swap(2, 0) })
	b.all(func() { b.tx.Swap(0, 3) })
	b.holds(fmt.Sprint("2 k 0 ", epoch), "2 l 0 0", fmt.Sprint("3 k 2 ", epoch+2), "3 l 2 0")
	b.all(func() { assert.Zero(t, b.tx.Size()) })
	b.db = 3
	b.all(func() { assert.Equal(t, 2, b.tx.Size()) })
	b.all(func() { b.tx.FlushAll() })
	b.holds()
}

// Lookups that are not accesses keep the access clock; accesses and the creation of a key set it.
func TestIdleCountsSecondsSinceAccess(t *testing.T) {
	b := newKeyspace(t)
	idle := func() (seconds int64) {
		b.do(func(k []Key) {
			var ok bool
			seconds, ok = b.tx.Idle(k[0])
			require.True(t, ok)
		}, "k")
		return seconds
	}
	b.set("k", "v", 0)
	assert.Zero(t, idle())
	b.now += 10_000
	assert.EqualValues(t, 10, idle(), "since its creation")
	b.do(func(k []Key) {
		b.tx.Exists(k[0])
		b.tx.Type(k[0])
		b.tx.Deadline(k[0])
		b.tx.Encoding(k[0], object.DefaultPacking)
		b.tx.References(k[0])
		b.tx.Idle(k[0])
		_, ok := b.tx.Idle(k[1])
		assert.False(t, ok)
	}, "k", "missing")
	b.tx.Scan(b.now, 0, 0, 10, func([]byte, object.Type) {})
	b.all(func() {
		for range b.tx.Keys() {
		}
		b.tx.RandomKey(rand.New(rand.NewPCG(1, 2)))
	})
	assert.EqualValues(t, 10, idle(), "these lookups are not accesses")
	b.do(func(k []Key) { b.tx.Touch(k[0]) }, "k")
	assert.Zero(t, idle())
	b.now += 5_999
	assert.EqualValues(t, 5, idle())
	b.do(func(k []Key) { b.tx.Get(k[0]) }, "k")
	assert.Zero(t, idle())
	b.now += 3000
	b.do(func(k []Key) { require.NoError(t, b.tx.Rename(k[0], k[1])) }, "k", "other")
	b.now += 4000
	b.do(func(k []Key) { b.tx.Copy(k[1], k[0], 0, false) }, "k", "other")
	assert.Zero(t, idle(), "a copy is new")
	b.now += eviction.ClockMask * 1000
	assert.EqualValues(t, eviction.ClockMask, idle(), "the longest it can report")
}

func TestTypesAndEncodings(t *testing.T) {
	b := newKeyspace(t)
	long := strings.Repeat("x", 64)
	hash := func(fields int, value string) func(Key) {
		return func(k Key) {
			for i := range fields {
				b.tx.HSet(k, [][]byte{fmt.Append(nil, i), []byte(value)})
			}
		}
	}
	zset := func(members int, prefix string) func(Key) {
		return func(k Key) {
			for i := range members {
				b.tx.ZAdd(k, 0, []zset.Member{{Member: fmt.Append([]byte(prefix), i), Score: 1}})
			}
		}
	}
	str := func(value string) func(Key) {
		return func(k Key) { b.tx.Set(k, []byte(value), SetMode{}) }
	}
	for _, step := range []struct {
		name       string
		make       func(Key)
		kind       object.Type
		encoding   string
		references int64
	}{
		{"a number", str("12345"), object.TypeString, "int", 1},
		{"a number that Redis shares", str("9999"), object.TypeString, "int", math.MaxInt32},
		{"zero", str("0"), object.TypeString, "int", math.MaxInt32},
		{"negative", str("-1"), object.TypeString, "int", 1},
		{"the least number", str("-9223372036854775808"), object.TypeString, "int", 1},
		{"the greatest number", str("9223372036854775807"), object.TypeString, "int", 1},
		{"a greater one", str("9223372036854775808"), object.TypeString, "embstr", 1},
		{"not canonical", str("+1"), object.TypeString, "embstr", 1},
		{"not canonical", str("01"), object.TypeString, "embstr", 1},
		{"not canonical", str("-0"), object.TypeString, "embstr", 1},
		{"not canonical", str("1 "), object.TypeString, "embstr", 1},
		{"nothing", str(""), object.TypeString, "embstr", 1},
		{"44 bytes", str(long[:44]), object.TypeString, "embstr", 1},
		{"45 bytes", str(long[:45]), object.TypeString, "raw", 1},
		{"512 fields", hash(512, long), object.TypeHash, "listpack", 1},
		{"513 fields", hash(513, "v"), object.TypeHash, "hashtable", 1},
		{"a long value", hash(1, long+"x"), object.TypeHash, "hashtable", 1},
		{"a long field", func(k Key) { b.tx.HSet(k, [][]byte{[]byte(long + "x"), nil}) },
			object.TypeHash, "hashtable", 1},
		{"128 members", zset(128, "m"), object.TypeZSet, "listpack", 1},
		{"129 members", zset(129, "m"), object.TypeZSet, "skiplist", 1},
		{"a member of 64", zset(1, long[:63]), object.TypeZSet, "listpack", 1},
		{"a member of 65", zset(1, long), object.TypeZSet, "skiplist", 1},
		{"a bucket", func(k Key) { b.tx.Token(k, limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}, 1) },
			object.TypeToken,
			"packed", 1},
		{"a window", func(k Key) { b.tx.Fixed(k, limit.Fixed{Limit: 1, Window: limit.Every(1000)}, 1) },
			object.TypeFixed,
			"packed", 1},
	} {
		b.do(func(k []Key) {
			b.tx.Delete(k[0])
			step.make(k[0])
			assert.Equal(t, step.kind, b.tx.Type(k[0]), step.name)
			encoding, ok := b.tx.Encoding(k[0], object.DefaultPacking)
			assert.True(t, ok)
			assert.Equal(t, step.encoding, encoding, step.name)
			references, ok := b.tx.References(k[0])
			assert.True(t, ok)
			assert.Equal(t, step.references, references, step.name)
		}, "k")
	}
	b.do(func(k []Key) {
		assert.Equal(t, object.TypeNone, b.tx.Type(k[0]))
		_, ok := b.tx.Encoding(k[0], object.DefaultPacking)
		assert.False(t, ok)
		_, ok = b.tx.References(k[0])
		assert.False(t, ok)
	}, "missing")
}

// Lookups of readers are counted as hits or misses, those of writers are not.
func TestStatsCountHitsAndMissesOfReaders(t *testing.T) {
	b := newKeyspace(t)
	b.set("k", "v", epoch)
	read := func() {
		keys := []Key{b.e.Key([]byte("k")), b.e.Key([]byte("missing"))}
		b.tx.Begin(b.now, 0, keys, false)
		defer b.tx.End()
		for _, k := range keys {
			b.tx.Exists(k)
			b.tx.Get(k)
		}
	}
	read()
	assert.Equal(t, Stats{Hits: 2, Misses: 2}, b.e.Memory().Stats())
	b.now++
	read()
	assert.Equal(t, Stats{Hits: 2, Misses: 6}, b.e.Memory().Stats())
	b.e.ResetStats()
	assert.Zero(t, b.e.Memory().Stats())
}

// A call that began as read-only cannot change anything.
func TestReadOnlyCallsCannotChangeKeys(t *testing.T) {
	b := newKeyspace(t)
	b.set("k", "v", 0)
	b.tx.BeginAll(b.now, 0, false)
	k := b.e.Key([]byte("k"))
	assert.Panics(t, func() { b.tx.Delete(k) })
	assert.Panics(t, func() { b.tx.Set(k, nil, SetMode{}) })
	assert.Panics(t, func() { b.tx.Flush() })
	b.tx.End()
	b.holds("0 k v 0")
}

// Many goroutines make calls on two or three of the same few keys, in random order, while others
// use the whole keyspace and a sweeper runs. If there were a deadlock, the test would not end.
func TestConcurrentCallsDoNotDeadlock(t *testing.T) {
	log := new(recorder)
	e := New(Options{Shards: 8, Databases: 4, Journal: log})
	const coins, names, rounds = 12, 24, 1500
	name := func(r *rand.Rand) Key { return e.Key(fmt.Appendf(nil, "k%d", r.IntN(names))) }
	fill(e, 0, "coin", coins, 0)

	var work sync.WaitGroup
	run := func(do func(tx *Tx, r *rand.Rand, now int64)) {
		for worker := range 3 {
			work.Go(func() {
				tx, r := e.NewTx(), rand.New(rand.NewPCG(uint64(worker), 7))
				for i := range rounds {
					do(tx, r, epoch+int64(i))
				}
			})
		}
	}
	on := func(tx *Tx, now int64, db int, keys []Key, do func()) {
		tx.Begin(now, db, keys, true)
		defer tx.End()
		do()
	}
	// Database 0: coins are renamed, but none is lost or duplicated.
	run(func(tx *Tx, r *rand.Rand, now int64) {
		a := e.Key(fmt.Appendf(nil, "coin:%d", r.IntN(2*coins)))
		b := e.Key(fmt.Appendf(nil, "coin:%d", r.IntN(2*coins)))
		on(tx, now, 0, []Key{a, b}, func() { tx.RenameNX(a, b) })
	})
	// Databases 1 to 3: all kinds of calls.
	run(func(tx *Tx, r *rand.Rand, now int64) {
		a, b, c := name(r), name(r), name(r)
		keys, db := []Key{a, b, c}, 1+r.IntN(3)
		on(tx, now, db, keys, func() {
			switch r.IntN(6) {
			case 0:
				tx.Rename(a, b)
			case 1:
				tx.Copy(a, b, 1+r.IntN(3), true)
			case 2:
				tx.Delete(a)
				tx.Delete(b)
				tx.Delete(c)
			case 3:
				tx.Set(a, []byte("v"), SetMode{ExpireAt: now + r.Int64N(20)})
				tx.HSet(b, [][]byte{[]byte("f"), []byte("v")})
				tx.ZAdd(c, 0, []zset.Member{{Member: []byte("m"), Score: float64(now)}})
			case 4:
				if to := 1 + r.IntN(3); to != db {
					tx.Move(a, to)
				}
			case 5:
				tx.Expire(a, now+1+r.Int64N(20), 0)
			}
		})
	})
	run(func(tx *Tx, r *rand.Rand, now int64) {
		if r.IntN(20) > 0 {
			tx.Scan(now, 1, 0, 5, func([]byte, object.Type) {})
			return
		}
		tx.BeginAll(now, 1, true)
		defer tx.End()
		switch r.IntN(4) {
		case 0:
			tx.Swap(2, 3)
		case 1:
			tx.Flush()
		case 2:
			tx.RandomKey(r)
		case 3:
			for range tx.Keys() {
			}
		}
	})
	work.Go(func() {
		s := e.NewSweeper()
		for i := range rounds {
			s.Step(epoch + int64(i))
		}
	})
	work.Go(func() {
		for range rounds {
			e.Size(0)
			e.Memory().Stats()
		}
	})
	work.Wait()

	keys, _ := e.Size(0)
	assert.Equal(t, coins, keys)
	requireSound(t, e)
	assert.Equal(
		t,
		dump(e),
		dump(log.replayed(Options{Databases: 4})),
		"the log has all changes in an order that gives the same state",
	)
}
