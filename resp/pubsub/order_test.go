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
type end struct {
	got    []byte
	writes int
}

func (e *end) PushShared(p []byte) (kept bool) {
	e.writes++
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

// While two clients publish all the time, many messages share a write to each of many subscribers.
func TestTheMoreSubscribersTheMoreMessagesGather(t *testing.T) {
	const messages, subscribers = 100, 50
	for count, most := range map[int]int{1: messages / 2, subscribers: messages / 10} {
		synctest.Test(t, func(t *testing.T) {
			h := New(&config.NewSettings(config.Defaults{}).PubSub)
			ends := make([]end, count)
			for i := range ends {
				var c Conn
				c.Init(h, &ends[i])
				require.NoError(t, c.Subscribe(Channels, [][]byte{[]byte("news")}, new(wire.Reply)))
			}
			var first, second Conn
			first.Init(h, new(end))
			second.Init(h, new(end))
			first.Publish([]byte("news"), []byte("0"))
			first.Order() // it delivers: what the other one publishes waits
			for i := range messages {
				second.Publish([]byte("news"), []byte{byte(i)})
				second.Order()
				second.Sent()
				if i == 0 {
					first.Sent()
				}
				time.Sleep(100 * time.Microsecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			for i := range ends {
				assert.Less(t, ends[i].writes, most+5, "%d subscribers", count)
				assert.Len(t, ends[i].got, (messages+1)*len("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\n0\r\n"))
			}
		})
	}
}
