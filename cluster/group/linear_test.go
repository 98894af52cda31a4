package group

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// The calls on each key, through changes of leaders, must be possible in some sequential order on a
// single limiter. Their times are handed in: time stands still while calls are made, and moves on
// in between.

const (
	linearLimit  = 6
	linearPeriod = int64(1000) // ms: of a window, and of a token
)

// linearCall is a call on a limiter at a time.
type linearCall struct {
	kind rule.Kind
	at   int64
}

// linearAnswer is its outcome. With unknown, it was executed at that moment, later or not at all.
type linearAnswer struct {
	unknown   bool
	allowed   bool
	remaining int64
}

// linearState is a limiter: the time of its last call, and what is used of its window, or missing
// in its bucket, as of then.
type linearState struct{ at, used int64 }

func (s linearState) step(c linearCall) (linearState, linearAnswer) {
	if c.at > s.at {
		switch periods := c.at/linearPeriod - s.at/linearPeriod; {
		case c.kind == rule.Token:
			s.used = max(0, s.used-periods)
		case periods > 0:
			s.used = 0
		}
		s.at = c.at
	}
	if s.used == linearLimit {
		return s, linearAnswer{}
	}
	s.used++
	return s, linearAnswer{allowed: true, remaining: linearLimit - s.used}
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		next, want := state.(linearState).step(input.(linearCall))
		answer := output.(linearAnswer)
		return answer.unknown || answer == want, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// call makes the call on a key.
func (c linearCall) call(p *Partition, key string) (linearAnswer, error) {
	r := rule.Rule{Kind: rule.Fixed, Fixed: limit.Fixed{Limit: linearLimit, Window: limit.Every(linearPeriod)}}
	if c.kind == rule.Token {
		r = rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: linearLimit, Refill: 1, Period: linearPeriod}}
	}
	tx := p.Engine.NewTx()
	k := p.Engine.Key([]byte(key))
	tx.Begin(c.at, 0, []engine.Key{k}, true)
	d, err := tx.Decide(&engine.Limit{Key: k, Rule: r, Cost: 1})
	pos := tx.End()
	if err == nil {
		err = p.Wait(pos)
	}
	return linearAnswer{allowed: d.Allowed, remaining: d.Remaining}, err
}

// linear is a test that is running.
type linear struct {
	tr     *trio
	groups [3]atomic.Pointer[Group]
	start  time.Time
	at     int64 // the time that is handed in

	mu        sync.Mutex
	histories map[string][]porcupine.Operation
	unknown   int
}

// client makes calls with a known outcome, so many, on whichever node leads.
func (l *linear) client(id, calls int) {
	for known := 0; known < calls; {
		p, err := l.groups[rand.IntN(3)].Load().Leading()
		if err != nil {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		c := linearCall{kind: []rule.Kind{rule.Fixed, rule.Token}[rand.IntN(2)], at: l.at}
		key := fmt.Sprint(c.kind, rand.IntN(3))
		begun := int64(time.Since(l.start))
		answer, err := c.call(p, key)
		end := int64(time.Since(l.start))
		if err != nil && !answer.allowed {
			continue // it has changed nothing
		}
		l.mu.Lock()
		if err == nil {
			known++
		} else {
			answer, end = linearAnswer{unknown: true}, math.MaxInt64
			l.unknown++
		}
		l.histories[key] = append(l.histories[key], porcupine.Operation{
			ClientId: id, Input: c, Output: answer, Call: begun, Return: end,
		})
		l.mu.Unlock()
	}
}

// disturb ends the leadership of the node that leads, in one way or another.
func (l *linear) disturb(round int) {
	leader := l.tr.leader()
	switch round % 3 {
	case 0:
		l.tr.isolate(leader.i)
		l.tr.leader(leader.i)
		l.tr.heal()
	case 1:
		leader.stop()
		l.tr.leader(leader.i)
		leader.start()
		l.groups[leader.i].Store(leader.group)
	case 2:
		ctx, cancel := context.WithTimeout(l.tr.t.Context(), patience)
		leader.group.HandOver(ctx, "a test")
		cancel()
	}
}

func TestCallsAreLinearizableThroughChangesOfLeaders(t *testing.T) {
	t.Parallel()
	l := &linear{
		tr: newTrio(t), start: time.Now(), at: 1_800_000_000_000, histories: make(map[string][]porcupine.Operation),
	}
	l.tr.timeout = short
	l.tr.startAll()
	for i, n := range l.tr.nodes {
		l.groups[i].Store(n.group)
	}
	for round := range 6 {
		var clients sync.WaitGroup
		for id := range 4 {
			clients.Go(func() { l.client(id, 12) })
		}
		l.disturb(round)
		clients.Wait()
		l.at += []int64{0, linearPeriod / 2, linearPeriod * 2}[round%3]
	}
	calls := 0
	for key, history := range l.histories {
		calls += len(history)
		if porcupine.CheckOperationsTimeout(linearModel, history, patience) == porcupine.Ok {
			continue
		}
		var text strings.Builder
		for _, o := range history {
			fmt.Fprintf(&text, "client %d, %d to %d: %s\n", o.ClientId, o.Call, o.Return,
				linearModel.DescribeOperation(o.Input, o.Output))
		}
		t.Errorf("no order of the calls on %s explains their answers:\n%s", key, &text)
	}
	require.NotZero(t, calls)
	t.Logf("%d calls, %d of unknown outcome", calls, l.unknown)
}
