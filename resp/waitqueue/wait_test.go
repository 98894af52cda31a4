package waitqueue_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp"
	"rlserver/resp/command"
	"rlserver/resp/resptest"
)

const (
	waitCall = "RL.SLIDE k 1 1s WAIT "
	admitted = "*5 :1 :1 :0 :0 :1000"
	denied   = "*5 :0 :1 :0 "
)

func TestWaitIsFirstComeFirstServed(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		for _, name := range []string{"a", "b", "c", "d"} {
			b.Calls(name, waitCall+"1m")
			b.PassUntil(b.Ms() + 10)
		}
		b.PassUntil(3500)
		assert.Equal(
			t,
			[]string{"0 a " + admitted, "1000 b " + admitted, "2000 c " + admitted, "3000 d " + admitted},
			b.Replies(),
		)
	})
}

func TestWaitIsDeniedAtOnceIfTheTimeoutIsTooShort(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		c := b.Caller("c").Call("RL.SLIDE k 1 1s\n" + waitCall + "999ms\nRL.SLIDE k 1 1s COST 2 WAIT 1m")
		b.Calls("first", waitCall+"1s")
		c.Call(waitCall + "999ms\nRL.SLIDE k 1 1s COST 2 WAIT 1m") // also behind other waiters
		assert.Equal(t, []string{
			"0 c " + admitted, "0 c " + denied + ":1000 :1000", "0 c " + denied + ":-1 :1000",
			"0 c " + denied + ":1000 :1000", "0 c " + denied + ":-1 :1000",
		}, b.Replies())
		b.PassUntil(1000)
		assert.Equal(t, []string{"1000 first " + admitted}, b.Replies())
	})
}

// A waiter behind others is denied when its timeout ends, not before. A waiter that can be admitted
// at that moment is admitted.
func TestWaitEndsAtTheTimeout(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("a", waitCall+"1s")
		b.Calls("b", waitCall+"1s")
		b.Calls("c", waitCall+"1s")
		b.Calls("d", waitCall+"1500ms")
		b.PassUntil(2000)
		assert.Equal(t, []string{
			"0 a " + admitted, "1000 b " + admitted, "1000 c " + denied + ":1000 :1000",
			"1000 d " + denied + ":1000 :1000",
		}, b.Replies(), "d is the first now, and is denied as its timeout is too short")
	})
}

// A call that is not first when its timeout ends is denied, also if the limit has room for it: it
// does not take what the calls before it wait for. Its reply is about the limit as it is.
func TestWaiterBehindOthersIsDeniedAtItsTimeout(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "RL.SLIDE k 3 1s COST 2")
		b.Calls("large", "RL.SLIDE k 3 1s COST 3 WAIT 5s")
		b.Calls("small", "RL.SLIDE k 3 1s WAIT 500ms")
		b.Calls("x", "RL.ALL j SLIDE 3 1s k SLIDE 3 1s WAIT 600ms")
		b.Calls("y", "RL.SLIDE k 3 1s WAIT 1m") // client 5
		b.PassUntil(100)
		b.Replies()
		b.PassUntil(550)
		b.Calls("admin", "CLIENT UNBLOCK 5")
		b.PassUntil(2000)
		assert.Equal(t, []string{
			"500 small *5 :0 :3 :1 :1 :500",
			"550 admin :1",
			"550 y *5 :0 :3 :1 :1 :450",
			"600 x *6 :0 :3 :1 :1 :400 :1",
			"1000 large *5 :1 :3 :0 :0 :1000",
		}, b.Replies())
		b.Calls("top", "RL.TOP")
		assert.Equal(t, []string{"2000 top *2 $1 k :3"}, b.Replies())
	})
}

// What takes nothing does not wait, also at its timeout.
func TestKnownIDBehindOthersIsAdmittedAtItsTimeout(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "RL.SLIDE k 3 1s COST 2")
		b.Calls("large", "RL.SLIDE k 3 1s COST 3 WAIT 5s")
		b.Calls("small", "RL.SLIDE k 3 1s WAIT 500ms ID a")
		b.Calls("same", "RL.SLIDE k 3 1s ID a")
		b.Replies()
		b.PassUntil(500)
		assert.Equal(t, []string{"500 small *5 :1 :3 :0 :0 :500"}, b.Replies())
	})
}

