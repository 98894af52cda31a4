package waitqueue_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	_ "rlserver/resp/commands/keys"
	_ "rlserver/resp/commands/limits"
	_ "rlserver/resp/commands/lists"
	_ "rlserver/resp/commands/zsets"
	"rlserver/resp/executor"
	"rlserver/resp/waitqueue"
)

const unblocked = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"

// fixture runs calls, and enqueues those that have to wait.
type fixture struct {
	*commandtest.Runner
	t     *testing.T
	qs    waitqueue.Queues
	last  *waitqueue.Waiter // the last call that had to wait
	at    atomic.Pointer[waitqueue.Waiter]
	woken int // number of calls of wake
	pause time.Duration
	asked func() // called when a queue asks for the pause; may be nil
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{Runner: commandtest.New(t), t: t}
	f.qs.Init(f.Env.Engine, f.Env.Time, executor.New(f.Env),
		func() time.Duration {
			if f.asked != nil {
				f.asked()
			}
			return f.pause
		})
	f.Env.Waiting = &f.qs
	f.OnWait = func(p command.Prepared) {
		f.last = f.qs.Enqueue(&f.Call, p, func() { f.woken++ }, &f.at)
	}
	return f
}

// enqueue runs a call that has to wait.
func (f *fixture) enqueue(line string) *waitqueue.Waiter {
	f.t.Helper()
	require.Equal(f.t, commandtest.Waits, f.Do(line))
	f.last.Join(f.Env.Engine.NewTx())
	require.True(f.t, f.at.Load() == f.last)
	return f.last
}

// requireReply dequeues a waiter that has its reply, and compares the reply.
func (f *fixture) requireReply(want string, w *waitqueue.Waiter) {
	f.t.Helper()
	require.False(f.t, w.Waits())
	w.Dequeue(f.Env.Engine.NewTx())
	reply, _, _ := w.Answer()
	require.Equal(f.t, want, string(reply))
}

// requireEmpty checks that no queue and no count is left.
func (f *fixture) requireEmpty() {
	f.t.Helper()
	assert.Zero(f.t, f.qs.Len())
	assert.Zero(f.t, f.qs.Waiting.Load())
	assert.Zero(f.t, f.qs.Timed.Load())
}

func TestPopsGetMembersInOrderOfArrival(t *testing.T) {
	f := newFixture(t)
	first, second, third := f.enqueue("BZPOPMIN z 0"), f.enqueue("BZPOPMAX z 0"), f.enqueue("BZPOPMIN z 0")
	f.Do("ZADD z 1 a 2 b")
	f.requireReply("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n", first)
	f.requireReply("*3\r\n$1\r\nz\r\n$1\r\nb\r\n$1\r\n2\r\n", second)
	assert.True(t, third.Waits())
	assert.Equal(t, 2, f.woken)
	f.Do("ZADD z 3 c")
	f.requireReply("*3\r\n$1\r\nz\r\n$1\r\nc\r\n$1\r\n3\r\n", third)
	f.requireEmpty()
}

