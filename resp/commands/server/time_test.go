package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestTime(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	ts.Advance(1234)
	require.Equal(t, "*2 $10 1767225601 $6 234000", ts.Dial().Do("TIME"))
}

// TIME within a transaction is the time at which its other calls decide, however late it runs.
func TestTimeWithinATransaction(t *testing.T) {
	command.Table["test.sleep"] = &command.Command{Name: "test.sleep", Arity: 1, Run: func(c *command.Call) error {
		time.Sleep(250 * time.Millisecond)
		c.Reply.OK()
		return nil
	}}
	defer delete(command.Table, "test.sleep")
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		want := b.Start.Unix() + 1
		b.PassUntil(1000)
		b.Calls("c", "MULTI\nTIME\nTEST.SLEEP\nTIME\nSET k v PX 500\nPEXPIRETIME k\nEXEC")
		b.PassUntil(2000)
		now := fmt.Sprintf("*2 $9 %d $1 0", want)
		text := strings.Join(b.Replies(), "\n")
		assert.Contains(t, text, fmt.Sprintf("%s +OK %s +OK :%d", now, now, want*1000+500))
	})
}
