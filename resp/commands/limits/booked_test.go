package limits_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// bookedCalls are calls of every command that takes keys, and of some others. K is a key with a
// reservation; z a sorted set, l a list, s a set and h a hash. A line that begins with ! may delete
// or overwrite K, or settle what is reserved; one with > moves it to dst.
const bookedCalls = `
APPEND K v; BITCOUNT K; BITFIELD K GET u8 0; BITFIELD_RO K GET u8 0; BITOP AND dst K K; ! BITOP NOT K missing;
BITPOS K 1; BLMOVE K dst LEFT LEFT 0.01; BLMOVE l K LEFT LEFT 0.01; BLMPOP 0.01 1 K LEFT; BLPOP K 0.01; BRPOP K 0.01;
BRPOPLPUSH K dst 0.01; BZMPOP 0.01 1 K MIN; BZMPOP 0.01 2 K z MAX; BZPOPMAX K 0.01; BZPOPMIN K 0.01;
BZPOPMIN K z 0.01; CL.THROTTLE K 5 10 60 1; COPY K dst; COPY K dst REPLACE; COPY K K DB 1; COPY z K; ! COPY z K REPLACE;
DEBUG DIGEST; DEBUG DIGEST-VALUE K; DEBUG OBJECT K; DEBUG RELOAD; DECR K; DECRBY K 2; ! DEL K; DUMP K;
EVAL return(redis.call('RL.SLIDE',KEYS[1],10,'1m','HOLD','10s','ID','b')) 1 K; EVALSHA_RO 0 1 K; EVALSHA 0 1 K;
EVAL_RO return(redis.call('RL.HOLDS',KEYS[1])) 1 K; EXISTS K; EXPIRE K 100; EXPIRE K 5 GT; ! EXPIRE K -1;
EXPIREAT K 99999999999; EXPIRETIME K; GCRA K 5 10 60 TOKENS 1; GET K; GETBIT K 0; ! GETDEL K; GETEX K PERSIST;
GETRANGE K 0 1; GETSET K v; HDEL K f; HEXISTS K f; HGET K f; HGETALL K; HGETDEL K FIELDS 1 f; HINCRBY K f 1;
HINCRBYFLOAT K f 1; HKEYS K; HLEN K; HMGET K f; HMSET K f v; HRANDFIELD K; HSCAN K 0; HSET K f v; HSETNX K f v;
HSTRLEN K f; HVALS K; INCR K; INCRBY K 2; INCRBYFLOAT K 2; INCREX K BYINT 1; KEYS *; LCS K K; LINDEX K 0;
LINSERT K BEFORE a b; LLEN K; LMOVE l K LEFT LEFT; LMOVE K l LEFT LEFT; LMPOP 1 K LEFT; LPOP K; LPOS K a; LPUSH K a;
LPUSHX K a; LRANGE K 0 -1; LREM K 1 a; LSET K 0 a; LTRIM K 0 1; MEMORY USAGE K; MEMORY USAGE K SAMPLES 0; MGET K z;
! MOVE K 1; ! MSET K v; MSETNX K v other w; OBJECT ENCODING K; OBJECT FREQ K; OBJECT IDLETIME K; OBJECT REFCOUNT K;
PERSIST K; PEXPIRE K 99999; PEXPIREAT K 9999999999999; PEXPIRETIME K; ! PSETEX K 100 v; PTTL K; RANDOMKEY;
> RENAME K dst; RENAME K K; ! RENAME z K; > RENAMENX K dst; RENAMENX z K; RESTORE K 0 nonsense;
! RESTORE K 0 nonsense REPLACE; RL.ALL K SLIDE 10 1m other SLIDE 5 1m; RL.ALL K TOKEN 10 10 1m; RL.ALL K FIXED 10 1m;
RL.ALL K COUNTER 10 1m; RL.ALL K LEASE 3 1m id; RL.ALL K SLIDE 10 1m HOLD 10s ID b; RL.CHARGE K SLIDE 10 1m 30;
RL.CHARGE K TOKEN 10 10 1m 30; RL.CHARGE K FIXED 10 1m 30; RL.CHARGE K COUNTER 10 1m 30; RL.CHARGE K LEASE 3 1m x 1;
RL.CHECK u p; RL.CHECK u p ID x; RL.CHECK u p HOLD 20s ID a; RL.CHECK u p COST 30 FORCE; RL.CHECK u p COST 30;
! RL.CHECK u q ID x; ! RL.SETTLE CHECK u p COST 4 ID a; RL.SETTLE CHECK u q COST 4 ID a; RL.COUNTER K 10 1m COST 2;
RL.COUNTER K 10 1m COST 2 HOLD 10s ID b; RL.FIXED K 10 1m; RL.FIXED K 10 1m HOLD 10s ID b; RL.HOLDS K;
RL.LEAKY K 10 1m QUEUE 2; RL.LEASE K 3 1m id; RL.LEASE K 3 1ms a; RL.MULTI K 10 1m 20 1h;
RL.MULTI K 10 1m 20 1h HOLD 10s ID a; RL.REFUND K 1; RL.REFUND K 100; RL.REFUND K 1 ID a; RL.RELEASE K a;
RL.RELEASE K id; ! RL.RESET u p; ! RL.RESET u; ! RL.SETTLE K 3 ID a; RL.SETTLE K 30 ID b; RL.SLIDE K 10 1m;
RL.SLIDE K 10 1m COST 10; RL.SLIDE K 10 1m ID a; RL.SLIDE K 10 1m COST 0; RL.SLIDE K 10 1m COST 9 WAIT 20ms;
RL.TOKEN K 10 10 1m COST 3; RL.TOKEN K 10 10 1m COST 3 HOLD 10s ID b; RL.TOP 5; RL.POLICY IDS p; RL.USAGE u p;
RL.USAGE u; RL.UNBAN u p; RL.BANNED;
RPOP K; RPOPLPUSH K l; RPUSH K a; RPUSHX K a; SADD K a; SCAN 0; SCAN 0 TYPE zset; SCARD K; SDIFF K s;
SDIFFSTORE dst K s; ! SDIFFSTORE K s; ! SET K v; SET K v NX; ! SET K v GET; SETBIT K 1 1; ! SETEX K 10 v; SETNX K v;
SETRANGE K 0 v; SINTER K s; SINTERCARD 1 K; SINTERSTORE dst K; ! SINTERSTORE K s; SISMEMBER K a; SMEMBERS K;
SMISMEMBER K a; SMOVE s K a; SMOVE K s a; SORT K ALPHA; SORT K BY nosort GET # STORE dst; ! SORT K ALPHA STORE K;
SORT_RO K ALPHA; SPOP K; SPUBLISH K m; SRANDMEMBER K; SREM K a; SSCAN K 0; STRLEN K; SUBSTR K 0 1; SUNION K;
SUNIONSTORE dst K; ! SUNIONSTORE K s; THROTTLE K 5 10 60 1; TOUCH K; TTL K; TYPE K; ! UNLINK K; WATCH K;
ZADD K 1 m; ZADD K INCR 1 m; ZADD K XX 1 m; ZCARD K; ZCOUNT K -inf +inf; ZDIFF 2 K z; ZDIFFSTORE dst 2 K z;
! ZDIFFSTORE K 1 z; ! ZDIFFSTORE K 2 K K; ZINCRBY K 1 m; ZINTER 2 K z WITHSCORES; ZINTERCARD 2 K z;
ZINTERSTORE dst 2 K z; ! ZINTERSTORE K 2 K z; ZLEXCOUNT K - +; ZMPOP 1 K MIN; ZMPOP 2 K z MAX COUNT 5; ZMSCORE K m;
ZPOPMAX K; ZPOPMAX K 9999; ZPOPMIN K; ZPOPMIN K 9999; ZRANDMEMBER K; ZRANDMEMBER K 5; ZRANDMEMBER K -5 WITHSCORES;
ZRANGE K 0 -1; ZRANGE K - + BYLEX; ZRANGE K -1 -1 REV; ZRANGEBYLEX K - +; ZRANGEBYSCORE K -inf +inf;
ZRANGESTORE dst K 0 -1; ! ZRANGESTORE K z 0 -1; ! ZRANGESTORE K K 0 -1; ZRANK K m; ZREM K m; ZREMRANGEBYLEX K - +;
ZREMRANGEBYRANK K 0 -1; ZREMRANGEBYSCORE K -inf +inf; ZREVRANGE K 0 -1; ZREVRANGEBYLEX K + -;
ZREVRANGEBYSCORE K +inf -inf; ZREVRANK K m; ZSCAN K 0; ZSCORE K m; ZUNION 2 K z WITHSCORES; ZUNION 1 K;
ZUNIONSTORE dst 2 K z; ZUNIONSTORE dst 1 K; ! ZUNIONSTORE K 1 z; ! ZUNIONSTORE K 1 K; SSUBSCRIBE K; SUNSUBSCRIBE K`

