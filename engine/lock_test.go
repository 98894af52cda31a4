package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// within fails the test if do is stuck: if it has not returned after 30 s.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		require.FailNow(t, what)
	}
}

// Counts are read without a lock: a call that holds its keys for long does not delay it, nor
// does one that waits for that call.
func TestSizeAndStatsTakeNoLock(t *testing.T) {
	e := New(Options{})
	fill(e, 0, "k", 100, 0)
	held := e.NewTx()
	held.BeginAll(epoch, 0, true)
	held.Flush()
	within(t, "Size or Stats waits for a call", func() {
		keys, _ := e.Size(0)
		assert.Equal(t, 100, keys, "the changes of a call are counted when it ends")
		e.Memory().Stats()
	})
	keys, _ := held.Count(0)
	assert.Zero(t, keys, "the call itself sees them at once")
	held.End()
	keys, expires := e.Size(0)
	assert.Zero(t, keys)
	assert.Zero(t, expires)
}

// A call that waits for one of its shards holds no other shard meanwhile, so that no call waits
// for a waiting call.
func TestWaitingCallsHoldNoLock(t *testing.T) {
	for name, begin := range map[string]func(*Tx, []Key){
		"all":     func(tx *Tx, _ []Key) { tx.BeginAll(epoch, 0, true) },
		"several": func(tx *Tx, keys []Key) { tx.Begin(epoch, 0, keys, true) },
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Shards: 8})
			var keys []Key // one in each shard
			for i, shards := 0, make(map[int]bool); len(keys) < 8; i++ {
				k := e.Key(fmt.Append(nil, i))
				if !shards[e.shardIndex(k.Hash)] {
					shards[e.shardIndex(k.Hash)] = true
					keys = append(keys, k)
				}
			}
			long, waiting, other := e.NewTx(), e.NewTx(), e.NewTx()
			long.Begin(epoch, 0, keys[3:4], true)
			began := make(chan struct{})
			go func() {
				defer close(began)
				begin(waiting, keys)
				waiting.End()
			}()
			within(t, "a call waits for one that waits", func() {
				for range 1000 {
					for i, k := range keys {
						if i != 3 {
							other.Begin(epoch, 0, []Key{k}, false)
							other.End()
						}
					}
				}
			})
			long.End()
			within(t, "a call waits forever", func() { <-began })
		})
	}
}

// A call that uses a key whose shard it has not locked fails at once, also if another call has.
func TestKeysThatAreNotLockedAreRefused(t *testing.T) {
	e := New(Options{Shards: 8})
	mine, other := e.Key([]byte("a")), e.Key([]byte("b"))
	for i := 0; e.shardOf(other) == e.shardOf(mine); i++ {
		other = e.Key(fmt.Append(nil, i))
	}
	tx, theirs := e.NewTx(), e.NewTx()
	theirs.Begin(epoch, 0, []Key{other}, true)
	tx.Begin(epoch, 0, []Key{mine}, true)
	assert.PanicsWithValue(t, fmt.Sprintf("engine: a call uses the key %q, which it has not locked", other.Name),
		func() { tx.Exists(other) })
	assert.False(t, tx.Exists(mine))
	theirs.End()
	tx.End()
	assert.Panics(t, func() { tx.Exists(mine) }, "after the end of the call")
}