// Cheap calls with short timeouts do not starve an expensive one that waits before them.
func TestCheapCallsDoNotStarveAnExpensiveOne(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "RL.TOKEN k 10 5 1s COST 10")
		b.Calls("large", "RL.TOKEN k 10 5 1s COST 10 WAIT 1m")
		for b.Ms() < 3000 {
			b.Calls("small", "RL.TOKEN k 10 5 1s WAIT 200ms")
			b.PassUntil(b.Ms() + 50)
		}
		admitted := map[string]int64{}
		for _, r := range b.TakeReplies() {
			if strings.HasPrefix(r.Text, "*5 :1") && admitted[r.Name] == 0 {
				admitted[r.Name] = r.At
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
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				b.Calls("changer", step.before+"\nSELECT 0\n"+strings.TrimSuffix(step.limiter, " WAIT 2h"))
				b.Calls("waiter", step.limiter)
				b.PassUntil(100)
				require.NotContains(t, strings.Join(b.Replies(), "\n"), "waiter")
				b.Calls("changer", step.change)
				assert.Regexp(t, `(?m)^100 waiter \*[56] :1 `, strings.Join(b.Replies(), "\n"))
			})
		})
	}
}

// EXPIRE changes the key: the queue is checked again at the new deadline.
func TestWaitEndsWhenTheKeyExpires(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "RL.TOKEN k 1 1 1h")
		b.Calls("waiter", "RL.TOKEN k 1 1 1h WAIT 2h")
		b.Calls("expire", "PEXPIRE k 700")
		b.Replies()
		b.PassUntil(1000)
		assert.Equal(t, []string{"701 waiter *5 :1 :1 :0 :0 :3600000"}, b.Replies())
	})
}

// If a key gets another type, all its waiters get an error.
func TestWaitForAKeyOfAnotherType(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", waitCall+"1m")
		b.Calls("a", waitCall+"1m")
		b.Calls("b", waitCall+"1m")
		b.Calls("set", "SET k v")
		const wrong = " -WRONGTYPE Operation against a key holding the wrong kind of value"
		assert.ElementsMatch(t, []string{"0 setup " + admitted, "0 set +OK", "0 a" + wrong, "0 b" + wrong}, b.Replies())
	})
}

func TestDisconnectedWaitersLeaveTheQueue(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", waitCall+"1m")
		first := b.Calls("first", waitCall+"1m")
		gone := b.Calls("gone", waitCall+"1m")
		b.Calls("last", waitCall+"1m")
		b.Replies()
		b.PassUntil(500)
		gone.Close()
		synctest.Wait()
		assert.EqualValues(t, 2, b.Queues().Waiting.Load())
		first.Close()
		synctest.Wait()
		assert.EqualValues(t, 1, b.Queues().Waiting.Load())
		b.Replies()
		b.PassUntil(1000)
		assert.Equal(t, []string{"1000 last " + admitted}, b.Replies())
	})
}

// Calls before a waiting call are replied to before it. Calls behind it are replied to after it,
// even if they arrive while it waits.
func TestPipelineAroundAWaitingCall(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		c := b.Caller("c").Call("SET a 1\n" + waitCall + "1m\n" + waitCall + "1m\nSET a 2\nGET a")
		b.PassUntil(500)
		c.Call(strings.Repeat("INCR n\n", 3000) + "ECHO " + strings.Repeat("x", 20000) + "\n" + waitCall + "1m\nGET a")
		b.Calls("other", "GET a")
		assert.Equal(t, []string{"0 c +OK", "0 c " + admitted, "500 other $1 1"}, b.Replies())
		b.PassUntil(1999)
		replies := b.Replies()
		assert.Equal(t, []string{"1000 c " + admitted, "1000 c +OK", "1000 c $1 2", "1000 c :1"}, replies[:4])
		assert.Len(t, replies, 4+2999+1)
		b.PassUntil(2000)
		assert.Equal(t, []string{"2000 c " + admitted, "2000 c $1 2"}, b.Replies())
	})
}

func TestWaitWithinATransaction(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("c", "MULTI\n"+waitCall+"1m\n"+waitCall+"1m\nBZPOPMIN none 0\nBZMPOP 0 1 none MIN\nEXEC")
		replies := b.Replies()
		assert.Equal(t, "0 c *4 "+admitted+" "+denied+":1000 :1000 *-1 *-1", replies[len(replies)-1])
	})
}

