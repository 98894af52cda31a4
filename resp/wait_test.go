package resp

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/internal/storage"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
)

// pipes is a listener whose connections are in memory, so that synctest sees which goroutines wait
// for them.
type pipes struct {
	arriving chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.arriving:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// bubble is a server in a synctest bubble, with the clock of the bubble.
type bubble struct {
	*testServer
	listener *pipes
	start    time.Time
	shift    atomic.Int64 // of the system clock, µs
	mu       sync.Mutex
	log      []received
}

// received is a reply, with the time of its arrival and the name of the client.
type received struct {
	at         int64 // ms since the start
	name, text string
}

func (s received) String() string { return fmt.Sprintf("%d %s %s", s.at, s.name, s.text) }

// inBubble runs a test in a synctest bubble, where time passes when all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		m := commandtest.NewMirror(t, 16)
		b := newBubble(t, m, nil)
		defer b.Shutdown(t.Context())
		test(t, b)
		b.Shutdown(t.Context())
		assert.Zero(t, b.queues.Len(), "a queue is left, but no call waits")
		assert.Zero(t, b.queues.Waiting.Load())
		m.Compare(b.Engine, b.Clock())
	})
}

// newBubble starts a server in the synctest bubble of the caller.
func newBubble(t *testing.T, journal engine.Journal, store storage.Store) *bubble {
	b := &bubble{listener: &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}, start: time.Now()}
	source := clock.System()
	time := clock.New(clock.Source{Elapsed: source.Elapsed, Read: func() (int64, time.Duration) {
		wall, elapsed := source.Read()
		return wall + b.shift.Load(), elapsed
	}}, slog.New(slog.DiscardHandler))
	b.testServer = &testServer{t: t, Server: NewServer(Options{
		Engine:  engine.New(engine.Options{Seed: [2]uint64{1, 2}, Journal: journal}),
		Journal: journal, Store: store, Clock: time, Log: slog.New(slog.DiscardHandler),
		Settings: config.NewSettings(config.Defaults{Databases: 16, MaxClients: 1000}), Version: "test",
	})}
	go b.Serve(b.listener)
	return b
}

func (b *bubble) dial() *testClient {
	here, there := net.Pipe()
	b.listener.arriving <- there
	return &testClient{Conn: here, t: b.t, r: bufio.NewReader(here)}
}

func (b *bubble) ms() int64 { return time.Since(b.start).Milliseconds() }

// caller is a client whose replies are recorded when they arrive.
type caller struct {
	net.Conn
	b    *bubble
	name string
}

func (b *bubble) caller(name string) *caller {
	c := b.dial()
	go func() {
		for {
			if _, err := c.r.Peek(1); err != nil {
				b.record(name, "gone")
				return
			}
			b.record(name, strings.TrimSpace(c.read()))
		}
	}()
	return &caller{c.Conn, b, name}
}

func (b *bubble) record(name, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, received{b.ms(), name, text})
}

// call sends commands, one per line, and waits for their immediate replies.
func (c *caller) call(lines string) *caller {
	go io.WriteString(c, pipeline(strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' })...))
	synctest.Wait()
	return c
}

// calls connects a new client and sends commands, one per line.
func (b *bubble) calls(name, lines string) *caller { return b.caller(name).call(lines) }

// replies returns the replies since the last call of replies or takeReplies: by time, then by the
// name of the client, then in the order of arrival.
func (b *bubble) replies() (lines []string) {
	for _, s := range b.sortedReplies() {
		lines = append(lines, s.String())
	}
	return lines
}

func (b *bubble) sortedReplies() []received {
	replies := b.takeReplies()
	slices.SortStableFunc(
		replies,
		func(x, y received) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.name, y.name)) },
	)
	return replies
}

// takeReplies returns the replies since it was last called, in the order of arrival.
func (b *bubble) takeReplies() (replies []received) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	replies, b.log = b.log, nil
	return replies
}

// passUntil lets time pass until a number of ms since the start.
func (b *bubble) passUntil(until int64) {
	time.Sleep(time.Duration(until)*time.Millisecond - time.Since(b.start))
	synctest.Wait()
}

const (
	waitCall = "RL.SLIDE k 1 1s WAIT "
	admitted = "*5 :1 :1 :0 :0 :1000"
	denied   = "*5 :0 :1 :0 "
)

