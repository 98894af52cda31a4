package limits_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The steps are the example of redis-cell's documentation: a bucket of five tokens that gets one
// back each second.
func TestCellThrottle(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "CL.THROTTLE k 4 1 1 6", "*5 :1 :5 :5 :-1 :0"}, // never more than the bucket holds
		{"0s", "EXISTS k", ":0"},
		{"0s", "CL.THROTTLE k 4 1 1", "*5 :0 :5 :4 :-1 :1"},
		{"0s", "cl.throttle k 4 1 1 1", "*5 :0 :5 :3 :-1 :2"},
		{"0s", "CL.THROTTLE k 4 1 1 3", "*5 :0 :5 :0 :-1 :5"},
		{"0s", "CL.THROTTLE k 4 1 1", "*5 :1 :5 :0 :1 :5"},
		{"0s", "CL.THROTTLE k 4 1 1 0", "*5 :0 :5 :0 :-1 :5"}, // a quantity of 0 is not limited
		{"3s", "CL.THROTTLE k 4 1 1", "*5 :0 :5 :2 :-1 :3"},
		{"3.1s", "CL.THROTTLE k 4 1 1", "*5 :0 :5 :1 :-1 :4"}, // 3.9 s
		{"4s", "CL.THROTTLE k 4 1 1", "*5 :0 :5 :1 :-1 :4"},
		{"8s", "CL.THROTTLE k 4 1 1", "*5 :0 :5 :4 :-1 :1"},
		{"9.5s", "CL.THROTTLE k 4 1 1", "*5 :0 :5 :4 :-1 :1"},
		{"9.5s", "CL.THROTTLE k 4 1 1 0", "*5 :0 :5 :4 :-1 :1"},
		{"9.5s", "CL.THROTTLE k 4 1 1 2", "*5 :0 :5 :2 :-1 :3"},
		{"9.5s", "CL.THROTTLE k 4 1 1 5", "*5 :1 :5 :2 :3 :3"},
		{"9.6s", "CL.THROTTLE k 4 1 1 5", "*5 :1 :5 :2 :3 :3"}, // 2.9 s: rounded up
		// unless more is owed than the bucket holds: 1.9 s
		{"9.6s", "CL.THROTTLE k 0 1 1 0", "*5 :1 :1 :0 :2 :3"},
		{"9.6s", "TYPE k", "+rl.token"},
		{"9.6s", "RL.TOKEN k 5 1 1s COST 0", "*5 :1 :5 :2 :0 :2900"},
		{"9.6s", "CL.THROTTLE new 4 1 1 0", "*5 :0 :5 :5 :-1 :0"},
		{"9.6s", "EXISTS new", ":0"},
	})
}

func TestGCRA(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "GCRA k 5 10 60", "*5 :0 :6 :5 :-1 :6"},
		{"0s", "GCRA k 5 10 60 TOKENS 3", "*5 :0 :6 :2 :-1 :24"},
		{"0s", "gcra k 5 10 60.0 tokens 3", "*5 :1 :6 :2 :6 :24"},
		{"5.001s", "GCRA k 5 10 60 TOKENS 3", "*5 :1 :6 :2 :1 :19"},
		{"6s", "GCRA k 5 10 60 TOKENS 3", "*5 :0 :6 :0 :-1 :36"},
		{"6s", "GCRA k 5 10 60 TOKENS 7", "*5 :1 :6 :0 :-1 :36"},
		{"6s", "GCRA k 5 10 60 TOKENS 9223372036854775807", "*5 :1 :6 :0 :-1 :36"},
		{"6s", "GCRA half 0 1 0.5", "*5 :0 :1 :0 :-1 :1"},
		{"6.499s", "GCRA half 0 1 0.5", "*5 :1 :1 :0 :1 :1"},
		{"6.5s", "GCRA half 0 1 0.5", "*5 :0 :1 :0 :-1 :1"},
		{"7s", "GCRA thirds 2 2 0.0015", "*5 :0 :3 :2 :-1 :1"}, // one token per 0.75 ms
		{"7s", "GCRA thirds 2 2 0.0015 TOKENS 2", "*5 :0 :3 :0 :-1 :1"},
		{"7s", "PTTL thirds", ":3"},
		{"7.002s", "GCRA thirds 2 2 0.0015 TOKENS 3", "*5 :1 :3 :2 :1 :1"},
		{"7.002s", "GCRA thirds 2 2 0.0015 TOKENS 2", "*5 :0 :3 :0 :-1 :1"},
		{"7.003s", "GCRA tiny 0 1 0.0000001", "*5 :0 :1 :0 :-1 :1"},
		// too long to count in microseconds
		{"7.003s", "GCRA long 0 1 400000.0005", "*5 :0 :1 :0 :-1 :400001"},
		{"7.004s", "GCRA tiny 0 1 1e-7", "*5 :0 :1 :0 :-1 :1"},
	})
}

