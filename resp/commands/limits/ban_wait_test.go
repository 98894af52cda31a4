package limits_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/resptest"
)

// A call that waits for the end of a ban is admitted when the ban is lifted.
func TestUnbanWakesCallsThatWait(t *testing.T) {
	for _, lift := range []string{"RL.UNBAN ann login", "RL.UNBAN ann", "RL.RESET ann login"} {
		s := resptest.Start(t, nil)
		c, waiter := s.Dial(), s.Dial()
		c.Check([]resptest.Answer{
			{"RL.POLICY SET login TOKEN 2 2 1s BAN 1 10m", "+OK"},
			{"RL.CHECK ann login COST 2", "*6 :1 :2 :0 :0 :1000 :0"},
			{"RL.CHECK ann login", "*6 :0 :2 :0 :600000 :600000 :0"},
		})
		s.Advance(1000)
		reply := make(chan string, 1)
		go func() { reply <- waiter.Do("RL.CHECK ann login WAIT 20m") }()
		s.AwaitWaiting(1)
		c.Do(lift)
		assert.Contains(t, <-reply, "*6 :1 :2 :1 :0 ", lift)
	}
}

// Ids may be as long as a word of a name and hold anything but braces; others are refused by all
// commands that take ids.
func TestOddIDs(t *testing.T) {
	c := resptest.Start(t, nil).Dial()
	c.Do("RL.POLICY SET login SLIDE 1 1m BAN 1 10m")
	for _, id := range []string{strings.Repeat("x", 65536), "a:b", "::", "login:", "[::1", "\r\n\x00", "*"} {
		is := func(want string, words ...string) {
			t.Helper()
			assert.Equal(t, want, c.Send(words...), "%.20q", words)
		}
		is("*6 :1 :1 :0 :0 :60000 :0", "RL.CHECK", id, "login")
		is("*6 :0 :1 :0 :600000 :600000 :0", "RL.CHECK", id, "login")
		assert.Contains(t, c.Send("RL.USAGE", id), "$3 ban :600000")
		is(":1", "RL.UNBAN", id)
		is(":0", "RL.UNBAN", id, "login")
		is(":1", "RL.RESET", id)
		is(":0", "RL.RESET", id, "login")
	}
	for _, id := range []string{"", "{", "a}b"} {
		for _, command := range []string{"RL.CHECK", "RL.USAGE", "RL.UNBAN", "RL.RESET"} {
			got := c.Send(command, id, "login")
			assert.Equal(t, "-ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }", got, command)
		}
	}
}
