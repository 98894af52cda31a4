package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// In these calls, @ stands for a word of one byte more than 64 KB.
func TestLimiterWordsAreLimited(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	const key, other = " is too long: it has 65537 bytes, and proto-max-key-len allows 65536", " is too long: it " +
		"has 65537 bytes, and 65536 are allowed"
	for line, want := range map[string]string{
		"RL.SLIDE @ 5 1m":                    "key" + key,
		"RL.SLIDE k 5 1m ID @":               "ID" + other,
		"RL.SLIDE k 5 @":                     "window" + other,
		"RL.SLIDE k @ 1m":                    "limit" + other,
		"RL.SLIDE k 5 1m COST @":             "COST" + other,
		"RL.SLIDE k 5 1m WAIT @":             "WAIT" + other,
		"RL.SLIDE k 5 1m @":                  "argument 4 of RL.SLIDE" + other,
		"RL.MULTI @ 5 1m":                    "key" + key,
		"RL.MULTI k 5 1m 6 1h ID @":          "ID" + other,
		"RL.TOKEN @ 5 1 1m":                  "key" + key,
		"RL.FIXED @ 5 1m":                    "key" + key,
		"RL.FIXED k 5 day TZ @":              "TZ" + other,
		"RL.LEAKY @ 5 1m":                    "key" + key,
		"RL.LEASE @ 5 1m id":                 "key" + key,
		"RL.LEASE k 5 1m @":                  "id" + other,
		"RL.RELEASE @ id":                    "key" + key,
		"RL.RELEASE k @":                     "id" + other,
		"RL.REFUND @ 1":                      "key" + key,
		"RL.REFUND k 1 ID @":                 "ID" + other,
		"RL.ALL k SLIDE 5 1m @ TOKEN 5 1 1m": "argument 5 of RL.ALL" + key,
		"RL.ALL k SLIDE 5 1m l LEASE 5 1m @": "argument 9 of RL.ALL" + other,
		"RL.ALL k FIXED 5 day TZ @":          "TZ" + other,
		"RL.CHECK @ policy":                  "id" + key,
		"RL.CHECK k @":                       "policy" + other,
		"RL.CHECK k policy ID @":             "ID" + other,
		"RL.POLICY SET @ SLIDE 5 1m":         "name" + other,
		"RL.POLICY SET name SLIDE 5 @":       "argument 5 of RL.POLICY SET" + other,
		"RL.POLICY GET @":                    "name" + other,
		"RL.POLICY DEL @":                    "name" + other,
		"CL.THROTTLE @ 5 5 60":               "key" + key,
		"GCRA @ 5 5 60":                      "key" + key,
		"GCRA k 5 5 60 TOKENS @":             "TOKENS" + other,
		"THROTTLE @ 5 5 60":                  "key" + key,
		"THROTTLE k 5 5 @":                   "period" + other,
	} {
		words := strings.Fields(line)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "@", strings.Repeat("1", command.MaxWordLen+1))
		}
		assert.Equal(t, "-ERR "+want, c.Send(words...), line)
	}
	assert.Equal(t, ":0", c.Do("DBSIZE"))

	longest := strings.Repeat("1", command.MaxWordLen)
	assert.Equal(t, "*5 :1 :5 :4 :0 :60000", c.Send("RL.SLIDE", longest, "5", "1m", "ID", longest))
	assert.Equal(t, "*5 :1 :5 :4 :0 :60000", c.Send("RL.LEASE", "leases", "5", "1m", longest))
	assert.Equal(t, ":1", c.Send("RL.RELEASE", "leases", longest))
	assert.Equal(t, "+OK", c.Send("SET", longest+"1", "other keys may be as long as in Redis"))
}

func TestMaxKeyLengthCanBeSet(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{"proto-max-key-len": "100"})
	c := ts.Dial()
	assert.Equal(t, "*2 $17 proto-max-key-len $3 100", c.Do("CONFIG GET proto-max-key-len"))
	limiter := func(n int) string { return c.Send("RL.TOKEN", strings.Repeat("k", n), "5", "5", "1s") }
	const taken = "*5 :1 :5 :4 :0 :200"
	assert.Equal(t, taken, limiter(100))
	assert.Equal(t, "-ERR key is too long: it has 101 bytes, and proto-max-key-len allows 100", limiter(101))
	assert.Equal(
		t,
		"-ERR id is too long: it has 101 bytes, and proto-max-key-len allows 100",
		c.Send("RL.CHECK", strings.Repeat("k", 101), "policy"),
	)
	assert.Equal(t, "+OK", c.Do("CONFIG SET proto-max-key-len 1mb"))
	assert.Equal(t, taken, limiter(1<<20))
	assert.Equal(
		t,
		fmt.Sprintf("-ERR key is too long: it has %d bytes, and proto-max-key-len allows %d", 1<<20+1, 1<<20),
		limiter(1<<20+1),
	)
	assert.Equal(t, "-ERR ID is too long: it has 65537 bytes, and 65536 are allowed",
		c.Send("RL.SLIDE", "k", "5", "1s", "ID", strings.Repeat("x", command.MaxWordLen+1)))
	assert.Equal(
		t,
		"-ERR CONFIG SET failed (possibly related to argument 'proto-max-key-len') - argument must be between 1 and "+
			"536870912 inclusive",
		c.Do("CONFIG SET proto-max-key-len 0"),
	)
}
