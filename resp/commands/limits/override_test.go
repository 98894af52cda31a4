package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestOverrides(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range [][2]string{
		{"RL.POLICY SET api SLIDE 2 1m IP4 24", "+OK"},
		{"RL.POLICY SET api SLIDE 5 1h FOR ann", "+OK"},
		{"RL.POLICY SET api slide for 10.1.2.3 4 60", "+OK"}, // the network
		{"RL.POLICY GET api FOR ann", "$10 SLIDE 5 1h"},
		{"RL.POLICY GET api FOR 10.1.2.99:80", "$10 SLIDE 4 1m"},
		{"RL.POLICY GET api FOR bob", "$-1"},
		{"RL.POLICY GET api", "$17 SLIDE 2 1m IP4 24"},
		{"RL.CHECK ann api", "*6 :1 :5 :4 :0 :3600000 :0"},
		{"RL.CHECK bob api", "*6 :1 :2 :1 :0 :60000 :0"},
		{"RL.CHECK 10.1.2.77 api", "*6 :1 :4 :3 :0 :60000 :0"},
		{"RL.POLICY SET api SLIDE 1 1h FOR ann", "+OK"}, // what was used stays used
		{"RL.CHECK ann api", "*6 :0 :1 :0 :3600000 :3600000 :0"},
		{"RL.POLICY SET api SLIDE 3 1m IP4 24", "+OK"}, // the others' numbers
		{"RL.CHECK ann api", "*6 :0 :1 :0 :3600000 :3600000 :0"},
		{"RL.CHECK bob api", "*6 :1 :3 :1 :0 :60000 :0"},
		{"RL.POLICY DEL api FOR ann", ":1"},
		{"RL.POLICY DEL api FOR ann", ":0"},
		{"RL.CHECK ann api", "*6 :1 :3 :1 :0 :60000 :0"},
		{"FLUSHALL", "+OK"},
		{"RL.POLICY GET api FOR 10.1.2.0/24", "$10 SLIDE 4 1m"},
		{"RL.POLICY LIST FOR api", "*2 $1 0 *1 *2 $11 10.1.2.0/24 $10 SLIDE 4 1m"},
		// another algorithm
		{"RL.POLICY SET api TOKEN 5 1 1h IP4 24", "+OK, keys of the former algorithm dropped: 0, and overrides: 1"},
		{"RL.POLICY GET api FOR 10.1.2.3", "$-1"},
		{"RL.POLICY SET api TOKEN 9 1 1h FOR ann", "+OK"},
		{"RL.POLICY SET month FIXED 5 month TZ Europe/Berlin", "+OK"},
		{"RL.POLICY SET month FIXED 7 month TZ Asia/Tokyo FOR ann", "+OK"},
		{"RL.POLICY SET queue LEAKY 1 1s QUEUE 2", "+OK"},
		{"RL.POLICY SET queue LEAKY 1 1s QUEUE 5 FOR ann", "+OK"},
		{"RL.CHECK ann api month queue COST 0", "*6 :1 :6 :6 :0 :0 :2"},
		{"RL.CHECK ann month COST 0", "*6 :1 :7 :7 :0 :0 :0"},
		{"RL.POLICY GET month FOR ann", "$27 FIXED 7 month TZ Asia/Tokyo"},
		{"RL.POLICY DEL api", ":1"},
		{"RL.POLICY SET api TOKEN 5 1 1h", "+OK"},
		{"RL.POLICY GET api FOR ann", "$-1"},
		{"RL.CHECK ann api", "*6 :1 :5 :4 :0 :3600000 :0"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
	assert.Contains(t, c.Do("INFO memory"), "number_of_overrides:2\r\n")
	const other = "-ERR a policy has its BAN, IP4, IP6 and SHADOW for all ids: FOR takes other numbers of the same " +
		"algorithm"
	for call, want := range map[string]string{
		"RL.POLICY SET none SLIDE 5 1m FOR ann": "-ERR no such policy 'none'",
		"RL.POLICY GET none FOR ann":            "-ERR no such policy 'none'",
		"RL.POLICY DEL none FOR ann":            "-ERR no such policy 'none'",
		"RL.POLICY LIST FOR none":               "-ERR no such policy 'none'",
		"RL.POLICY SET api SLIDE 5 1m FOR ann": "-ERR policy 'api' is TOKEN: FOR takes other numbers of the " +
			"same algorithm",
		"RL.POLICY SET api TOKEN 5 1 1m SHADOW FOR ann": other,
		"RL.POLICY SET api TOKEN 5 1 1m FOR ann IP6 64": other,
		"RL.POLICY SET api TOKEN 5 0 1m FOR ann":        "-ERR refill must be from 1 to 9007199254740991",
		"RL.POLICY SET api TOKEN 5 1 1m FOR": "-ERR 'FOR' has no place there: a policy is TOKEN capacity refill " +
			"period [BAN denials for [max]] [IP4 bits] [IP6 bits] [SHADOW]",
		"RL.POLICY SET api TOKEN 5 1 1m FOR {}": "-ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }",
		"RL.POLICY GET api x":                   "-ERR syntax error",
		"RL.POLICY GET api FOR":                 "-ERR syntax error",
		"RL.POLICY DEL api x FOR y":             "-ERR FOR takes one policy: RL.POLICY name FOR id",
		"RL.POLICY LIST FOR api COUNT 0":        "-ERR COUNT must be from 1 to 9007199254740991",
		"RL.POLICY LIST FOR api CURSOR x":       "-ERR invalid cursor",
		"RL.POLICY LIST FOR api FROM 1":         "-ERR syntax error",
		"RL.POLICY LIST x":                      "-ERR syntax error",
	} {
		assert.Equal(t, want, c.Do(call), call)
	}
	assert.Equal(t, "$-1", c.Do("RL.POLICY GET api FOR ann"))
}

// A page is small, however many overrides there are, and the pages together have them all.
func TestOverridesAreListedInPages(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET api SLIDE 2 1m")
	c.Do("RL.POLICY SET other SLIDE 2 1m")
	const n = 1500
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf("RL.POLICY SET api SLIDE %d 1m FOR customer-%d", i+1, i))
		calls = append(calls, fmt.Sprintf("RL.POLICY SET other SLIDE %d 1m FOR customer-%d", i+1, i))
	}
	c.Pipe(calls...)
	for _, count := range []int{1, 37, 1000, 5000} {
		seen, cursor := make(map[string]bool), "0"
		for {
			page := c.Ask(fmt.Sprintf("RL.POLICY LIST FOR api CURSOR %s COUNT %d", cursor, count)).([]any)
			list := page[1].([]any)
			require.LessOrEqual(t, len(list), min(count, 1000)+20)
			for _, e := range list {
				entry := e.([]any)
				number := strings.TrimPrefix(entry[0].(string), "customer-")
				seen[number] = true
				want := ""
				fmt.Sscan(number, &want)
				require.Contains(t, entry[1], "SLIDE ")
			}
			if cursor = page[0].(string); cursor == "0" {
				break
			}
		}
		assert.Len(t, seen, n)
	}
}

// A change of FOR wakes the calls that wait.
func TestOverridesWakeThoseWhoWait(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET api SLIDE 1 1h")
	c.Do("RL.CHECK ann api")
	waiting := ts.Dial()
	_, err := waiting.Write([]byte("RL.CHECK ann api WAIT 2h\r\n"))
	require.NoError(t, err)
	ts.AwaitWaiting(1)
	c.Do("RL.POLICY SET api SLIDE 2 1h FOR ann")
	assert.Equal(t, "*6 :1 :2 :0 :0 :3600000 :0", strings.TrimSpace(waiting.Read()))
}
