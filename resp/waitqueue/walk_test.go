package waitqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/commands/limits"
	"rlserver/resp/resptest"
)

// modelCall is a call on one sliding window, in the model.
type modelCall struct {
	name     string
	cost     int
	deadline int64 // ms since the start
	gone     bool
}

// modelQueue is a model of a queue: a log of hits and the waiters, evaluated every millisecond.
type modelQueue struct {
	limit   int
	window  int64
	hits    []int64
	waiting []*modelCall
}

func (m *modelQueue) fits(now int64, cost int) bool {
	m.hits = slices.DeleteFunc(m.hits, func(at int64) bool { return at <= now-m.window })
	return len(m.hits)+cost <= m.limit
}

func (m *modelQueue) admit(now int64, cost int) bool {
	if !m.fits(now, cost) {
		return false
	}
	for range cost {
		m.hits = append(m.hits, now)
	}
	return true
}

// retry returns how long until a call fits if no other call arrives.
func (m *modelQueue) retry(now int64, cost int) (ms int64) {
	for copied := *m; ; ms++ {
		copied.hits = slices.Clone(m.hits)
		if copied.fits(now+ms, cost) {
			return ms
		}
	}
}

// step runs what is due in a millisecond, and calls decided for each call that is admitted or
// denied.
func (m *modelQueue) step(now int64, decided func(call *modelCall, allowed bool)) {
	m.waiting = slices.DeleteFunc(m.waiting, func(c *modelCall) bool { return c.gone })
	for len(m.waiting) > 0 {
		first := m.waiting[0]
		allowed := m.admit(now, first.cost)
		if !allowed && m.retry(now, first.cost) <= first.deadline-now && now < first.deadline {
			break
		}
		m.waiting = m.waiting[1:]
		decided(first, allowed)
	}
	late := slices.DeleteFunc(slices.Clone(m.waiting), func(c *modelCall) bool { return c.deadline > now })
	// in the order of arrival, also for calls of the same millisecond
	for _, c := range late {
		first := m.waiting[0] == c
		m.waiting = slices.DeleteFunc(m.waiting, func(x *modelCall) bool { return x == c })
		decided(c, first && m.admit(now, c.cost))
	}
	if len(late) > 0 {
		m.step(now, decided)
	}
}

// Compares random traces with the model: calls that wait, calls that do not, clients that
// disconnect and keys that are deleted. Calls must be admitted or denied in the same order and
// millisecond.
func TestQueuesMatchTheModel(t *testing.T) {
	for range 30 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				walkQueues(t, b, rand.New(rand.NewPCG(seed, 0)))
			})
		})
	}
}

func walkQueues(t *testing.T, b *resptest.Bubble, r *rand.Rand) {
	var model [2]modelQueue
	for i := range model {
		model[i] = modelQueue{limit: 1 + r.IntN(4), window: int64(20 + r.IntN(100))}
	}
	var want []string
	expect := func(now int64) func(c *modelCall, allowed bool) {
		return func(c *modelCall, allowed bool) {
			flag := 0
			if allowed {
				flag = 1
			}
			want = append(want, fmt.Sprintf("%d %s *5 :%d", now, c.name, flag))
		}
	}
	open := make(map[string]*commandtest.Caller)
	for now := range int64(600) {
		b.PassUntil(now)
		for i := range model {
			model[i].step(now, expect(now))
		}
		if r.IntN(3) > 0 {
			continue
		}
		// timeouts that end in a millisecond come before its calls
		time.Sleep(time.Duration(now+1) * time.Microsecond)
		i := r.IntN(len(model))
		m, key := &model[i], fmt.Sprint("k", i)
		name := fmt.Sprintf("%03d", now)
		switch call := (&modelCall{name: name, cost: 1 + r.IntN(m.limit+1)}); r.IntN(8) {
		case 0:
			b.Calls(name, "DEL "+key)
			m.hits = nil
		case 1:
			if len(m.waiting) > 0 {
				call = m.waiting[r.IntN(len(m.waiting))]
				call.gone = true
				open[call.name].Close()
				synctest.Wait()
			}
		case 2:
			b.Calls(name, fmt.Sprintf("RL.SLIDE %s %d %dms COST %d", key, m.limit, m.window, call.cost))
			expect(now)(call, m.admit(now, call.cost))
		default:
			wait := int64(1 + r.IntN(150))
			call.deadline = now + wait
			open[name] = b.Calls(
				name,
				fmt.Sprintf("RL.SLIDE %s %d %dms COST %d WAIT %dms", key, m.limit, m.window, call.cost, wait),
			)
			switch {
			case call.cost > m.limit || m.retry(now, call.cost) > wait:
				expect(now)(call, false)
			case len(m.waiting) == 0 && m.admit(now, call.cost):
				expect(now)(call, true)
			default:
				m.waiting = append(m.waiting, call)
			}
		}
		m.step(now, expect(now))
	}
	// the timeouts of the last calls
	time.Sleep(600*time.Millisecond - time.Microsecond - time.Since(b.Start))
	var replies []string
	for _, line := range b.Replies() {
		if before, after, ok := strings.Cut(line, " *5 :"); ok {
			replies = append(replies, before+" *5 :"+after[:1])
		}
	}
	slices.Sort(want)
	slices.Sort(replies)
	require.Equal(t, want, replies)
}