func TestWaitIsFirstComeFirstServed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		for _, name := range []string{"a", "b", "c", "d"} {
			b.calls(name, waitCall+"1m")
			b.passUntil(b.ms() + 10)
		}
		b.passUntil(3500)
		assert.Equal(
			t,
			[]string{"0 a " + admitted, "1000 b " + admitted, "2000 c " + admitted, "3000 d " + admitted},
			b.replies(),
		)
	})
}

func TestWaitIsDeniedAtOnceIfTheTimeoutIsTooShort(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c := b.caller("c").call("RL.SLIDE k 1 1s\n" + waitCall + "999ms\nRL.SLIDE k 1 1s COST 2 WAIT 1m")
		b.calls("first", waitCall+"1s")
		c.call(waitCall + "999ms\nRL.SLIDE k 1 1s COST 2 WAIT 1m") // also behind other waiters
		assert.Equal(t, []string{
			"0 c " + admitted, "0 c " + denied + ":1000 :1000", "0 c " + denied + ":-1 :1000",
			"0 c " + denied + ":1000 :1000", "0 c " + denied + ":-1 :1000",
		}, b.replies())
		b.passUntil(1000)
		assert.Equal(t, []string{"1000 first " + admitted}, b.replies())
	})
}

// A waiter behind others is denied when its timeout ends, not before. A waiter that can be admitted
// at that moment is admitted.
func TestWaitEndsAtTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("a", waitCall+"1s")
		b.calls("b", waitCall+"1s")
		b.calls("c", waitCall+"1s")
		b.calls("d", waitCall+"1500ms")
		b.passUntil(2000)
		assert.Equal(t, []string{
			"0 a " + admitted, "1000 b " + admitted, "1000 c " + denied + ":1000 :1000",
			"1000 d " + denied + ":1000 :1000",
		}, b.replies(), "d is the first now, and is denied as its timeout is too short")
	})
}

// A call that is not first when its timeout ends is denied, also if the limit has room for it: it
// does not take what the calls before it wait for. Its reply is about the limit as it is.
func TestWaiterBehindOthersIsDeniedAtItsTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "RL.SLIDE k 3 1s COST 2")
		b.calls("large", "RL.SLIDE k 3 1s COST 3 WAIT 5s")
		b.calls("small", "RL.SLIDE k 3 1s WAIT 500ms")
		b.calls("x", "RL.ALL j SLIDE 3 1s k SLIDE 3 1s WAIT 600ms")
		b.calls("y", "RL.SLIDE k 3 1s WAIT 1m") // client 5
		b.passUntil(100)
		b.replies()
		b.passUntil(550)
		b.calls("admin", "CLIENT UNBLOCK 5")
		b.passUntil(2000)
		assert.Equal(t, []string{
			"500 small *5 :0 :3 :1 :1 :500",
			"550 admin :1",
			"550 y *5 :0 :3 :1 :1 :450",
			"600 x *6 :0 :3 :1 :1 :400 :1",
			"1000 large *5 :1 :3 :0 :0 :1000",
		}, b.replies())
		b.calls("top", "RL.TOP")
		assert.Equal(t, []string{"2000 top *2 $1 k :3"}, b.replies())
	})
}

// What takes nothing does not wait, also at its timeout.
func TestKnownIDBehindOthersIsAdmittedAtItsTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "RL.SLIDE k 3 1s COST 2")
		b.calls("large", "RL.SLIDE k 3 1s COST 3 WAIT 5s")
		b.calls("small", "RL.SLIDE k 3 1s WAIT 500ms ID a")
		b.calls("same", "RL.SLIDE k 3 1s ID a")
		b.replies()
		b.passUntil(500)
		assert.Equal(t, []string{"500 small *5 :1 :3 :0 :0 :500"}, b.replies())
	})
}

// Cheap calls with short timeouts do not starve an expensive one that waits before them.
func TestCheapCallsDoNotStarveAnExpensiveOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "RL.TOKEN k 10 5 1s COST 10")
		b.calls("large", "RL.TOKEN k 10 5 1s COST 10 WAIT 1m")
		for b.ms() < 3000 {
			b.calls("small", "RL.TOKEN k 10 5 1s WAIT 200ms")
			b.passUntil(b.ms() + 50)
		}
		admitted := map[string]int64{}
		for _, r := range b.takeReplies() {
			if strings.HasPrefix(r.text, "*5 :1") && admitted[r.name] == 0 {
				admitted[r.name] = r.at
			}
		}
		assert.Equal(t, map[string]int64{"setup": 0, "large": 2000, "small": 2200}, admitted)
	})
}

