package str_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/internal/grammar"
	"rlserver/resp/commands/str"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The replies are those that Redis' manual and its tests of INCREX give for version 8.8.
func TestIncrExReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"INCREX n", "*2 :1 :1"},
		{"INCREX n BYINT 9", "*2 :10 :9"},
		{"increx n byint -20", "*2 :-10 :-20"},
		{"INCREX n BYINT 0", "*2 :-10 :0"},
		{"GET n", "$3 -10"},

		// Bounds
		{"SET n 99", "+OK"},
		{"INCREX n BYINT 5 UBOUND 100", "*2 :99 :0"},
		{"INCREX n BYINT 5 UBOUND 104", "*2 :104 :5"},
		{"INCREX n BYINT 5 UBOUND 100 SATURATE", "*2 :100 :-4"},
		{"INCREX n BYINT -50 LBOUND 60", "*2 :100 :0"},
		{"INCREX n SATURATE BYINT -50 LBOUND 60", "*2 :60 :-40"},
		{"INCREX n BYINT -5 UBOUND 55", "*2 :55 :-5"},
		{"INCREX n LBOUND 60 UBOUND 70", "*2 :55 :0"},
		{"INCREX n LBOUND 60 UBOUND 70 SATURATE", "*2 :60 :5"},
		{"GET n", "$2 60"},
		{"INCREX nobody UBOUND 0", "*2 :0 :0"},
		{"EXISTS nobody", ":0"},
		{"INCREX nobody UBOUND 0 SATURATE", "*2 :0 :0"},
		{"GET nobody", "$1 0"},

		// The limits of 64 bits
		{"SET n 9223372036854775800", "+OK"},
		{"INCREX n BYINT 8", "*2 :9223372036854775800 :0"},
		{"INCREX n BYINT 8 SATURATE", "*2 :9223372036854775807 :7"},
		{"INCREX n BYINT 9223372036854775807 UBOUND 100 SATURATE", "*2 :100 :-9223372036854775707"},
		{"SET n -9223372036854775800", "+OK"},
		{"INCREX n BYINT -9", "*2 :-9223372036854775800 :0"},
		{"INCREX n BYINT -9 SATURATE", "*2 :-9223372036854775808 :-8"},
		{"SET n 9223372036854775807", "+OK"},
		{"INCREX n BYINT -5 UBOUND -9223372036854775808 SATURATE", "-ERR applied increment would overflow"},
		{"GET n", "$19 9223372036854775807"},
		// from the least integer: an applied increment of 2^63 is beyond 64 bits, as in Redis
		{"SET n -9223372036854775808", "+OK"},
		{"INCREX n BYINT -1 SATURATE", "*2 :-9223372036854775808 :0"},
		{"INCREX n LBOUND 0 SATURATE", "-ERR applied increment would overflow"},
		{"INCREX n LBOUND -1 SATURATE", "*2 :-1 :9223372036854775807"},

		// Floating point
		{"SET f 10", "+OK"},
		{"INCREX f BYFLOAT 0.5", "*2 $4 10.5 $3 0.5"},
		{"INCREX f", "-ERR value is not an integer or out of range"},
		{"INCREX f BYFLOAT 10 UBOUND 15.5", "*2 $4 10.5 $1 0"},
		{"INCREX f BYFLOAT 10 UBOUND 15.5 SATURATE", "*2 $4 15.5 $1 5"},
		{"INCREX f BYFLOAT -20 LBOUND -0.5 SATURATE", "*2 $4 -0.5 $3 -16"},
		{"INCREX f BYFLOAT 1 UBOUND inf LBOUND -inf", "*2 $3 0.5 $1 1"},
		{"INCREX f BYFLOAT 1 LBOUND inf", "-ERR LBOUND can't be greater than UBOUND"},
		{"INCREX f BYFLOAT 1 LBOUND inf UBOUND inf", "*2 $3 0.5 $1 0"},
		{"INCREX f BYFLOAT 1 LBOUND inf UBOUND inf SATURATE", "-ERR applied increment would be Infinity"},
		{"INCREX f BYFLOAT inf", "-ERR BYFLOAT increment cannot be Infinity"},
		{"GET f", "$3 0.5"},
		{"SET f inf", "+OK"},
		{"INCREX f BYFLOAT 1", "-ERR value cannot be Infinity"},
		{"SET f abc", "+OK"},
		{"INCREX f BYFLOAT 1", "-ERR value is not a valid float"},
		{"INCREX f", "-ERR value is not an integer or out of range"},
		{"HSET h f v", ":1"},
		{"INCREX h", wrongType},
		{"INCREX h BYFLOAT 1 EXAT 1", wrongType},

		// Options
		{"INCREX", "-ERR wrong number of arguments for 'increx' command"},
		{"INCREX k 5", "-ERR syntax error"},
		{"INCREX k BYINT", "-ERR syntax error"},
		{"INCREX k BYINT 1 BYINT 1", "-ERR syntax error"},
		{"INCREX k BYINT 1 BYFLOAT 1", "-ERR syntax error"},
		{"INCREX k LBOUND 1 LBOUND 1", "-ERR syntax error"},
		{"INCREX k UBOUND 1 UBOUND 1", "-ERR syntax error"},
		{"INCREX k SATURATE SATURATE", "-ERR syntax error"},
		{"INCREX k EX 1 EX 1", "-ERR syntax error"},
		{"INCREX k EX 1 PX 1", "-ERR syntax error"},
		{"INCREX k EX 1 PERSIST", "-ERR syntax error"},
		{"INCREX k PERSIST PERSIST", "-ERR syntax error"},
		{"INCREX k EX 1 ENX ENX", "-ERR syntax error"},
		{"INCREX k PERSIST ENX", "-ERR syntax error"},
		{"INCREX k ENX PERSIST", "-ERR syntax error"},
		{"INCREX k KEEPTTL", "-ERR syntax error"},
		{"INCREX k ENX", "-ERR ENX flag requires an expiration"},
		{"INCREX k EX 0", "-ERR invalid expire time in 'increx' command"},
		{"INCREX k EX x", notInteger},
		{"INCREX k BYINT 1.5", "-ERR Increment is not an integer or out of range"},
		{`INCREX k BYINT ""`, "-ERR Increment is not an integer or out of range"},
		{"INCREX k BYFLOAT x", "-ERR Increment is not a valid float"},
		{"INCREX k LBOUND 1.5", "-ERR LBOUND is not an integer or out of range"},
		{"INCREX k UBOUND inf", "-ERR UBOUND is not an integer or out of range"},
		{"INCREX k BYFLOAT 1 LBOUND x", "-ERR LBOUND is not a valid float"},
		{"INCREX k BYFLOAT 1 UBOUND x", "-ERR UBOUND is not a valid float"},
		{"INCREX k LBOUND 10 UBOUND 5", "-ERR LBOUND can't be greater than UBOUND"},
		{"INCREX k BYFLOAT 1 LBOUND 10.5 UBOUND 5", "-ERR LBOUND can't be greater than UBOUND"},
		{"EXISTS k", ":0"},

		// A deadline in the past
		{"SET k 10", "+OK"},
		{"INCREX k EXAT 1", "*2 :11 :1"},
		{"EXISTS k", ":0"},
		{"INCREX k PXAT 1", "*2 :1 :1"},
		{"EXISTS k", ":0"},
		{"SET k 10 PXAT 4102444800123", "+OK"},
		{"INCREX k EXAT 1 ENX", "*2 :11 :1"},
		{"PEXPIRETIME k", ":4102444800123"},
	})
}