func TestThrottle(t *testing.T) {
	requireSteps(t, []limitStep{
		{"0s", "THROTTLE k 10 100 60", "*5 :1 :10 :9 :1 :0"},
		{"0s", "throttle k 10 100 60 9", "*5 :1 :10 :0 :6 :0"},
		{"0s", "THROTTLE k 10 100 60 2", "*5 :0 :10 :0 :6 :2"}, // 1.2 s
		{"0s", "THROTTLE k 10 100 60 0", "*5 :1 :10 :0 :6 :0"},
		{"0s", "THROTTLE k 10 100 60 11", "*5 :0 :10 :0 :6 :-1"},
		{"1.2s", "THROTTLE k 10 100 60 2", "*5 :1 :10 :0 :6 :0"},
		{"1.2s", "THROTTLE k 5 100 60 0", "*5 :0 :5 :0 :6 :3"},
	})
}

// cell is the generic cell rate algorithm (ITU-T I.371, virtual scheduling), as the servers have it
// whose commands these are: it keeps only the time at which the bucket is full, in microseconds. It
// is as exact as this server where the time between two tokens is a whole number of microseconds.
type cell struct{ interval, capacity, full int64 }

func (c *cell) take(now, n int64) string {
	tolerance, cost := c.interval*c.capacity, c.interval*n
	begin := max(c.full, now)
	limited, retry := 0, int64(-1)
	switch early := begin + cost - tolerance - now; {
	case early <= 0:
		begin += cost
		c.full = begin
	case cost <= tolerance:
		limited, retry = 1, (early+999_999)/1_000_000
	default:
		limited = 1
	}
	return fmt.Sprintf(
		"*5 :%d :%d :%d :%d :%d",
		limited,
		c.capacity,
		max(tolerance-(begin-now), 0)/c.interval,
		retry,
		(begin-now+999_999)/1_000_000,
	)
}

func TestCellThrottleAndGCRAMatchTheModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for key := range 40 {
		burst, count := r.Int64N(8), 1+r.Int64N(5)
		period := []int64{1, 7, 60, 3600}[r.IntN(4)] * count // seconds: the interval is whole
		model := cell{interval: period * 1_000_000 / count, capacity: burst + 1}
		for range 40 {
			ts.Advance(r.Int64N(model.interval / 500))
			n := 1 + r.Int64N(burst+2)
			call := fmt.Sprintf("CL.THROTTLE k%d %d %d %d %d", key, burst, count, period, n)
			if r.IntN(2) == 0 {
				call = fmt.Sprintf("GCRA k%d %d %d %d TOKENS %d", key, burst, count, period, n)
			}
			require.Equal(t, model.take(ts.Now.Load()*1000, n), c.Do(call), "%s, seed %d", call, seed)
		}
	}
}