// A call without WAIT ignores the waiters: they may wait longer because of it.
func TestCallsWithoutWaitOvertakeWaiters(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "RL.SLIDE k 2 1s\nRL.SLIDE k 2 1s")
		b.PassUntil(500)
		b.Calls("patient", "RL.SLIDE k 2 1s COST 2 WAIT 1500ms")
		b.Calls("del", "ZPOPMIN k")
		b.Replies()
		b.PassUntil(600)
		b.Calls("quick", "RL.SLIDE k 2 1s")
		b.Replies()
		b.PassUntil(2000)
		assert.Equal(t, []string{"1600 patient *5 :1 :2 :0 :0 :1000"}, b.Replies())
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
		resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
			b.Calls(
				"policies",
				"RL.POLICY SET slide SLIDE 1 1s\nRL.POLICY SET lease LEASE 2 1s\nRL.POLICY SET token TOKEN 9 1 1s\n"+
					"RL.POLICY SET shadow SLIDE 1 1s SHADOW",
			)
			b.Calls("setup", step.setup)
			b.PassUntil(100)
			b.Calls("other", step.other)
			b.Replies()
			b.Calls("again", cmp.Or(step.again, step.setup))
			assert.Equal(
				t,
				strings.TrimSpace("100 again "+step.want),
				cmp.Or(strings.Join(b.Replies(), "\n"), "100 again"),
				step.setup,
			)
		})
	}
}

// A policy that gets another algorithm starts without keys, also for its waiters: the new algorithm
// admits them and counts them.
func TestWaitWhenThePolicyChanges(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "RL.POLICY SET p SLIDE 1 1h\nRL.CHECK ann p")
		b.Calls("first", "RL.CHECK ann p WAIT 2h")
		b.Calls("second", "RL.CHECK ann p WAIT 2h")
		b.PassUntil(100)
		b.Replies()
		b.Calls("setup", "RL.POLICY SET p TOKEN 1 1 1m\nRL.CHECK ann p COST 0")
		assert.Equal(
			t,
			[]string{
				"100 first *6 :1 :1 :0 :0 :60000 :0",
				"100 setup +OK, keys of the former algorithm dropped: 1",
				"100 setup *6 :0 :1 :0 :60000 :60000 :0",
			},
			b.Replies(),
		)
		b.PassUntil(60_100)
		assert.Equal(t, []string{"60100 second *6 :1 :1 :0 :0 :60000 :0"}, b.Replies())
	})
}

// A waiter was accepted when there was enough memory, so it is admitted without eviction. Eviction
// under the locks of its keys would deadlock.
func TestWaiterIsAdmittedWithoutMemory(t *testing.T) {
	for _, policy := range []string{"ratelimit", "allkeys-lru", "noeviction"} {
		resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
			b.Calls("setup", "SETRANGE large 200000 x\nRL.SLIDE k 1 1s")
			b.Calls("behind", waitCall+"3s")
			b.Calls("short", "RL.SLIDE l 1 1s\nRL.SLIDE l 1 1s WAIT 1s")
			b.Calls("setup", "CONFIG SET maxmemory-policy "+policy+" maxmemory 1")
			b.Replies()
			b.PassUntil(1500)
			assert.Equal(t, []string{"1000 behind " + admitted, "1000 short " + admitted}, b.Replies(), policy)
		})
	}
}

func TestWaitTakesADuration(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		c := b.Caller("c")
		for _, wait := range []string{"-1", "0", "x", "11000d"} {
			for _, call := range []string{"RL.SLIDE k 1 1s", "RL.MULTI k 1 1s", "RL.TOKEN k 1 1 1s",
				"RL.FIXED k 1 1s"} {
				c.Call(call + " WAIT " + wait)
				assert.Equal(
					t,
					[]string{
						"0 c -ERR invalid duration '" + wait + "': use seconds, or a number with ms, s, m, h, d or " +
							"w; " +
							"WAIT takes from 1ms to 10 years, and a call without it does not wait",
					},
					b.Replies(),
				)
			}
		}
		c.Call("RL.TOKEN k 1 1 1s WAIT\nRL.TOKEN k 1 1 1s WAIT 1 WAIT 1\nRL.TOKEN k 1 1 1s COST 1 COST 1\nEXISTS k")
		assert.Equal(
			t,
			[]string{"0 c -ERR syntax error", "0 c -ERR syntax error", "0 c -ERR syntax error", "0 c :0"},
			b.Replies(),
		)
	})
}

