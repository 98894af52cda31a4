package resp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/config"
)

func TestTime(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ts.advance(1234)
	require.Equal(t, "*2 $10 1767225601 $6 234000", ts.dial().do("TIME"))
}

// TIME within a transaction is the time at which its other calls decide, however late it runs.
func TestTimeWithinATransaction(t *testing.T) {
	command.Table["test.sleep"] = &command.Command{Name: "test.sleep", Arity: 1, Run: func(c *command.Call) error {
		time.Sleep(250 * time.Millisecond)
		c.Reply.OK()
		return nil
	}}
	defer delete(command.Table, "test.sleep")
	inBubble(t, func(t *testing.T, b *bubble) {
		want := b.start.Unix() + 1
		b.passUntil(1000)
		b.calls("c", "MULTI\nTIME\nTEST.SLEEP\nTIME\nSET k v PX 500\nPEXPIRETIME k\nEXEC")
		b.passUntil(2000)
		now := fmt.Sprintf("*2 $9 %d $1 0", want)
		text := strings.Join(b.replies(), "\n")
		assert.Contains(t, text, fmt.Sprintf("%s +OK %s +OK :%d", now, now, want*1000+500))
	})
}