// booked are keys with a reservation: of each, the policy p whose key it is for u, and the calls
// that make it.
var booked = map[string][]string{
	"empty log":    {"SLIDE 10 1m", "RL.SLIDE K 10 1m HOLD 10s ID a"},
	"packed log":   {"SLIDE 1000 1m", "RL.SLIDE K 1000 1m COST 300", "RL.SLIDE K 1000 1m HOLD 10s ID a"},
	"mixed log":    {"SLIDE 10 1m", "ZADD K 5 m 6 n", "RL.SLIDE K 10 1m HOLD 10s ID a", "PEXPIRE K 700000"},
	"empty leases": {"LEASE 3 1m", "RL.SLIDE K 10 1m HOLD 10s ID a", "RL.LEASE K 3 1m id"},
	"bucket":       {"TOKEN 10 10 1m", "RL.TOKEN K 10 10 1m", "RL.TOKEN K 10 10 1m COST 2 HOLD 10s ID a"},
	"new bucket":   {"TOKEN 10 10 1m", "RL.TOKEN K 10 10 1m COST 2 HOLD 10s ID a"},
	"window":       {"FIXED 10 1m", "RL.FIXED K 10 1m", "RL.FIXED K 10 1m COST 2 HOLD 10s ID a"},
	"counter":      {"COUNTER 10 1m", "RL.COUNTER K 10 1m", "RL.COUNTER K 10 1m COST 2 HOLD 10s ID a"},
}

