package engine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
)

// longScript begins a script on keys of an engine that has one shard, and has it run for long.
func longScript(e *Engine, names ...string) *Tx {
	var keys []Key
	for _, n := range names {
		keys = append(keys, e.Key([]byte(n)))
	}
	tx := e.NewTx()
	tx.Begin(epoch, 0, keys, true)
	tx.Hold(false)
	return tx
}

// set sets a key of a call.
func set(tx *Tx, name, value string) {
	tx.Set(tx.e.Key([]byte(name)), []byte(value), SetMode{})
}

func get(tx *Tx, name string) string {
	value, _, _ := tx.Get(tx.e.Key([]byte(name)))
	return string(value)
}

// one runs a call on a key, and reports false if it is refused.
func one(e *Engine, now int64, name string, do func(*Tx)) (ok bool) {
	tx := e.NewTx()
	if !tx.BeginUnlessHeld(now, 0, []Key{e.Key([]byte(name))}, false, true) {
		return false
	}
	do(tx)
	tx.End()
	return true
}

// Others wait for the keys of a script that runs for long, and for no other key of its shard. They
// are refused when it is late. It sees one time.
func TestScriptsHoldTheirKeysOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Shards: 1})
		script := longScript(e, "a", "b")
		script.Enter()
		set(script, "a", "half")
		script.Leave()
		assert.True(t, one(e, epoch+9, "other", func(tx *Tx) { set(tx, "other", "1") }))

		var waited atomic.Int64
		for _, name := range []string{"a", "b"} {
			go func() {
				if one(e, epoch+9, name, func(tx *Tx) { assert.Equal(t, "all", get(tx, name)) }) {
					waited.Add(1)
				}
			}()
		}
		refused := make(chan bool, 4)
		go func() { refused <- !e.NewTx().BeginUnlessHeld(epoch, 0, nil, true, true) }()
		go func() {
			_, ok := e.NewTx().Scan(epoch, 0, 0, 10, func([]byte, object.Type) {})
			refused <- !ok
		}()
		go func() {
			_, err := e.SetPolicies(epoch, []*policy.Policy{mustParse("p", "SLIDE 1 1s")})
			refused <- err == ErrBusy
		}()
		go func() {
			_, ok := e.NewTx().SizeUnlessHeld(epoch, 0)
			refused <- !ok
		}()
		synctest.Wait()
		assert.Empty(t, refused)
		assert.Zero(t, e.Holds.Late())
		script.Late()
		synctest.Wait()
		assert.Len(t, refused, 4)
		for range 4 {
			assert.True(t, <-refused)
		}
		assert.Empty(t, e.Policies())
		assert.NotZero(t, e.Holds.Late())
		for _, name := range []string{"a", "b"} {
			assert.False(t, one(e, epoch, name, func(*Tx) {}), name)
		}
		assert.True(t, one(e, epoch+9, "other", func(tx *Tx) { assert.Equal(t, "1", get(tx, "other")) }))

		go func() { // patient
			tx := e.NewTx()
			tx.BeginAll(epoch, 0, false)
			assert.Equal(t, 3, tx.Size())
			assert.EqualValues(t, epoch+9, tx.Now())
			tx.End()
			waited.Add(1)
		}()
		script.Enter()
		assert.EqualValues(t, epoch, script.Now())
		set(script, "a", "all")
		set(script, "b", "all")
		script.Leave()
		synctest.Wait()
		assert.Zero(t, waited.Load())
		script.Resume()
		script.End()
		synctest.Wait()
		assert.EqualValues(t, 1, waited.Load(), "those that were not refused")
		assert.Zero(t, e.Holds.Late())
		assert.True(t, one(e, epoch, "a", func(tx *Tx) { assert.Equal(t, "all", get(tx, "a")) }))
	})
}

// A call that waits for a script on one of its keys holds nothing else meanwhile, and calls that
// wait for many scripts, one after another, have their turn.
func TestCallsDoNotWaitForScriptsForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Shards: 1})
		script := longScript(e, "0")
		ended := false
		go func() {
			tx := e.NewTx()
			tx.BeginAll(epoch, 0, false)
			tx.End()
			ended = true
		}()
		for i := 1; ; i++ {
			synctest.Wait()
			next := e.NewTx()
			next.Begin(epoch, 0, []Key{e.Key(fmt.Append(nil, i))}, true)
			if !next.Hold(false) {
				assert.Greater(t, i, 90)
				assert.False(t, ended)
				next.End()
				break
			}
			script.Resume()
			script.End()
			script = next
			require.Less(t, i, 200)
		}
		script.Resume()
		script.End()
		synctest.Wait()
		assert.True(t, ended)
		script = longScript(e, "0")
		script.Resume()
		script.End()
	})
}

