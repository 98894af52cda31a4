package events_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/events"
	"rlserver/resp/resptest"
)

// A limiter has an event of class d for each call that is admitted, also if the call has waited.
func TestEventsOfLimiters(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c, e := ts.Dial(), ts.Dial()
	require.Equal(t, "+OK", c.Do("CONFIG SET notify-keyspace-events Kd"))
	require.Contains(t, e.Do("PSUBSCRIBE *"), "psubscribe")
	event := func(key, name string) {
		t.Helper()
		want := "*4 $8 pmessage $1 * $" + length("__keyspace@0__:"+key) + " __keyspace@0__:" + key + " $" +
			length(name) + " " + name + " "
		require.Equal(t, want, e.Read())
	}
	for _, call := range []string{"RL.SLIDE", "RL.TOKEN", "RL.FIXED", "RL.COUNTER", "RL.LEAKY"} {
		name := strings.ToLower(call)
		options := " 1 1m"
		if call == "RL.TOKEN" {
			options = " 1 1 1m"
		}
		require.Contains(t, c.Do(call+" "+name+options), "*", call)
		event(name, name)
		c.Do(call + " " + name + options) // denied: no event
	}
	c.Do("RL.LEASE lease 1 1m a")
	event("lease", "rl.lease")
	c.Do("RL.ALL x SLIDE 5 1m y TOKEN 5 5 1m")
	event("x", "rl.all")
	event("y", "rl.all")
	c.Do("RL.SLIDE gone 1 1m")
	event("gone", "rl.slide")
}

func length(text string) string { return strconv.Itoa(len(text)) }

// A call that has waited for its key has an event when it is admitted, and it is published once its
// change is kept.
func TestEventsOfCallsThatHaveWaited(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		c, e := b.Dial(), b.Dial()
		require.Equal(t, "+OK", c.Do("CONFIG SET notify-keyspace-events Ed"))
		require.Contains(t, e.Do("SUBSCRIBE __keyevent@0__:rl.slide"), "subscribe")
		c.Do("RL.SLIDE k 1 1s")
		assert.Contains(t, e.Read(), " k ")
		require.Contains(t, c.Do("RL.SLIDE k 1 1s WAIT 5s"), "*")
		assert.Contains(t, e.Read(), " k ")
	})
}

// A command that writes has an event of its own, unless it deletes, moves or expires whole keys.
func TestEveryCommandThatWritesHasAnEvent(t *testing.T) {
	whole := strings.Fields("del unlink expire pexpire expireat pexpireat persist getex getdel rename " +
		"renamenx copy move flushall flushdb swapdb function|flush function|delete function|restore function|load")
	words := make([][]byte, 10)
	for i := range words {
		words[i] = []byte("1")
	}
	for _, c := range command.Table.Sorted() {
		for _, c := range append(c.Subs, c) {
			if c.Flags&command.Write == 0 || slices.Contains(whole, c.FullName()) {
				continue
			}
			list := events.Name(c.FullName(), words, []change.Change{{Kind: effect.Insert, Key: "k"}})
			assert.NotEmpty(t, list[0].Event, c.FullName())
		}
	}
}