func TestChangesThatWakeWaiters(t *testing.T) {
	for _, step := range []struct{ before, limiter, change string }{
		{"", "RL.SLIDE k 1 1h WAIT 2h", "DEL k"},
		{"", "RL.MULTI k 1 1h 5 1d WAIT 2h", "UNLINK k"},
		{"", "RL.TOKEN k 1 1 1h WAIT 2h", "FLUSHALL"},
		{"", "RL.TOKEN k 1 1 1h WAIT 2h", "FLUSHDB"},
		{"", "RL.FIXED k 1 1h WAIT 2h", "RENAME k other"},
		{"", "RL.SLIDE k 1 1h WAIT 2h", "ZREMRANGEBYRANK k 0 0"},
		{"", "RL.SLIDE k 1 1h WAIT 2h", "ZPOPMIN k"},
		{"", "RL.SLIDE k 1 1h WAIT 2h", "BZPOPMIN k 0"},
		{"", "RL.SLIDE k 1 1h WAIT 2h", "SWAPDB 0 1"},
		{"", "RL.SLIDE k 1 1h WAIT 2h", "MOVE k 1"},
		{"", "RL.SLIDE k 1 1h WAIT 2h", "PEXPIRE k -1"},
		{"RL.SLIDE k 1 1h ID x", "RL.SLIDE k 1 1h WAIT 2h", "ZREM k x"},
		{"ZADD empty 1 a", "RL.SLIDE k 1 1h WAIT 2h", "ZUNIONSTORE k 1 nothing"},
		{"SELECT 2\nSET k x", "RL.TOKEN k 1 1 1h WAIT 2h", "SELECT 2\nMOVE k 3\nSELECT 0\nDEL k"},
	} {
		t.Run(step.change, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.calls("changer", step.before+"\nSELECT 0\n"+strings.TrimSuffix(step.limiter, " WAIT 2h"))
				b.calls("waiter", step.limiter)
				b.passUntil(100)
				require.NotContains(t, strings.Join(b.replies(), "\n"), "waiter")
				b.calls("changer", step.change)
				assert.Regexp(t, `(?m)^100 waiter \*[56] :1 `, strings.Join(b.replies(), "\n"))
			})
		})
	}
}

// EXPIRE changes the key: the queue is checked again at the new deadline.
func TestWaitEndsWhenTheKeyExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "RL.TOKEN k 1 1 1h")
		b.calls("waiter", "RL.TOKEN k 1 1 1h WAIT 2h")
		b.calls("expire", "PEXPIRE k 700")
		b.replies()
		b.passUntil(1000)
		assert.Equal(t, []string{"701 waiter *5 :1 :1 :0 :0 :3600000"}, b.replies())
	})
}

// If a key gets another type, all its waiters get an error.
func TestWaitForAKeyOfAnotherType(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", waitCall+"1m")
		b.calls("a", waitCall+"1m")
		b.calls("b", waitCall+"1m")
		b.calls("set", "SET k v")
		const wrong = " -WRONGTYPE Operation against a key holding the wrong kind of value"
		assert.ElementsMatch(t, []string{"0 setup " + admitted, "0 set +OK", "0 a" + wrong, "0 b" + wrong}, b.replies())
	})
}

func TestDisconnectedWaitersLeaveTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", waitCall+"1m")
		first := b.calls("first", waitCall+"1m")
		gone := b.calls("gone", waitCall+"1m")
		b.calls("last", waitCall+"1m")
		b.replies()
		b.passUntil(500)
		gone.Close()
		synctest.Wait()
		assert.EqualValues(t, 2, b.queues.Waiting.Load())
		first.Close()
		synctest.Wait()
		assert.EqualValues(t, 1, b.queues.Waiting.Load())
		b.replies()
		b.passUntil(1000)
		assert.Equal(t, []string{"1000 last " + admitted}, b.replies())
	})
}

