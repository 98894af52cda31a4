package waitqueue

import (
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
	_ "rlserver/resp/commands/zsets"
)

// fixture runs calls, and enqueues those that have to wait.
type fixture struct {
	*commandtest.Runner
	t     *testing.T
	qs    Queues
	last  *Waiter // the last call that had to wait
	woken int     // number of calls of wake
	pause time.Duration
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{Runner: commandtest.New(t), t: t}
	f.qs.Init(f.Env.Engine, f.Env.Time, func(has, lacks command.Flags) error { return nil },
		func() time.Duration { return f.pause })
	f.Env.Waiting = &f.qs
	f.OnWait = func(p command.Prepared) {
		var at atomic.Pointer[Waiter]
		f.last = f.qs.Enqueue(&f.Call, p, func() { f.woken++ }, &at)
		require.Same(t, f.last, at.Load())
	}
	return f
}

// enqueue runs a call that has to wait.
func (f *fixture) enqueue(line string) *Waiter {
	f.t.Helper()
	require.Equal(f.t, commandtest.Waits, f.Do(line))
	return f.last
}

// requireReply dequeues a waiter that has its reply, and compares the reply.
func (f *fixture) requireReply(want string, w *Waiter) {
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
	for _, w := range []*Waiter{pop, waiter} {
		require.True(t, w.Unblock(Cancelled))
		f.requireReply("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n", w)
	}
	f.requireEmpty()
}

func TestUnblockAndRefuse(t *testing.T) {
	for name, end := range map[string]struct {
		end  func(*Waiter) bool
		want string
	}{
		"timeout": {func(w *Waiter) bool { return w.Unblock(TimedOut) },
			"*5\r\n:0\r\n:1\r\n:0\r\n:3600000\r\n:3600000\r\n"},
		"error":   {func(w *Waiter) bool { return w.Unblock(Cancelled) }, "-" + string(errUnblocked) + "\r\n"},
		"refused": {func(w *Waiter) bool { return w.Refuse("NOPERM no") }, "-NOPERM no\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Do("RL.SLIDE k 1 1h")
			w := f.enqueue("RL.SLIDE k 1 1h WAIT 2h")
			assert.EqualValues(t, 1, f.qs.Timed.Load())
			assert.True(t, end.end(w))
			assert.False(t, w.Unblock(Cancelled), "the call has ended already")
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
	assert.GreaterOrEqual(t, small, waiterSize)
	w.Unblock(Cancelled)
	w.Dequeue(f.Env.Engine.NewTx())
	f.requireEmpty()
}
