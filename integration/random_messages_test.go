package integration

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTranscriptsOfRandomMessages has clients with RESP2 and RESP3 subscribe, publish and ask at
// random, 20,000 times, on a real redis-server too. It compares what each client gets.
func TestTranscriptsOfRandomMessages(t *testing.T) {
	if os.Getenv("TRANSCRIPT_LIVE") == "" {
		t.Skip("compares with a real redis-server: make live")
	}
	seed := randomSeed(t)
	r := rand.New(rand.NewPCG(seed, seed))
	const clients, steps = 6, 20_000
	redis, ours := newListeners(t, startRedis(t), clients), newListeners(t, startServer(t), clients)
	var latest []string
	for range steps {
		who, calls := r.IntN(clients), randomMessages(r)
		latest = append(latest, fmt.Sprint(who, "> ", strings.Join(calls, " | ")))
		latest = latest[max(0, len(latest)-30):]
		want := redis.call(who, calls, nil)
		got := ours.call(who, calls, want)
		for i := range want {
			same := withoutBarrier(got[i]) == withoutBarrier(want[i]) || inAnyOrder(got[i]) == inAnyOrder(want[i])
			require.True(t, same,
				"%s\nclient %d\nRedis: %q\nours:  %q", strings.Join(latest, "\n"), i, want[i], got[i])
		}
	}
}

// withoutBarrier returns what a connection gets but for the barrier, which may precede messages.
func withoutBarrier(text string) string {
	text = strings.Replace(text, "*2\r\n$4\r\npong\r\n$7\r\n"+barrier+"\r\n", "", 1)
	return strings.Replace(text, "$7\r\n"+barrier+"\r\n", "", 1)
}

// inAnyOrder sorts the words of replies: names are in no order in Redis, nor are the patterns that
// a message matches.
func inAnyOrder(text string) string {
	list := strings.Split(text, "\r\n")
	slices.Sort(list)
	return strings.Join(list, " ")
}

// randomMessages returns a call, or a transaction.
func randomMessages(r *rand.Rand) []string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	channel := func() string { return pick("a", "b", "ab", "news.x", "news.y", `"\x00\xff"`) }
	pattern := func() string { return pick("*", "a*", "?", "news.*", "[ab]", "a") }
	names := func(name func() string, least int) (text string) {
		for range least + r.IntN(3) {
			text += " " + name()
		}
		return text
	}
	publish := func() string { return "PUBLISH " + channel() + " " + pick(`""`, "1", "text") }
	switch r.IntN(20) {
	case 0, 1:
		return []string{"SUBSCRIBE" + names(channel, 1)}
	case 2, 3:
		return []string{"PSUBSCRIBE" + names(pattern, 1)}
	case 4:
		return []string{"SSUBSCRIBE" + names(channel, 1)}
	case 5:
		return []string{"UNSUBSCRIBE" + names(channel, 0)}
	case 6:
		return []string{"PUNSUBSCRIBE" + names(pattern, 0)}
	case 7:
		return []string{"SUNSUBSCRIBE" + names(channel, 0)}
	case 8:
		return []string{"SPUBLISH " + channel() + " " + pick("1", "text")}
	case 9:
		calls := []string{"CHANNELS", "CHANNELS a*", "NUMPAT", "SHARDCHANNELS", "CHANNELS [a", "NUMPAT x"}
		return []string{"PUBSUB " + pick(calls...)}
	case 10:
		return []string{"PUBSUB " + pick("NUMSUB", "SHARDNUMSUB") + names(channel, 0)}
	case 11:
		calls := []string{"SUBSCRIBE", "PUBLISH a", "PSUBSCRIBE", "SPUBLISH", "SSUBSCRIBE", "PUBSUB", "PUBSUB NOPE"}
		return []string{pick(calls...)}
	case 12:
		return []string{pick("PING", "PING x", "GET a", "ECHO x", "RESET")}
	case 13:
		return []string{"HELLO " + pick("2", "3", "3")}
	case 14:
		return []string{"MULTI", publish(), pick("PING", "SUBSCRIBE a", "UNSUBSCRIBE a"), publish(), "EXEC"}
	case 15:
		return []string{`EVAL "return redis.call('PUBLISH', 'a', 'script')" 0`}
	default:
		return []string{publish()}
	}
}

// listeners are connections to a server.
type listeners struct {
	t     *testing.T
	conns []net.Conn
}

func newListeners(t *testing.T, s *server, n int) *listeners {
	l := &listeners{t: t}
	for range n {
		conn, err := dial(s.addr)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		l.conns = append(l.conns, conn)
	}
	return l
}

// barrier ends what a connection gets of a call.
const barrier = "barrier"

func (l *listeners) send(who int, calls []string) {
	var request strings.Builder
	for _, call := range append(calls, "PING "+barrier) {
		words, err := splitArgs(call)
		require.NoError(l.t, err)
		request.WriteString(frame(words...))
	}
	_, err := io.WriteString(l.conns[who], request.String())
	require.NoError(l.t, err)
}

// call sends calls on a connection, and returns what all connections get. Redis has sent all of it
// when it answers the others; otherwise want is what it is to be, in another order.
func (l *listeners) call(who int, calls, want []string) []string {
	got := make([]string, len(l.conns))
	l.send(who, calls)
	got[who] = l.read(who, want)
	for i := range l.conns {
		if i != who {
			l.send(i, nil)
			got[i] = l.read(i, want)
		}
	}
	return got
}

// read reads until a connection has got the barrier and as much as is wanted.
func (l *listeners) read(who int, want []string) string {
	var got string
	l.conns[who].SetReadDeadline(time.Now().Add(patience))
	for !strings.Contains(got, barrier) || want != nil && len(steady([]byte(got))) < len(want[who]) {
		var buf [16 << 10]byte
		n, err := l.conns[who].Read(buf[:])
		if got += string(buf[:n]); err != nil {
			break
		}
	}
	return steady([]byte(got))
}
