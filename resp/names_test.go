package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
	"rlserver/resp/config"
)

// In these calls, @ stands for a word of one byte more than 64 KB.
func TestLimiterWordsAreLimited(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
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
		assert.Equal(t, "-ERR "+want, c.send(words...), line)
	}
	assert.Equal(t, ":0", c.do("DBSIZE"))

	longest := strings.Repeat("1", command.MaxWordLen)
	assert.Equal(t, "*5 :1 :5 :4 :0 :60000", c.send("RL.SLIDE", longest, "5", "1m", "ID", longest))
	assert.Equal(t, "*5 :1 :5 :4 :0 :60000", c.send("RL.LEASE", "leases", "5", "1m", longest))
	assert.Equal(t, ":1", c.send("RL.RELEASE", "leases", longest))
	assert.Equal(t, "+OK", c.send("SET", longest+"1", "other keys may be as long as in Redis"))
}

func TestMaxKeyLengthCanBeSet(t *testing.T) {
	ts := startServer(t, config.Defaults{MaxKey: 100})
	c := ts.dial()
	assert.Equal(t, "*2 $17 proto-max-key-len $3 100", c.do("CONFIG GET proto-max-key-len"))
	limiter := func(n int) string { return c.send("RL.TOKEN", strings.Repeat("k", n), "5", "5", "1s") }
	const taken = "*5 :1 :5 :4 :0 :200"
	assert.Equal(t, taken, limiter(100))
	assert.Equal(t, "-ERR key is too long: it has 101 bytes, and proto-max-key-len allows 100", limiter(101))
	assert.Equal(
		t,
		"-ERR id is too long: it has 101 bytes, and proto-max-key-len allows 100",
		c.send("RL.CHECK", strings.Repeat("k", 101), "policy"),
	)
	assert.Equal(t, "+OK", c.do("CONFIG SET proto-max-key-len 1mb"))
	assert.Equal(t, taken, limiter(1<<20))
	assert.Equal(
		t,
		fmt.Sprintf("-ERR key is too long: it has %d bytes, and proto-max-key-len allows %d", 1<<20+1, 1<<20),
		limiter(1<<20+1),
	)
	assert.Equal(t, "-ERR ID is too long: it has 65537 bytes, and 65536 are allowed",
		c.send("RL.SLIDE", "k", "5", "1s", "ID", strings.Repeat("x", command.MaxWordLen+1)))
	assert.Equal(
		t,
		"-ERR CONFIG SET failed (possibly related to argument 'proto-max-key-len') - argument must be between 1 and "+
			"536870912 inclusive",
		c.do("CONFIG SET proto-max-key-len 0"),
	)
}

func TestClientNamesAreLimited(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	long := strings.Repeat("x", command.MaxWordLen+1)
	assert.Equal(t, "+OK", c.send("CLIENT", "SETNAME", long[1:]))
	assert.Equal(t, "-ERR Client names must not be longer than 65536 bytes.", c.send("CLIENT", "SETNAME", long))
	assert.Equal(t, "-ERR Client names must not be longer than 65536 bytes.", c.send("HELLO", "2", "SETNAME", long))
	assert.Equal(t, "-ERR LIB-NAME must not be longer than 65536 bytes.", c.send("CLIENT", "SETINFO", "LIB-NAME", long))
	assert.Equal(t, "$65536 "+long[1:], c.send("CLIENT", "GETNAME"))
}

// An argument that is far too long is refused as soon as its length arrives: the client need not
// send it, and it takes no memory.
func TestTooLongWordIsRefusedByItsLength(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	const want = "-ERR Protocol error: invalid bulk length: an argument of this command has at most 65536 bytes"
	for _, begin := range []string{
		strings.Replace(frame("RL.SLIDE", "key", "10", "1m", "ID", ""), "$0\r\n\r\n", "$419430400\r\n", 1),
		"*6\r\n$8\r\nrl.slide\r\n$419430400\r\n",
		"*5\r\n$9\r\nRL.POLICY\r\n$3\r\nSET\r\n$1114113\r\n",
	} {
		c := ts.dial()
		c.Write([]byte(begin))
		assert.Equal(t, want, strings.TrimSpace(c.read()), begin)
		c.requireClosed()
	}
	c := ts.dial()
	assert.Equal(t, "$-1", c.send("GET", strings.Repeat("k", 1114113)), "other keys may be as long as in Redis")
	assert.Contains(t, c.send("RL.TOKEN", strings.Repeat("k", 1<<20), "5", "5", "1s"), "key is too long")
}
