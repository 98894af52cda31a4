package pubsub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/wire"
)

// end is a connection that keeps what it gets.
type end struct{ got []byte }

func (e *end) PushShared(p []byte) (kept bool) {
	e.got = append(e.got, p...)
	return false
}
func (e *end) SetSubscribed(bool, int)   {}
func (e *end) Hold()                     {}
func (e *end) TakeHeld(to []byte) []byte { return to }

// A client that has the reply to a PUBLISH tells another one, which publishes too, before the first
// one has delivered its message: subscribers get the messages in the order of the calls.
func TestMessagesFollowTheRepliesThatTheirPublishersKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(&config.NewSettings(config.Defaults{}).PubSub)
		var subscriber, first, second Conn
		var to, other end
		subscriber.Init(h, &to)
		first.Init(h, &other)
		second.Init(h, &other)
		require.NoError(t, subscriber.Subscribe(Channels, [][]byte{[]byte("news")}, new(wire.Reply)))

		first.Publish([]byte("news"), []byte("one"))
		first.Order() // its reply is sent from here on
		second.Publish([]byte("news"), []byte("two"))
		second.Order()
		second.Sent()
		first.Sent()
		time.Sleep(time.Second)
		synctest.Wait()
		const head = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\n"
		assert.Equal(t, head+"one\r\n"+head+"two\r\n", string(to.got))
	})
}