// Calls before a waiting call are replied to before it. Calls behind it are replied to after it,
// even if they arrive while it waits.
func TestPipelineAroundAWaitingCall(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c := b.caller("c").call("SET a 1\n" + waitCall + "1m\n" + waitCall + "1m\nSET a 2\nGET a")
		b.passUntil(500)
		c.call(strings.Repeat("INCR n\n", 3000) + "ECHO " + strings.Repeat("x", 20000) + "\n" + waitCall + "1m\nGET a")
		b.calls("other", "GET a")
		assert.Equal(t, []string{"0 c +OK", "0 c " + admitted, "500 other $1 1"}, b.replies())
		b.passUntil(1999)
		replies := b.replies()
		assert.Equal(t, []string{"1000 c " + admitted, "1000 c +OK", "1000 c $1 2", "1000 c :1"}, replies[:4])
		assert.Len(t, replies, 4+2999+1)
		b.passUntil(2000)
		assert.Equal(t, []string{"2000 c " + admitted, "2000 c $1 2"}, b.replies())
	})
}

func TestWaitWithinATransaction(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("c", "MULTI\n"+waitCall+"1m\n"+waitCall+"1m\nBZPOPMIN none 0\nBZMPOP 0 1 none MIN\nEXEC")
		replies := b.replies()
		assert.Equal(t, "0 c *4 "+admitted+" "+denied+":1000 :1000 *-1 *-1", replies[len(replies)-1])
	})
}

// A call without WAIT ignores the waiters: they may wait longer because of it.
func TestCallsWithoutWaitOvertakeWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "RL.SLIDE k 2 1s\nRL.SLIDE k 2 1s")
		b.passUntil(500)
		b.calls("patient", "RL.SLIDE k 2 1s COST 2 WAIT 1500ms")
		b.calls("del", "ZPOPMIN k")
		b.replies()
		b.passUntil(600)
		b.calls("quick", "RL.SLIDE k 2 1s")
		b.replies()
		b.passUntil(2000)
		assert.Equal(t, []string{"1600 patient *5 :1 :2 :0 :0 :1000"}, b.replies())
	})
}

// A call that takes no capacity does not wait: the lease that it renews would expire in the queue,
// and the hits with its id are counted already.
func TestCallThatTakesNothingDoesNotWait(t *testing.T) {
	for _, step := range []struct{ setup, other, again, want string }{
		{"RL.LEASE k 1 1s a WAIT 1m", "RL.LEASE k 1 1s b WAIT 1m", "", "*5 :1 :1 :0 :0 :1000"},
		{"RL.ALL k LEASE 1 1s a l LEASE 1 1s a WAIT 1m", "RL.LEASE k 1 1s b WAIT 1m", "", "*6 :1 :1 :0 :0 :1000 :0"},
		// it takes a token
		{"RL.ALL k LEASE 1 1s a t TOKEN 9 1 1s WAIT 1m", "RL.LEASE k 1 1s b WAIT 1m", "", ""},
		{"RL.SLIDE k 1 1s ID a WAIT 1m", "RL.SLIDE k 1 1s ID b WAIT 1m", "", "*5 :1 :1 :0 :0 :900"},
		{"RL.MULTI k 1 1s 9 1h ID a WAIT 1m", "RL.SLIDE k 1 1s ID b WAIT 1m", "", "*6 :1 :1 :0 :0 :3599900 :0"},
		{"RL.CHECK ann slide lease token ID a WAIT 1m", "RL.CHECK ann slide ID b WAIT 1m", "",
			"*6 :1 :1 :0 :0 :1000 :0"},
		{"RL.CHECK ann slide ID a", "RL.CHECK ann slide shadow WAIT 1m", "RL.CHECK ann shadow WAIT 1m",
			"*6 :1 :1 :0 :0 :1000 :0"},
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			b.calls(
				"policies",
				"RL.POLICY SET slide SLIDE 1 1s\nRL.POLICY SET lease LEASE 2 1s\nRL.POLICY SET token TOKEN 9 1 1s\n"+
					"RL.POLICY SET shadow SLIDE 1 1s SHADOW",
			)
			b.calls("setup", step.setup)
			b.passUntil(100)
			b.calls("other", step.other)
			b.replies()
			b.calls("again", cmp.Or(step.again, step.setup))
			assert.Equal(
				t,
				strings.TrimSpace("100 again "+step.want),
				cmp.Or(strings.Join(b.replies(), "\n"), "100 again"),
				step.setup,
			)
		})
	}
}