func TestClientUnblock(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		admin := b.Caller("admin").Call("RL.SLIDE k 1 1s")
		for _, name := range []string{"one", "two", "three", "four"} {
			b.Calls(
				name,
				map[string]string{"one": waitCall + "1m", "two": waitCall + "1m", "three": "BZPOPMIN none 0",
					"four": "BZPOPMIN none other 0"}[name],
			)
		}
		admin.Call("CLIENT LIST")
		assert.Equal(t, 4, strings.Count(strings.Join(b.Replies(), " "), "flags=b "))
		admin.Call("CLIENT UNBLOCK 1\nCLIENT UNBLOCK 99\nCLIENT UNBLOCK x\nCLIENT UNBLOCK 2 NOW")
		assert.Equal(t, []string{"0 admin :0", "0 admin :0", "0 admin -ERR value is not an integer or out of range",
			"0 admin -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"}, b.Replies())
		b.PassUntil(400)
		admin.Call(
			"MULTI\nCLIENT UNBLOCK 2 TIMEOUT\nCLIENT UNBLOCK 3 ERROR\nCLIENT UNBLOCK 4\nCLIENT UNBLOCK 5 ERROR\n" +
				"CLIENT UNBLOCK 5\nEXEC",
		)
		replies := b.Replies()
		assert.Subset(t, replies, []string{
			"400 admin *5 :1 :1 :1 :1 :0", "400 one " + denied + ":600 :600", "400 two -UNBLOCKED client unblocked " +
				"via CLIENT UNBLOCK",
			"400 three *-1", "400 four -UNBLOCKED client unblocked via CLIENT UNBLOCK",
		})
		admin.Call("INFO clients")
		assert.Contains(t, strings.Join(b.Replies(), " "), "blocked_clients:0")
	})
}

func TestClientReplyAndWaiting(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls(
			"c",
			waitCall+"1m\nCLIENT REPLY SKIP\n"+waitCall+"1m\nECHO behind\nCLIENT REPLY OFF\n"+waitCall+"1m\nCLIENT "+
				"REPLY ON\nECHO end",
		)
		b.PassUntil(3000)
		assert.Equal(t, []string{"0 c " + admitted, "1000 c $6 behind", "2000 c +OK", "2000 c $3 end"}, b.Replies())
	})
}

// A waiter gets no reply when the server shuts down, as in Redis, and does not delay the shutdown.
// CLIENT KILL removes a waiter from its queue.
func TestShutdownAndKillEndWaiters(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", waitCall+"1m")
		b.Calls("a", waitCall+"1m")
		b.Calls("b", "BZPOPMIN x y 0")
		b.Calls("c", waitCall+"1m")
		b.Replies()
		b.Calls("killer", "CLIENT KILL ID 2")
		assert.Subset(t, b.Replies(), []string{"0 killer :1", "0 a gone"})
		assert.EqualValues(t, 2, b.Queues().Waiting.Load())
		b.Shutdown(t.Context())
		assert.Subset(t, b.Replies(), []string{"0 b gone", "0 c gone"})
	})
}

// A client is not idle while its call waits; its idle time starts with the reply.
func TestIdleTimeoutWhileWaiting(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "CONFIG SET timeout 10\nRL.TOKEN k 1 1 1m")
		b.Calls("waiter", "RL.TOKEN k 1 1 1m WAIT 2m")
		b.PassUntil(5000)
		b.Calls("retime", "CONFIG SET timeout 7")
		b.PassUntil(100000)
		var replies []string
		for _, line := range b.Replies() {
			if strings.Contains(line, "waiter") {
				replies = append(replies, line)
			}
		}
		assert.Equal(t, []string{"60000 waiter *5 :1 :1 :0 :0 :60000", "67000 waiter gone"}, replies)
	})
}

// Input that arrives while a call waits is limited by client-query-buffer-limit.
func TestInputDuringAWaitIsLimited(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("setup", "CONFIG SET client-query-buffer-limit 1mb")
		c := b.Calls("c", "BZPOPMIN none 0")
		b.Replies()
		c.Call(strings.Repeat("x", 1<<20+1))
		assert.Equal(t, []string{"0 c gone"}, b.Replies())
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
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				client := b.Calls("pop", pop)
				b.Calls("gone", pop).Close()
				synctest.Wait()
				assert.EqualValues(t, 1, b.Queues().Waiting.Load())
				assert.Equal(t, 1000, b.Queues().Len())
				b.PassUntil(1000)
				b.Replies()
				b.Calls("admin", change)
				b.PassUntil(3000)
				assert.Contains(t, b.Replies(), want)
				client.Close()
			})
		})
	}
}

// While a pop on many keys waits, it is no long call: it has had its processors.
func TestWaitingIsNoLongCall(t *testing.T) {
	long := 0
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		b.Calls("pop", "BZPOPMIN "+strings.Repeat("k ", command.LongWork)+"0")
		assert.EqualValues(t, 1, b.Queues().Waiting.Load())
		assert.Zero(t, long)
	}, func(o *resp.Options) { o.LongCall = func() func() { long++; return func() { long-- } } })
}