func TestIncrExInRESP3(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	require.Equal(t, byte('%'), c.Do("HELLO 3")[0])
	c.Check([]resptest.Answer{
		{"INCREX n BYINT 5", "*2 :5 :5"},
		{"INCREX n BYFLOAT 2.5", "*2 ,7.5 ,2.5"},
		{"INCREX n BYFLOAT 2.5 UBOUND 8", "*2 ,7.5 ,0"},
	})
}

// A sum that does not fit in a long double is out of bounds. Without UBOUND the bound is the
// greatest long double.
func TestIncrExBeyondLongDouble(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("SET f 1e4932")
	require.True(t, strings.HasSuffix(c.Do("INCREX f BYFLOAT 1e4932 EX 100"), " $1 0"))
	require.Equal(t, "$6 1e4932", c.Do("GET f"))
	require.Equal(t, ":-1", c.Do("TTL f"))

	words := strings.Fields(c.Do("INCREX f BYFLOAT 1e4932 SATURATE EX 100"))
	require.Contains(t, words[2], "118973149535723176502") // LDBL_MAX of C
	require.Equal(t, "$4933 "+words[2], c.Do("GET f"))
	require.Equal(t, ":100", c.Do("TTL f"))
	require.Equal(t, "-ERR applied increment would be Infinity", c.Do("INCREX f BYFLOAT -1 UBOUND -1e4932 SATURATE"))
}