// An element is moved in the call that has inserted it, if nobody holds the lock of the target.
// Otherwise the timer moves it, and calls behind it wait for their turn.
func TestPopWhoseTargetIsLocked(t *testing.T) {
	f := newFixture(t)
	source := []engine.Key{f.Env.Engine.Key([]byte("source"))}
	tx, holder, name := f.Env.Engine.NewTx(), f.Env.Engine.NewTx(), ""
	tx.Begin(commandtest.Start, 0, source, false)
	holder.Begin(commandtest.Start, 0, nil, false)
	for i := 0; name == "" || !holder.Join([]engine.Key{f.Env.Engine.Key([]byte(name))}); i++ {
		name = fmt.Sprint("target", i) // until it has another lock
	}
	tx.End()
	holder.End()

	move := f.enqueue("BLMOVE source " + name + " LEFT LEFT 0")
	f.Do("RPUSH source a")
	f.requireReply("$1\r\na\r\n", move)

	move, pop := f.enqueue("BLMOVE source "+name+" LEFT LEFT 0"), f.enqueue("BLPOP source 0")
	holder.Begin(commandtest.Start, 0, []engine.Key{f.Env.Engine.Key([]byte(name))}, false)
	f.Do("RPUSH source b c")
	assert.True(t, move.Waits())
	assert.True(t, pop.Waits())
	assert.Equal(t, ":2", f.Do("LLEN source"))
	holder.End()
	require.Eventually(t, func() bool { return !pop.Waits() }, time.Minute, time.Millisecond)
	f.requireReply("$1\r\nb\r\n", move)
	f.requireReply("*2\r\n$6\r\nsource\r\n$1\r\nc\r\n", pop)
	assert.Equal(t, "*2 $1 b $1 a", f.Do("LRANGE "+name+" 0 -1"))
	f.requireEmpty()
}

func TestLimiterIsTriedAgainWhenItsKeyChanges(t *testing.T) {
	f := newFixture(t)
	f.Do("RL.SLIDE k 1 1h")
	first, second := f.enqueue("RL.SLIDE k 1 1h WAIT 3h"), f.enqueue("RL.SLIDE k 1 1h WAIT 3h")
	f.Do("DEL k")
	f.requireReply("*5\r\n:1\r\n:1\r\n:0\r\n:0\r\n:3600000\r\n", first)
	assert.True(t, second.Waits(), "the first waiter has taken the only hit")
	f.Do("DEL k")
	f.requireReply("*5\r\n:1\r\n:1\r\n:0\r\n:0\r\n:3600000\r\n", second)
	f.requireEmpty()
}

func TestWaitersAreNotRetriedDuringAPause(t *testing.T) {
	f := newFixture(t)
	f.Do("RL.SLIDE k 1 1h")
	slide, pop := f.enqueue("RL.SLIDE k 1 1h WAIT 3h"), f.enqueue("BZPOPMIN z 0")
	f.pause = time.Hour
	f.Do("DEL k")
	f.Do("ZADD z 1 a")
	f.qs.RetryAll()
	assert.True(t, slide.Waits())
	assert.True(t, pop.Waits())
	f.pause = 0
	f.qs.RetryAll()
	f.requireReply("*5\r\n:1\r\n:1\r\n:0\r\n:0\r\n:3600000\r\n", slide)
	f.requireReply("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n", pop)
	f.requireEmpty()
}

func TestEmptyIgnoresPops(t *testing.T) {
	f := newFixture(t)
	keys := []engine.Key{f.Env.Engine.Key([]byte("k"))}
	pop := f.enqueue("BZPOPMIN k 0")
	assert.True(t, f.qs.Empty(0, keys))
	f.Do("RL.SLIDE other 1 1h")
	waiter := f.enqueue("RL.SLIDE other 1 1h WAIT 2h")
	other := []engine.Key{f.Env.Engine.Key([]byte("other"))}
	assert.False(t, f.qs.Empty(0, other))
	assert.True(t, f.qs.Empty(1, other), "the waiter is in another database")
	for _, w := range []*waitqueue.Waiter{pop, waiter} {
		require.True(t, w.Unblock(waitqueue.Cancelled))
		f.requireReply(unblocked, w)
	}
	f.requireEmpty()
}

func TestUnblockAndRefuse(t *testing.T) {
	for name, end := range map[string]struct {
		end  func(*waitqueue.Waiter) bool
		want string
	}{
		"timeout": {func(w *waitqueue.Waiter) bool { return w.Unblock(waitqueue.TimedOut) },
			"*5\r\n:0\r\n:1\r\n:0\r\n:3600000\r\n:3600000\r\n"},
		"error":   {func(w *waitqueue.Waiter) bool { return w.Unblock(waitqueue.Cancelled) }, unblocked},
		"refused": {func(w *waitqueue.Waiter) bool { return w.Refuse("NOPERM no") }, "-NOPERM no\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Do("RL.SLIDE k 1 1h")
			w := f.enqueue("RL.SLIDE k 1 1h WAIT 2h")
			assert.EqualValues(t, 1, f.qs.Timed.Load())
			assert.True(t, end.end(w))
			assert.False(t, w.Unblock(waitqueue.Cancelled), "the call has ended already")
			assert.False(t, w.Refuse("ERR late"))
			f.requireReply(end.want, w)
			f.requireEmpty()
		})
	}
}

