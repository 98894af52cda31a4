package limits_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The open reservations of a key are bounded by max-reservations, in calls of all kinds, and calls
// are remembered for settled-retention. Both can be changed while the server runs.
func TestBoundsOfReservations(t *testing.T) {
	s := resptest.Start(t, config.Defaults{"max-reservations": "2", "settled-retention": "1s"})
	c := s.Dial()
	const refused = "-ERR CONFIG SET failed (possibly related to argument "
	full := func(open, most int) string {
		return fmt.Sprintf("-ERR key 'k' has %d open reservations, and max-reservations allows %d: "+
			"settle them with RL.SETTLE, or reserve for a shorter time", open, most)
	}
	c.Check([]resptest.Answer{
		{"CONFIG GET max-reservations", "*2 $16 max-reservations $1 2"},
		{"CONFIG GET settled-retention", "*2 $17 settled-retention $2 1s"},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID a", "*5 :1 :9 :8 :0 :5000"},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID b", "*5 :1 :9 :7 :0 :5000"},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID c", full(2, 2)},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID b", "*5 :1 :9 :7 :0 :5000"},
		{"RL.ALL other SLIDE 5 1m k TOKEN 9 1 1h HOLD 5s ID c", full(2, 2)},
		{"EXISTS other", ":0"},
		{"EVAL return{redis.pcall('RL.TOKEN','k',9,1,'1h','HOLD','5s','ID','c').err} 1 k", "…"},
		{"RL.SETTLE k 1 ID a", "*1 *4 :1 :1 :1 :7"},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID c", "*5 :1 :9 :6 :0 :3600000"},
		{"CONFIG SET max-reservations 3", "+OK"},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID d", "*5 :1 :9 :5 :0 :3600000"},
		{"CONFIG SET max-reservations 1", "+OK"},
		{"RL.TOKEN k 9 1 1h HOLD 5s ID e", full(3, 1)},
		{"RL.SETTLE k 1 ID a", "*1 *4 :0 :0 :1 :5"},
	})
	s.Advance(999)
	assert.Equal(t, "*1 *4 :0 :0 :1 :5", c.Do("RL.SETTLE k 1 ID a"))
	c.Check([]resptest.Answer{
		{"CONFIG SET settled-retention 5s", "+OK"},
		{"CONFIG SET settled-retention 0", refused + "'settled-retention') - argument must be a duration from 1ms to " +
			"10 years, such as 30s, 10m or 1h"},
		{"CONFIG SET max-reservations 0", refused + "'max-reservations') - argument must be between 1 and 2147483647 " +
			"inclusive"},
	})
	s.Advance(1)
	assert.Equal(t, "*1 *4 :0 :0 :1 :5", c.Do("RL.SETTLE k 1 ID a"))
	s.Advance(4001)
	assert.Equal(t, "*1 *4 :1 :0 :1 :7", c.Do("RL.SETTLE k 1 ID a"), "forgotten, and charged again")
}

// INFO has the reservations of all keys, whatever happens to the keys.
func TestReservationsInInfo(t *testing.T) {
	c := resptest.Start(t, nil).Dial()
	is := func(n int) {
		t.Helper()
		assert.Equal(t, n, c.InfoNumber("number_of_reservations"))
		assert.Equal(t, n > 0, c.InfoNumber("used_memory_reservations") > 0)
	}
	is(0)
	for call, n := range map[string]int{"RL.SLIDE s 5 1m HOLD 5s ID a": 1, "RL.FIXED f 5 1m HOLD 5s ID a": 1} {
		c.Do(call)
		is(n)
		c.Do("FLUSHALL")
		is(0)
	}
	c.Do("RL.ALL s SLIDE 5 1m t TOKEN 5 1 1m HOLD 5s ID a")
	c.Do("RL.SLIDE s 5 1m HOLD 5s ID b")
	is(3)
	for _, step := range []struct {
		call string
		n    int
	}{
		{"COPY s copy", 5}, {"RENAME t copy", 3}, {"MOVE s 1", 3}, {"SWAPDB 0 1", 3}, {"FLUSHDB", 1}, {"SWAPDB 0 1", 1},
		{"RL.SETTLE copy 1 ID a", 1}, {"SET copy text", 0},
	} {
		c.Do(step.call)
		is(step.n)
	}
	assert.Equal(t, 100000, c.InfoNumber("max_reservations"))
	assert.Equal(t, 600000, c.InfoNumber("settled_retention_ms"))
}

// The ids for which policies have other numbers are bounded by max-overrides.
func TestBoundOfOverrides(t *testing.T) {
	c := resptest.Start(t, config.Defaults{"max-overrides": "2"}).Dial()
	full := func(count, most int) string {
		return fmt.Sprintf("-ERR policies have other numbers for %d ids, and max-overrides allows %d: "+
			"delete some with RL.POLICY DEL name FOR id", count, most)
	}
	c.Check([]resptest.Answer{
		{"RL.POLICY SET a SLIDE 5 1m", "+OK"},
		{"RL.POLICY SET b SLIDE 5 1m", "+OK"},
		{"RL.POLICY SET a SLIDE 6 1m FOR ann", "+OK"},
		{"RL.POLICY SET b SLIDE 6 1m FOR ann", "+OK"},
		{"RL.POLICY SET a SLIDE 6 1m FOR bob", full(2, 2)},
		{"RL.POLICY GET a FOR bob", "$-1"},
		{"RL.POLICY SET a SLIDE 7 1m FOR ann", "+OK"},
		{"RL.POLICY GET a FOR ann", "$10 SLIDE 7 1m"},
		{"CONFIG SET max-overrides 1", "+OK"},
		{"RL.POLICY SET a SLIDE 6 1m FOR bob", full(2, 1)},
		{"RL.POLICY DEL a FOR ann", ":1"},
		{"RL.POLICY DEL b FOR ann", ":1"},
		{"RL.POLICY SET a SLIDE 6 1m FOR bob", "+OK"},
		{"RL.POLICY DEL a", ":1"},
		{"RL.POLICY SET b SLIDE 6 1m FOR bob", "+OK"},
	})
	assert.Equal(t, 1, c.InfoNumber("number_of_overrides"))
	assert.Equal(t, 1, c.InfoNumber("max_overrides"))
}

// Overrides do not count for maxmemory, so that many of them evict no key. Beyond it there are no
// further ones.
func TestNoOverridesWithoutMemory(t *testing.T) {
	c := resptest.Start(t, config.Defaults{"maxmemory": "64mb", "maxmemory-policy": "noeviction"}).Dial()
	c.Check([]resptest.Answer{
		{"RL.POLICY SET a SLIDE 5 1m", "+OK"},
		{"RL.POLICY SET a SLIDE 6 1m FOR ann", "+OK"},
		{"SETRANGE large 2000000 x", ":2000001"},
		{"CONFIG SET maxmemory 1mb", "+OK"},
		{"RL.POLICY SET a SLIDE 6 1m FOR bob", "-OOM command not allowed when used memory > 'maxmemory'."},
		{"RL.POLICY GET a FOR bob", "$-1"},
		{"RL.POLICY GET a FOR ann", "$10 SLIDE 6 1m"},
		{"RL.POLICY DEL a FOR ann", ":1"},
		{"DEL large", ":1"},
		{"RL.POLICY SET a SLIDE 6 1m FOR bob", "+OK"},
	})
}