// A fixed window: it starts with the first call, admits two, and ends by itself.
func TestIncrExAsALimiter(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	const call = "INCREX calls UBOUND 2 EX 60 ENX"
	for _, step := range []struct {
		wait int64 // ms before the call
		call string
		want string
	}{
		{0, call, "*2 :1 :1"},
		{1000, call, "*2 :2 :1"},
		{0, "PTTL calls", ":59000"},
		{1000, call, "*2 :2 :0"},
		{0, "PTTL calls", ":58000"},
		{57999, call, "*2 :2 :0"},
		{2, call, "*2 :1 :1"},
		{0, "PTTL calls", ":60000"},
		{0, "INCREX calls EX 5", "*2 :2 :1"},
		{0, "INCREX calls BYINT -1", "*2 :1 :-1"},
		{1, "PTTL calls", ":4999"},
		{0, "INCREX calls BYINT 9 UBOUND 5 PX 77", "*2 :1 :0"},
		{0, "INCREX calls UBOUND 1 PERSIST", "*2 :1 :0"},
		{0, "PTTL calls", ":4999"},
		{0, "INCREX calls BYINT 9 UBOUND 5 SATURATE PX 77", "*2 :5 :4"},
		{0, "PTTL calls", ":77"},
		{0, "INCREX calls PERSIST", "*2 :6 :1"},
		{0, "PTTL calls", ":-1"},
	} {
		ts.Advance(step.wait)
		require.Equal(t, step.want, c.Do(step.call), step.call)
	}
}

// TestBoundedSums compares the sums of integers and of floats with sums that cannot overflow.
func TestBoundedSums(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	number := func() int64 {
		if rnd.IntN(2) == 0 {
			return edges[rnd.IntN(len(edges))]
		}
		return rnd.Int64() >> rnd.IntN(64) * (1 - 2*rnd.Int64N(2))
	}
	for range 20_000 {
		old, by, lower, upper := number(), number(), number(), number()
		lower, upper = min(lower, upper), max(lower, upper)

		exact := new(big.Int).Add(big.NewInt(old), big.NewInt(by))
		inside := exact.Cmp(big.NewInt(lower)) >= 0 && exact.Cmp(big.NewInt(upper)) <= 0
		want := lower
		switch {
		case inside:
			want = exact.Int64()
		case exact.Cmp(big.NewInt(upper)) > 0:
			want = upper
		}

		sum, ok := str.BoundedInt(old, by, lower, upper)
		require.Equal(t, inside, ok, "%d+%d in [%d, %d], seed %d", old, by, lower, upper, seed)
		require.Equal(t, want, sum, "%d+%d in [%d, %d], seed %d", old, by, lower, upper, seed)
		if exact.BitLen() < grammar.LongDoublePrecision { // exact in long double, too
			float := func(n int64) *big.Float { return new(big.Float).SetPrec(grammar.LongDoublePrecision).SetInt64(n) }
			sum, ok := str.BoundedFloat(float(old), float(by), float(lower), float(upper))
			require.Equal(t, inside, ok, "%d+%d in [%d, %d], seed %d", old, by, lower, upper, seed)
			require.Zero(t, sum.Cmp(float(want)), "%d+%d in [%d, %d], seed %d", old, by, lower, upper, seed)
		}
	}
}