// A policy that gets another algorithm starts without keys, also for its waiters: the new algorithm
// admits them and counts them.
func TestWaitWhenThePolicyChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "RL.POLICY SET p SLIDE 1 1h\nRL.CHECK ann p")
		b.calls("first", "RL.CHECK ann p WAIT 2h")
		b.calls("second", "RL.CHECK ann p WAIT 2h")
		b.passUntil(100)
		b.replies()
		b.calls("setup", "RL.POLICY SET p TOKEN 1 1 1m\nRL.CHECK ann p COST 0")
		assert.Equal(
			t,
			[]string{
				"100 first *6 :1 :1 :0 :0 :60000 :0",
				"100 setup +OK, keys of the former algorithm dropped: 1",
				"100 setup *6 :0 :1 :0 :60000 :60000 :0",
			},
			b.replies(),
		)
		b.passUntil(60_100)
		assert.Equal(t, []string{"60100 second *6 :1 :1 :0 :0 :60000 :0"}, b.replies())
	})
}

// A waiter was accepted when there was enough memory, so it is admitted without eviction. Eviction
// under the locks of its keys would deadlock.
func TestWaiterIsAdmittedWithoutMemory(t *testing.T) {
	for _, policy := range []string{"ratelimit", "allkeys-lru", "noeviction"} {
		inBubble(t, func(t *testing.T, b *bubble) {
			b.calls("setup", "SETRANGE large 200000 x\nRL.SLIDE k 1 1s")
			b.calls("behind", waitCall+"3s")
			b.calls("short", "RL.SLIDE l 1 1s\nRL.SLIDE l 1 1s WAIT 1s")
			b.calls("setup", "CONFIG SET maxmemory-policy "+policy+" maxmemory 1")
			b.replies()
			b.passUntil(1500)
			assert.Equal(t, []string{"1000 behind " + admitted, "1000 short " + admitted}, b.replies(), policy)
		})
	}
}

func TestWaitTakesADuration(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		c := b.caller("c")
		for _, wait := range []string{"-1", "0", "x", "11000d"} {
			for _, call := range []string{"RL.SLIDE k 1 1s", "RL.MULTI k 1 1s", "RL.TOKEN k 1 1 1s",
				"RL.FIXED k 1 1s"} {
				c.call(call + " WAIT " + wait)
				assert.Equal(
					t,
					[]string{
						"0 c -ERR invalid duration '" + wait + "': use seconds, or a number with ms, s, m, h, d or " +
							"w; " +
							"WAIT takes from 1ms to 10 years, and a call without it does not wait",
					},
					b.replies(),
				)
			}
		}
		c.call("RL.TOKEN k 1 1 1s WAIT\nRL.TOKEN k 1 1 1s WAIT 1 WAIT 1\nRL.TOKEN k 1 1 1s COST 1 COST 1\nEXISTS k")
		assert.Equal(
			t,
			[]string{"0 c -ERR syntax error", "0 c -ERR syntax error", "0 c -ERR syntax error", "0 c :0"},
			b.replies(),
		)
	})
}

func TestClientUnblock(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		admin := b.caller("admin").call("RL.SLIDE k 1 1s")
		for _, name := range []string{"one", "two", "three", "four"} {
			b.calls(
				name,
				map[string]string{"one": waitCall + "1m", "two": waitCall + "1m", "three": "BZPOPMIN none 0",
					"four": "BZPOPMIN none other 0"}[name],
			)
		}
		admin.call("CLIENT LIST")
		assert.Equal(t, 4, strings.Count(strings.Join(b.replies(), " "), "flags=b "))
		admin.call("CLIENT UNBLOCK 1\nCLIENT UNBLOCK 99\nCLIENT UNBLOCK x\nCLIENT UNBLOCK 2 NOW")
		assert.Equal(t, []string{"0 admin :0", "0 admin :0", "0 admin -ERR value is not an integer or out of range",
			"0 admin -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"}, b.replies())
		b.passUntil(400)
		admin.call(
			"MULTI\nCLIENT UNBLOCK 2 TIMEOUT\nCLIENT UNBLOCK 3 ERROR\nCLIENT UNBLOCK 4\nCLIENT UNBLOCK 5 ERROR\n" +
				"CLIENT UNBLOCK 5\nEXEC",
		)
		replies := b.replies()
		assert.Subset(t, replies, []string{
			"400 admin *5 :1 :1 :1 :1 :0", "400 one " + denied + ":600 :600", "400 two -UNBLOCKED client unblocked " +
				"via CLIENT UNBLOCK",
			"400 three *-1", "400 four -UNBLOCKED client unblocked via CLIENT UNBLOCK",
		})
		admin.call("INFO clients")
		assert.Contains(t, strings.Join(b.replies(), " "), "blocked_clients:0")
	})
}

func TestClientReplyAndWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls(
			"c",
			waitCall+"1m\nCLIENT REPLY SKIP\n"+waitCall+"1m\nECHO behind\nCLIENT REPLY OFF\n"+waitCall+"1m\nCLIENT "+
				"REPLY ON\nECHO end",
		)
		b.passUntil(3000)
		assert.Equal(t, []string{"0 c " + admitted, "1000 c $6 behind", "2000 c +OK", "2000 c $3 end"}, b.replies())
	})
}

// A waiter gets no reply when the server shuts down, as in Redis, and does not delay the shutdown.
// CLIENT KILL removes a waiter from its queue.
func TestShutdownAndKillEndWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", waitCall+"1m")
		b.calls("a", waitCall+"1m")
		b.calls("b", "BZPOPMIN x y 0")
		b.calls("c", waitCall+"1m")
		b.replies()
		b.calls("killer", "CLIENT KILL ID 2")
		assert.Subset(t, b.replies(), []string{"0 killer :1", "0 a gone"})
		assert.EqualValues(t, 2, b.queues.Waiting.Load())
		b.Shutdown(t.Context())
		assert.Subset(t, b.replies(), []string{"0 b gone", "0 c gone"})
	})
}

// A client is not idle while its call waits; its idle time starts with the reply.
func TestIdleTimeoutWhileWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "CONFIG SET timeout 10\nRL.TOKEN k 1 1 1m")
		b.calls("waiter", "RL.TOKEN k 1 1 1m WAIT 2m")
		b.passUntil(5000)
		b.calls("retime", "CONFIG SET timeout 7")
		b.passUntil(100000)
		var replies []string
		for _, line := range b.replies() {
			if strings.Contains(line, "waiter") {
				replies = append(replies, line)
			}
		}
		assert.Equal(t, []string{"60000 waiter *5 :1 :1 :0 :0 :60000", "67000 waiter gone"}, replies)
	})
}

// Input that arrives while a call waits is limited by client-query-buffer-limit.
func TestInputDuringAWaitIsLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.calls("setup", "CONFIG SET client-query-buffer-limit 1mb")
		c := b.calls("c", "BZPOPMIN none 0")
		b.replies()
		c.call(strings.Repeat("x", 1<<20+1))
		assert.Equal(t, []string{"0 c gone"}, b.replies())
	})
}

// A pop on many keys, which joins and leaves their queues in steps, is served and ended like any
// other. inBubble checks that no queue is left.
func TestPopOnManyKeys(t *testing.T) {
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	pop := "BZPOPMIN " + strings.Join(keys, " ") + " 2"
	for change, want := range map[string]string{
		"ZADD k700 1 a":                      "1000 pop *3 $4 k700 $1 a $1 1",
		"MULTI\nZADD k3 1 b\nDEL k3\nEXEC":   "2000 pop *-1",
		"MULTI\nDEL k3\nZADD k3 1 b\nEXEC":   "1000 pop *3 $2 k3 $1 b $1 1",
		"SET k3 x\nFLUSHALL\nZADD other 1 a": "2000 pop *-1",
		"ZADD other 1 a\nRENAME other k9":    "1000 pop *3 $2 k9 $1 a $1 1",
		"CLIENT UNBLOCK 1":                   "1000 pop *-1",
		"CLIENT UNBLOCK 1 ERROR":             "1000 pop -UNBLOCKED client unblocked via CLIENT UNBLOCK",
		"CLIENT KILL ID 1":                   "1000 pop gone",
	} {
		t.Run(change, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				client := b.calls("pop", pop)
				b.calls("gone", pop).Close()
				synctest.Wait()
				assert.EqualValues(t, 1, b.queues.Waiting.Load())
				assert.Equal(t, 1000, b.queues.Len())
				b.passUntil(1000)
				b.replies()
				b.calls("admin", change)
				b.passUntil(3000)
				assert.Contains(t, b.replies(), want)
				client.Close()
			})
		})
	}
}

// While a pop on many keys waits, it is no long call: it has had its processors.
func TestWaitingIsNoLongCall(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		long := 0
		b.longCall = func() func() { long++; return func() { long-- } }
		b.calls("pop", "BZPOPMIN "+strings.Repeat("k ", command.LongWork)+"0")
		assert.EqualValues(t, 1, b.queues.Waiting.Load())
		assert.Zero(t, long)
	})
}