// What works on all keys passes over those of a script, and counts show nothing of it.
func TestOthersPassOverHeldKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Shards: 1})
		fill(e, 0, "k", 100, epoch+1)
		k := e.Key([]byte("k:1"))
		script := longScript(e, "k:1", "new")
		script.Enter()
		set(script, "new", "1")
		script.Leave()
		sweeper := e.NewSweeper()
		for sweeper.Rounds() < 2 {
			sweeper.Step(epoch + 2)
		}
		e.SetEviction(eviction.AllKeysLRU, DefaultSamples)
		e.SetBudget(0)
		e.NewTx().MakeRoom(epoch)
		assert.Zero(t, e.Usage(0, k))
		assert.Zero(t, e.StringLength(0, k))
		assert.Empty(t, e.NameOf(0, k.Hash))
		e.Memory().Top(0, 1)
		joining := e.NewTx()
		joining.Begin(epoch, 0, []Key{e.Key([]byte("x"))}, false)
		assert.False(t, joining.Join([]Key{k}))
		assert.True(t, joining.Join([]Key{e.Key([]byte("y"))}))
		assert.PanicsWithValue(t, `engine: a call uses the key "k:1", which it has not locked`,
			func() { joining.Exists(k) })
		joining.End()
		counted := make(chan int, 1)
		go func() {
			n, ok := e.NewTx().SizeUnlessHeld(epoch, 0)
			assert.True(t, ok)
			counted <- n
		}()
		synctest.Wait()
		assert.Empty(t, counted)

		script.Enter()
		assert.True(t, script.Exists(k), "it was there when the script began")
		assert.True(t, script.Join([]Key{k}), "one of its own")
		script.Leave()
		e.Discard()
		script.Resume()
		assert.True(t, script.Exists(k), "the script has its keys to its end")
		script.End()
		synctest.Wait()
		assert.Len(t, counted, 1)
		assert.True(t, e.shards[0].discarded)
	})
}

// The hits of a script have names of their own, whatever hits others have between them: also one
// that was removed has.
func TestHitsOfScriptsHaveNamesOfTheirOwn(t *testing.T) {
	e := New(Options{Shards: 1})
	hit := func(tx *Tx, name string) string {
		k := tx.e.Key([]byte(name))
		_, err := tx.Slide(k, []limit.Window{{Limit: 9, Length: 60_000}}, 1, nil)
		require.NoError(t, err)
		z, _ := tx.lookup(k).(*object.ZSet)
		member, _ := z.Set.At(z.Set.Len() - 1)
		return strings.TrimPrefix(string(member), fmt.Sprint(epoch))
	}
	script := longScript(e, "a")
	script.Enter()
	assert.Equal(t, "-0", hit(script, "a"))
	script.Leave()
	require.True(t, one(e, epoch+5, "b", func(tx *Tx) { hit(tx, "b") }))
	script.Enter()
	script.RemoveSpan(e.Key([]byte("a")), 0, 1)
	assert.Equal(t, "-1", hit(script, "a"))
	script.Leave()
	require.True(t, one(e, epoch+6, "b", func(tx *Tx) { hit(tx, "b") }))
	script.Resume()
	script.RemoveSpan(e.Key([]byte("a")), 0, 1)
	assert.Equal(t, "-2", hit(script, "a"))
	script.End()
	require.True(t, one(e, epoch, "b", func(tx *Tx) {
		assert.EqualValues(t, epoch+6, tx.Now())
		assert.True(t, strings.HasSuffix(hit(tx, "b"), "-1"))
	}))
}

// A snapshot has all of a script's changes or none, and so has the log after it.
func TestSnapshotsSeeNoHalfOfAScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Shards: 1})
		require.True(t, one(e, epoch, "a", func(tx *Tx) { set(tx, "a", "before") }))
		first := e.Snapshot(func() {})
		script := longScript(e, "a", "b")
		script.Enter()
		set(script, "a", "after")
		script.Leave()
		begun := make(chan *Snapshot, 1)
		values := func(s *Snapshot) (all []string) {
			for s.Step(func(list []effect.Effect) {
				for i := range list {
					all = append(all, string(list[i].Key.Name)+"="+string(list[i].Value))
				}
			}) {
			}
			return all
		}
		assert.Equal(t, []string{"a=before"}, values(first), "and it ends while the script runs")
		go func() { begun <- e.Snapshot(func() {}) }()
		synctest.Wait()
		assert.Empty(t, begun)
		script.Enter()
		set(script, "b", "after")
		script.Leave()
		script.Resume()
		script.End()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a=after", "b=after"}, values(<-begun))
	})
}