// pair is a command for tests: one hit on each of two keys or on neither, like RL.ALL.
func pair(c *command.Call) error {
	keys := [2]struct {
		k    int
		rule []limit.Window
	}{}
	a, b := c.Args.Key(), c.Args.Key()
	for i := range keys {
		keys[i].rule = []limit.Window{limits.TakeSlidingRule(&c.Args)}
	}
	cost := limits.TakeOptions(&c.Args, limits.OptionCost|limits.OptionWait, nil, nil).Cost
	if err := c.Args.End(); err != nil {
		return err
	}
	d, err := c.Admit(cost, func(cost int64) (limit.Decision, error) {
		var one, two limit.Decision
		var err error
		c.Tx.DryRun(func() {
			if one, err = c.Tx.Slide(a, keys[0].rule, cost, nil); err == nil {
				two, err = c.Tx.Slide(b, keys[1].rule, cost, nil)
			}
		})
		if err != nil || !one.Allowed || !two.Allowed {
			one.Allowed, one.RetryAfter = false, max(one.RetryAfter, two.RetryAfter)
			return one, err
		}
		if _, err := c.Tx.Slide(a, keys[0].rule, cost, nil); err != nil {
			return one, err
		}
		return c.Tx.Slide(b, keys[1].rule, cost, nil)
	})
	if err != nil {
		return err
	}
	limits.WriteDecision(&c.Reply, d)
	return nil
}

func withPair(t *testing.T) {
	command.Table["test.pair"] = &command.Command{
		Name:  "test.pair",
		Arity: -7,
		Flags: command.Write | command.Blocking,
		Keys:  []command.KeySpec{command.Key("RW", 1), command.Key("RW", 2)},
		Run:   pair,
	}
	t.Cleanup(func() { delete(command.Table, "test.pair") })
}

// A call on two keys waits in both queues. It is admitted as soon as both limits allow it and it is
// the first in both queues. No later call on one of the keys is admitted before it.
func TestCallInTwoQueues(t *testing.T) {
	withPair(t)
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("x0", "RL.SLIDE x 1 1s")
		b.PassUntil(100)
		b.Calls("y0", "RL.SLIDE y 1 1s")
		b.Calls("y1", "RL.SLIDE y 1 1s WAIT 1m")
		b.Calls("pair", "TEST.PAIR x y 1 1s 1 1s WAIT 1m")
		b.Calls("x1", "RL.SLIDE x 1 1s WAIT 1m")
		b.Calls("y2", "RL.SLIDE y 1 1s WAIT 1m")
		b.Calls("again", "TEST.PAIR y x 1 1s 1 1s WAIT 1m")
		b.Calls("del", "DEL x")
		b.PassUntil(700)
		b.Calls("late", "TEST.PAIR y x 1 1s 1 1s WAIT 500ms")
		b.Replies()
		b.PassUntil(6000)
		assert.Equal(
			t,
			[]string{
				"1100 y1 " + admitted,
				"1200 late *5 :0 :1 :0 :900 :900",
				"2100 pair " + admitted,
				"3100 x1 " + admitted,
				"3100 y2 " + admitted,
				"4100 again " + admitted,
			},
			b.Replies(),
		)
	})
}

