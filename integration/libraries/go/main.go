// Command libraries limits with libraries that run on Redis, on two servers. Its arguments are the
// addresses of ours and of a real Redis.
//
// It prints a line for each library when its first part has ended, and then "stop"; when a line of
// input says that both servers have stopped, it calls each library once, and prints "start"; when
// another line says that they run again, it limits once more. It fails if the servers differ, or if
// a library that is exact does not admit its limit.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/redis"
	zerolimit "github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	zeroredis "github.com/zeromicro/go-zero/core/stores/redis"
)

const (
	limit   = 20 // per hour, or of a bucket that fills as slowly
	callers = 50
	each    = 4 // calls of each caller
)

// hit asks a limiter whether a call is admitted. detail is what else it says of the limit.
type hit func(key string) (admitted bool, detail string, err error)

// libraries have a function that makes a limiter on the server of an address.
var libraries = []struct {
	name string
	make func(addr string) hit
}{
	{"redis_rate", func(addr string) hit {
		l := redis_rate.NewLimiter(client(addr))
		return func(key string) (bool, string, error) {
			r, err := l.Allow(context.Background(), key, redis_rate.PerHour(limit))
			if err != nil {
				return false, "", err
			}
			return r.Allowed > 0, fmt.Sprint(r.Remaining), nil
		}
	}},
	{"ulule/limiter", func(addr string) hit {
		store := must(ulule.NewStore(client(addr)))
		l := limiter.New(store, limiter.Rate{Period: time.Hour, Limit: limit})
		return func(key string) (bool, string, error) {
			c, err := l.Get(context.Background(), key)
			return !c.Reached && err == nil, fmt.Sprint(c.Remaining), err
		}
	}},
	{"throttled", func(addr string) hit {
		store := must(goredisstore.NewCtx(client(addr), "throttled:"))
		l := must(throttled.NewGCRARateLimiterCtx(store,
			throttled.RateQuota{MaxRate: throttled.PerHour(limit), MaxBurst: limit - 1}))
		l.SetMaxCASAttemptsLimit(10 * callers * each)
		return func(key string) (bool, string, error) {
			limited, r, err := l.RateLimitCtx(context.Background(), key, 1)
			if err != nil {
				return false, "", err
			}
			return !limited, fmt.Sprint(r.Remaining), nil
		}
	}},
	{"go-zero PeriodLimit", func(addr string) hit {
		l := zerolimit.NewPeriodLimit(3600, limit, zeroredis.MustNewRedis(
			zeroredis.RedisConf{Host: addr, Type: zeroredis.NodeType, NonBlock: true}), "period:")
		return func(key string) (bool, string, error) {
			code, err := l.Take(key)
			return code == zerolimit.Allowed || code == zerolimit.HitQuota, fmt.Sprint(code), err
		}
	}},
	{"go-zero TokenLimiter", func(addr string) hit {
		store := zeroredis.MustNewRedis(zeroredis.RedisConf{Host: addr, Type: zeroredis.NodeType, NonBlock: true})
		var mu sync.Mutex
		buckets := make(map[string]*zerolimit.TokenLimiter)
		begun := time.Now() // the library rounds its time to seconds: all calls have the same
		return func(key string) (bool, string, error) {
			mu.Lock()
			l := buckets[key]
			if l == nil {
				l = zerolimit.NewTokenLimiter(1, limit, store, key)
				buckets[key] = l
			}
			mu.Unlock()
			return l.AllowN(begun, 1), "", nil
		}
	}},
	{"traefik", traefik},
	{"envoyproxy/ratelimit", envoyproxy},
}

func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, PoolSize: callers})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// outcome is what is compared between the servers.
type outcome struct {
	Admitted int
	Replies  []string // to calls one after the other, on another key
	Stopped  string   // the reply to a call while the server is stopped
	Again    int      // admitted after it has been started again
}

// count makes calls at the same time, and returns how many are admitted, less a thousand for each
// error. Calls before them load the script: go-zero stops calling a server that has had errors,
// NOSCRIPT among them, for many calls.
func count(h hit, key string) int {
	await(h)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				if ok, _, err := h(key); err != nil {
					admitted.Add(-1000)
				} else if ok {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(admitted.Load())
}

func describe(h hit, key string) string {
	ok, detail, err := h(key)
	if err != nil {
		return "error"
	}
	return fmt.Sprint(ok, " ", detail)
}

// describeStopped describes a call to a stopped server. A library that waits until its server runs
// does not admit the call either: whether it notices at once that the server has stopped is chance.
func describeStopped(h hit, key string) string {
	replied := make(chan string, 1)
	go func() { replied <- describe(h, key) }()
	select {
	case reply := <-replied:
		return reply
	case <-time.After(10 * time.Second):
		return "error"
	}
}

// await calls until many calls in sequence have no error.
func await(h hit) {
	good := 0
	for begun := time.Now(); good < 100 && time.Since(begun) < time.Minute; {
		if _, _, err := h("await"); err != nil {
			good = 0
			time.Sleep(50 * time.Millisecond)
			continue
		}
		good++
	}
}

// silent does not log that a server is stopped.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	logx.Disable()
	redis.SetLogger(silent{})
	addrs := os.Args[1:]
	hits, outcomes := make([][]hit, len(addrs)), make([][]outcome, len(addrs))
	for i, addr := range addrs {
		outcomes[i] = make([]outcome, len(libraries))
		for n, l := range libraries {
			h := l.make(addr)
			hits[i] = append(hits[i], h)
			o := &outcomes[i][n]
			o.Admitted = count(h, "go"+l.name)
			for range limit + 3 {
				o.Replies = append(o.Replies, describe(h, "go"+l.name+"2"))
			}
		}
	}
	input := bufio.NewScanner(os.Stdin)
	fmt.Println("stop")
	input.Scan()
	var stopped sync.WaitGroup
	for i := range addrs {
		for n := range libraries {
			stopped.Go(func() { outcomes[i][n].Stopped = describeStopped(hits[i][n], "stopped") })
		}
	}
	stopped.Wait()
	fmt.Println("start")
	input.Scan()
	failed := false
	for n, l := range libraries {
		for i := range addrs {
			outcomes[i][n].Again = count(hits[i][n], "go"+l.name+"3")
		}
		o, redis := outcomes[0][n], outcomes[len(addrs)-1][n]
		fmt.Printf("%-24s %d of %d calls admitted, %d after a restart, while stopped: %s\n", l.name, o.Admitted,
			callers*each, o.Again, o.Stopped)
		exact := o.Admitted == limit && o.Again == limit && redis.Admitted == limit && redis.Again == limit
		if !exact || !slices.Equal(o.Replies, redis.Replies) || o.Stopped != redis.Stopped {
			fmt.Printf("FAILED: ours %+v\n      Redis's %+v\n", o, redis)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
