package limits_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/command/commandtest"
)

// A call has its own rule, whatever calls were before it: a rule that is not parsed again is the
// same one.
func TestRulesOfCallsBeforeAreNotTaken(t *testing.T) {
	calls := []string{
		"RL.SLIDE k%d 5 1m", "RL.SLIDE k%d 5 60", "RL.SLIDE k%d 51 m", "RL.SLIDE k%d 5 1m COST 2",
		"RL.SLIDE k%d 5 1m ID a", "RL.SLIDE k%d 6 1m", "RL.SLIDE k%d 0 1m", "RL.SLIDE k%d 5 1m NONSENSE",
		"RL.SLIDE k%d 5 1m HOLD 1m ID b", "RL.SLIDE k%d 5 1m BAN 2 1m", "RL.SLIDE k%d 00000000000000000000005 1m",
		"RL.FIXED f%d 5 1m", "RL.FIXED f%d 5 day", "RL.FIXED f%d 5 day TZ Europe/Berlin", "RL.FIXED f%d 51 m",
		"RL.COUNTER c%d 5 1m", "RL.COUNTER c%d 5 1h",
		"RL.TOKEN t%d 5 5 1m", "RL.TOKEN t%d 55 1 m", "RL.TOKEN t%d 5 51 m", "RL.TOKEN t%d 5 5 1m COST 6",
		"RL.LEASE l%d 5 1m a", "RL.LEASE l%d 5 1m b", "RL.LEAKY y%d 5 1m", "RL.LEAKY y%d 5 1m QUEUE 5",
		"CL.THROTTLE t%d 4 5 60", "RL.MULTI k%d 5 1m", "RL.ALL k%d SLIDE 7 1m", "RL.CHARGE k%d SLIDE 5 1m 1",
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		one, alone := commandtest.New(t), commandtest.New(t)
		for range 60 {
			call := fmt.Sprintf(calls[r.IntN(len(calls))], r.IntN(2))
			alone.Do("CL.THROTTLE other 1 1 1") // whose rule is not kept
			require.Equal(t, alone.Do(call), one.Do(call), "seed %d: %s", seed, call)
			passed := r.Int64N(3000)
			one.Advance(passed)
			alone.Advance(passed)
		}
	}
}