func TestCellThrottleAndGCRAErrors(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	require.Equal(t, "+OK", c.Do("SET text 1"))
	const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	for _, step := range []struct{ call, want string }{
		{"CL.THROTTLE k 1 1", "-ERR wrong number of arguments for 'cl.throttle' command"},
		{"CL.THROTTLE k 1 1 1 1 1", "-ERR wrong number of arguments for 'cl.throttle' command"},
		{"CL.THROTTLE k x 1 1", "-Cell error: Couldn't parse as integer: x"},
		{"CL.THROTTLE k 1 1 1.5", "-Cell error: Couldn't parse as integer: 1.5"},
		{"CL.THROTTLE k 1 0 1", "-Cell error: Zero rates are not supported"},
		{"CL.THROTTLE k 1 1 0", "-Cell error: Zero rates are not supported"},
		{"CL.THROTTLE k -1 1 1", "-ERR max_burst must be from 0 to 9007199254740990"},
		{"CL.THROTTLE k 9007199254740991 1 1", "-ERR max_burst must be from 0 to 9007199254740990"},
		{"CL.THROTTLE k 1 -1 1", "-ERR count must be from 1 to 9007199254740991"},
		{"CL.THROTTLE k 1 1 -1", "-ERR period must be from 1 to 315360000"},
		{"CL.THROTTLE k 1 1 315360001", "-ERR period must be from 1 to 315360000"},
		{"CL.THROTTLE k 1 1 1 -1", "-ERR quantity must be from 0 to 9223372036854775807"},
		{"CL.THROTTLE text 1 1 1", wrongType},
		{"CL.THROTTLE text 1 1 1 0", wrongType},

		{"GCRA k 1 1", "-ERR wrong number of arguments for 'gcra' command"},
		{"GCRA k 1 1 1 TOKENS 1 1", "-ERR wrong number of arguments for 'gcra' command"},
		{"GCRA k x 1 1", "-ERR value is not an integer or out of range"},
		{"GCRA k -1 1 1", "-ERR value is out of range, must be positive"},
		{"GCRA k 9007199254740991 1 1", "-ERR max-burst must be from 0 to 9007199254740990"},
		{"GCRA k 1 0 1", "-ERR value is out of range, value must between 1 and 9223372036854775807"},
		{"GCRA k 1 9223372036854775807 1", "-ERR tokens-per-period must be from 1 to 9007199254740991"},
		{"GCRA k 1 1 soon", "-ERR value is not a valid float"},
		{"GCRA k 1 1 0", "-ERR period must be > 0 and < 1e12"},
		{"GCRA k 1 1 -0.5", "-ERR period must be > 0 and < 1e12"},
		{"GCRA k 1 1 1e12", "-ERR period must be > 0 and < 1e12"},
		{"GCRA k 1 1 inf", "-ERR period must be > 0 and < 1e12"},
		{"GCRA k 1 1 315360001", "-ERR period must be at most 315360000"},
		{"GCRA k 1 1 1 COST 1", "-ERR syntax error"},
		{"GCRA k 1 1 1 TOKENS", "-ERR Missing TOKENS value"},
		{"GCRA k 1 1 1 TOKENS 0", "-ERR value is out of range, value must between 1 and 9223372036854775807"},
		{"GCRA k 1 1 1 TOKENS x", "-ERR value is not an integer or out of range"},
		{"GCRA text 1 1 1", wrongType},

		{"THROTTLE k 1 1", "-ERR wrong number of arguments for 'throttle' command"},
		{"THROTTLE k 1 1 1 1 1", "-ERR wrong number of arguments for 'throttle' command"},
		{"THROTTLE k x 1 1", "-ERR invalid max_burst"},
		{"THROTTLE k 1 x 1", "-ERR invalid count_per_period"},
		{"THROTTLE k 1 1 x", "-ERR invalid period"},
		{"THROTTLE k 1 1 1 x", "-ERR invalid quantity"},
		{"THROTTLE k 1 1 1 -1", "-ERR Rate limit check failed: negative quantity: -1"},
		{"THROTTLE k 0 1 1", "-ERR Rate limit check failed: invalid rate limit parameters"},
		{"THROTTLE k 1 1 0", "-ERR Rate limit check failed: invalid rate limit parameters"},
		{"THROTTLE k 9007199254740992 1 1", "-ERR max_burst must be from 1 to 9007199254740991"},
		{"THROTTLE text 1 1 1", wrongType},
	} {
		require.Equal(t, step.want, c.Do(step.call), step.call)
	}
	require.Equal(t, ":0", c.Do("EXISTS k"))
}