// When a call in two queues ends, the waiters behind it in both are tried again. The same holds
// after a change of a key.
func TestTwoQueuesAdvance(t *testing.T) {
	withPair(t)
	for name, step := range map[string]struct {
		change func(pair *commandtest.Caller, b *resptest.Bubble)
		want   []string
	}{
		"gone": {func(pair *commandtest.Caller, b *resptest.Bubble) { pair.Close() },
			[]string{"500 pair gone", "500 y " + admitted, "1000 x " + admitted}},
		"reset": {func(pair *commandtest.Caller, b *resptest.Bubble) { b.Calls("del", "DEL x") },
			[]string{"500 del :1", "500 pair " + admitted, "1500 x " + admitted, "1500 y " + admitted}},
		"time": {func(pair *commandtest.Caller, b *resptest.Bubble) {},
			[]string{"1000 pair " + admitted, "2000 x " + admitted, "2000 y " + admitted}},
		"unblock": {func(pair *commandtest.Caller, b *resptest.Bubble) { b.Calls("a", "CLIENT UNBLOCK 2 ERROR") },
			[]string{"500 a :1", "500 pair -UNBLOCKED client unblocked via CLIENT UNBLOCK", "500 y " + admitted,
				"1000 x " + admitted}},
	} {
		t.Run(name, func(t *testing.T) {
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				b.Calls("setup", "RL.SLIDE x 1 1s")
				pair := b.Calls("pair", "TEST.PAIR x y 1 1s 1 1s WAIT 1m")
				b.Calls("x", "RL.SLIDE x 1 1s WAIT 1m")
				b.Calls("y", "RL.SLIDE y 1 1s WAIT 1m")
				b.Replies()
				b.PassUntil(500)
				step.change(pair, b)
				b.PassUntil(3000)
				assert.Equal(t, step.want, b.Replies())
			})
		})
	}
}

// Random calls on one or two keys: calls with a common key are admitted in the order of arrival,
// all calls are admitted, and no window exceeds its limit.
func TestOrderOfArrival(t *testing.T) {
	withPair(t)
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				r := rand.New(rand.NewPCG(seed, 0))
				keysOf := make(map[string][]string)
				for n := range 60 {
					b.PassUntil(int64(n) * 7)
					keys := []string{"a", "b", "c"}
					r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
					name := fmt.Sprintf("%03d", n)
					if r.IntN(2) == 0 {
						keys = keys[:1]
						b.Calls(name, "RL.SLIDE "+keys[0]+" 2 60ms WAIT 1h")
					} else {
						keys = keys[:2]
						b.Calls(name, "TEST.PAIR "+strings.Join(keys, " ")+" 2 60ms 2 60ms WAIT 1h")
					}
					keysOf[name] = keys
				}
				b.PassUntil(100_000)
				replies := b.TakeReplies()
				require.Len(t, replies, 60)
				for i, late := range replies {
					assert.Equal(t, "*5 :1", late.Text[:5])
					for _, key := range keysOf[late.Name] {
						within := 0
						for _, early := range replies[:i] {
							if slices.Contains(keysOf[early.Name], key) {
								require.True(
									t,
									early.Name < late.Name || early.At == late.At,
									"%v before %v",
									early,
									late,
								)
								if early.At > late.At-60 {
									within++
								}
							}
						}
						require.Less(t, within, 2, "%v", late)
					}
				}
			})
		})
	}
}

// RetryAll tries waiters again when a rule outside the keyspace has changed.
func TestRetryAll(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		capacity := int64(1)
		command.Table["test.policy"] = &command.Command{
			Name:  "test.policy",
			Arity: -2,
			Flags: command.Write | command.Blocking,
			Keys:  []command.KeySpec{command.Key("RW", 1)},
			Run: func(c *command.Call) error {
				k := c.Args.Key()
				limits.TakeOptions(&c.Args, limits.OptionCost|limits.OptionWait, nil, nil)
				d, err := c.Admit(1, func(cost int64) (limit.Decision, error) {
					return limits.Token(c, k, limit.Bucket{Capacity: capacity, Refill: 1, Period: 3600000}, cost)
				})
				if err != nil {
					return err
				}
				limits.WriteDecision(&c.Reply, d)
				return nil
			},
		}
		defer delete(command.Table, "test.policy")
		for _, name := range []string{"setup", "a", "b", "c"} {
			b.Calls(name, "TEST.POLICY k WAIT 1d")
		}
		b.Replies()
		capacity = 3
		b.Queues().RetryAll()
		replies := strings.Join(b.Replies(), "\n")
		assert.Regexp(t, `^0 a \*5 :1 :3 :1 .*\n0 b \*5 :1 :3 :0 .*$`, replies)
	})
}