func TestWaiterCountsItsWords(t *testing.T) {
	f := newFixture(t)
	f.Do("RL.SLIDE k 1 1h")
	w := f.enqueue("RL.SLIDE k 1 1h WAIT 2h")
	small := w.Size()
	assert.Equal(t, "k", string(w.Prepared().Words[1]))
	assert.GreaterOrEqual(t, small, 1<<10)
	w.Unblock(waitqueue.Cancelled)
	w.Dequeue(f.Env.Engine.NewTx())
	f.requireEmpty()
}

// manyKeys returns the names of n keys, k0 to k<n-1>.
func manyKeys(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("k", i))
	}
	return strings.Join(names, " ")
}

const (
	large  = 4 * waitqueue.MaxInStep
	popped = "*3\r\n$4\r\nk500\r\n$1\r\na\r\n$1\r\n1\r\n"
)

// A pop with many keys joins their queues without locks of others. A key that gets a member in the
// meantime is popped from at once.
func TestPopOnManyKeysJoinsInSteps(t *testing.T) {
	f := newFixture(t)
	least := math.MaxInt
	f.asked = func() { least = min(least, f.freeShards()) }
	w := f.enqueue("BZPOPMIN " + manyKeys(large) + " 0")
	assert.Equal(t, large, f.qs.Len())
	assert.Greater(t, least, 40, "of 64 shards")
	f.asked = nil
	f.Do("ZADD k500 1 a")
	f.requireReply(popped, w)
	f.requireEmpty()

	require.Equal(t, commandtest.Waits, f.Do("BZPOPMIN "+manyKeys(large)+" 0"))
	f.Do("ZADD k500 1 a")
	f.last.Join(f.Env.Engine.NewTx())
	assert.Less(t, f.qs.Len(), large, "it stops when it has a member")
	f.requireReply(popped, f.last)
	f.requireEmpty()
}