// Every command works on a key with reservations, keeps them unless it deletes or overwrites the
// key, and the journal tells what it has done.
func TestEveryCommandOnKeysWithReservations(t *testing.T) {
	var calls, names []string
	for call := range strings.SplitSeq(bookedCalls, ";") {
		calls = append(calls, strings.TrimSpace(call))
		words := strings.Fields(strings.ToLower(strings.TrimLeft(call, "\n !>")))
		names = append(names, words[0], strings.Join(words[:min(2, len(words))], "|"))
	}
	for _, c := range command.Table.Sorted() {
		for _, c := range append(slices.Clone(c.Subs), c) {
			assert.True(t, len(c.Keys) == 0 || slices.Contains(names, c.FullName()), c.FullName())
		}
	}
	for name, setup := range booked {
		t.Run(name, func(t *testing.T) {
			var e *engine.Engine
			m := commandtest.NewMirror(t, 16)
			s := resptest.Start(t, config.Defaults{"enable-debug-command": "yes"}, func(o *resp.Options) {
				e = engine.New(engine.Options{Databases: 16, Seed: [2]uint64{1, 2}, Journal: m})
				o.Engine, o.Journal = e, m
			})
			c := s.Dial()
			for _, call := range calls {
				c.Do("FLUSHALL")
				c.Pipe("RL.POLICY SET q LEASE 2 1m", "ZADD z 1 m 2 n", "RPUSH l a b", "SADD s a b", "HSET h f v")
				require.Equal(t, "+OK", c.Do("RL.POLICY SET p "+setup[0]))
				for _, line := range setup[1:] {
					reply := c.Do(strings.Replace(line, " K ", " p:{u} ", 1))
					require.NotContains(t, reply, "-", line)
				}
				require.Contains(t, c.Do("RL.HOLDS p:{u}"), "a :")
				mark, line := "", call
				if strings.HasPrefix(call, "! ") || strings.HasPrefix(call, "> ") {
					mark, line = call[:1], call[2:]
				}
				words := strings.Fields(line)
				for i, w := range words {
					if w == "K" {
						words[i] = "p:{u}"
					}
				}
				d := c
				if strings.Contains(line, "SUBSCRIBE") {
					d = s.Dial()
				}
				var reply string
				// nothing lets time pass
				if strings.Contains(line, " 0.01") || strings.Contains(line, " WAIT ") {
					d.Do("MULTI")
					d.Send(words...)
					reply = d.Do("EXEC")
				} else {
					reply = d.Send(words...)
				}
				assert.NotContains(t, reply, "internal error", call)
				assert.NotContains(t, reply, "syntax error", call)
				assert.NotContains(t, reply, "wrong number", call)
				at := map[string]string{"": "p:{u}", ">": "dst"}[mark]
				if at != "" {
					assert.Contains(t, c.Do("RL.HOLDS "+at), " a :", "%s: %s", call, reply)
				}
				before := c.Do("DEBUG DIGEST")
				m.Compare(e, s.Now.Load())
				assert.Equal(t, "+OK", c.Do("DEBUG RELOAD"), call)
				assert.Equal(t, before, c.Do("DEBUG DIGEST"), call)
				if t.Failed() {
					t.Fatal("after", call, reply)
				}
			}
		})
	}
}