// A key that a pop has joined gets a member while the pop joins others: it is popped from once, and
// the pop leaves all queues.
func TestPopOnManyKeysIsServedWhileItJoins(t *testing.T) {
	f := newFixture(t)
	keys := make([]engine.Key, large)
	for i := range keys {
		keys[i] = f.Env.Engine.Key(fmt.Append(nil, "k", i))
	}
	slices.SortFunc(keys, engine.Key.Compare)
	inFirst, inSecond := keys[waitqueue.MaxInStep/2], keys[waitqueue.MaxInStep*3/2]
	for range 20 {
		require.Equal(t, commandtest.Waits, f.Do("BZPOPMIN "+manyKeys(large)+" 1000"))
		w, joined := f.last, make(chan struct{})
		go func() {
			defer close(joined)
			w.Join(f.Env.Engine.NewTx())
		}()
		for f.qs.Len() < waitqueue.MaxInStep {
			runtime.Gosched()
		}
		for f.isFree(inSecond) && f.qs.Len() == waitqueue.MaxInStep {
			runtime.Gosched() // nothing that the second step writes has been seen
		}
		f.Do("ZADD " + string(inFirst.Name) + " 1 a")
		<-joined
		f.requireReply(fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$1\r\na\r\n$1\r\n1\r\n", len(inFirst.Name), inFirst.Name), w)
		f.requireEmpty()
	}
}

// lockAnother locks one of the keys k0, k1, … that does not share its lock with the key name.
func (f *fixture) lockAnother(name string) (release func()) {
	tx := f.Env.Engine.NewTx()
	for i := 0; ; i++ {
		tx.Begin(commandtest.Start, 0, []engine.Key{f.Env.Engine.Key([]byte(fmt.Sprint("k", i)))}, false)
		if f.isFree(f.Env.Engine.Key([]byte(name))) {
			return func() { tx.End() }
		}
		tx.End()
	}
}

// isFree reports whether a key is not locked.
func (f *fixture) isFree(k engine.Key) bool {
	tx := f.Env.Engine.NewTx()
	tx.Begin(0, 0, nil, false)
	defer tx.End()
	return tx.Join([]engine.Key{k})
}

// freeShards returns how many of 64 keys in different shards are not locked.
func (f *fixture) freeShards() (n int) {
	seen := map[uint64]bool{}
	for i := 0; len(seen) < 64; i++ {
		k := f.Env.Engine.Key(fmt.Append(nil, "probe", i))
		if seen[k.Hash>>58] {
			continue
		}
		seen[k.Hash>>58] = true
		if f.isFree(k) {
			n++
		}
	}
	return n
}

// However the wait of a pop on many keys ends: it leaves all queues, and then takes no member.
func TestPopOnManyKeysLeaves(t *testing.T) {
	for name, end := range map[string]struct {
		end  func(*waitqueue.Waiter)
		want string
	}{
		"gone":    {func(*waitqueue.Waiter) {}, ""},
		"timeout": {func(w *waitqueue.Waiter) { w.Unblock(waitqueue.TimedOut) }, "*-1\r\n"},
		"error":   {func(w *waitqueue.Waiter) { w.Unblock(waitqueue.Cancelled) }, unblocked},
		"refused": {func(w *waitqueue.Waiter) { w.Refuse("NOPERM no") }, "-NOPERM no\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.enqueue("BZPOPMIN " + manyKeys(large) + " " + manyKeys(large) + " 1000")
			assert.Equal(t, large, f.qs.Len(), "each key once")
			other := f.enqueue("BZPOPMIN k500 0")
			end.end(w)
			release, dequeued := f.lockAnother("k500"), make(chan struct{})
			go func() {
				defer close(dequeued)
				w.Dequeue(f.Env.Engine.NewTx())
			}()
			for w.Waits() {
				runtime.Gosched()
			}
			f.Do("ZADD k500 1 a") // the pop has not left all queues yet
			release()
			<-dequeued
			reply, _, _ := w.Answer()
			assert.Equal(t, end.want, string(reply))
			f.requireReply(popped, other)
			f.requireEmpty()
		})
	}
}

// Pops on many keys get members in the order of arrival.
func TestPopsOnManyKeysAreServedInOrder(t *testing.T) {
	f := newFixture(t)
	first := f.enqueue("BZPOPMIN " + manyKeys(large) + " 0")
	second := f.enqueue("BZMPOP 0 1000 " + manyKeys(1000) + " MAX")
	f.Do("ZADD k500 1 a")
	assert.True(t, second.Waits())
	f.Do("ZADD k7 1 b")
	f.requireReply("*2\r\n$2\r\nk7\r\n*1\r\n*2\r\n$1\r\nb\r\n$1\r\n1\r\n", second)
	f.requireReply(popped, first)
	f.requireEmpty()
}

// The memory that Size counts for a key covers what it takes.
func TestWaiterCountsItsKeys(t *testing.T) {
	f := newFixture(t)
	line := "BZPOPMIN " + manyKeys(20_000) + " 0"
	require.Equal(t, commandtest.Waits, f.Do(line))
	before := heapInUse()
	f.last.Join(f.Env.Engine.NewTx())
	took := int(heapInUse() - before)
	assert.GreaterOrEqual(t, f.last.Size(), took)
	assert.LessOrEqual(t, f.last.Size(), 2*took)
	f.last.Dequeue(f.Env.Engine.NewTx())
	f.requireEmpty()
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
