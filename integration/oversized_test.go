package integration

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// oversized makes random calls whose replies exceed the output limits of their clients.
type oversized struct {
	*rand.Rand
	addr string
}

// oversizedCalls have replies of every size. K stands for a random key of its type, % for a number.
var oversizedCalls = strings.Split("GET big|GET big|GET big|HGETALL many|ZRANGE long 0 -1 WITHSCORES|INCR nK|"+
	"INCRBY nK %|DECRBY nK %|INCREX nK BYINT %|INCREX xK BYFLOAT %.5|INCRBYFLOAT fK %.25|HINCRBY hK a %|"+
	"HINCRBYFLOAT hK b %.5|APPEND sK %|SETRANGE sK 3 %|SETBIT bK % 1|BITFIELD wK INCRBY u16 #1 %|GETSET gK %|"+
	"ZINCRBY zK % m|ZADD zK % %|ZPOPMIN zK|ZRANGESTORE yK zK 0 -1|HSET hK % %|HDEL hK %|COPY nK cK REPLACE|"+
	"RENAME gK gK|SET sK % GET|RL.SLIDE rK 100 1h ID %|RL.SLIDE lK 100 1h|RL.TOKEN tK 100 1 1h|RL.LEASE eK 9 1h %|"+
	"RL.COUNTER oK 100 1h|SORT zK STORE kK ALPHA|LCS big sK|DEL cK", "|")

// batch writes some calls at once, on a connection of its own, and reads until the server closes
// it.
func (o oversized) batch(t *testing.T) {
	conn, err := net.Dial("tcp", o.addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	var b strings.Builder
	if o.IntN(2) == 0 {
		b.WriteString("HELLO 3\r\n")
	}
	transaction := o.IntN(2) == 0
	if transaction {
		b.WriteString("MULTI\r\n")
	}
	for range 1 + o.IntN(12) {
		words := strings.Fields(oversizedCalls[o.IntN(len(oversizedCalls))])
		for i, word := range words {
			word = strings.ReplaceAll(word, "%", fmt.Sprint(1+o.IntN(1200)))
			if name, isKey := strings.CutSuffix(word, "K"); isKey {
				word = fmt.Sprint(name, o.IntN(3))
			}
			words[i] = word
		}
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	if transaction {
		b.WriteString("EXEC\r\n")
	}
	b.WriteString("QUIT\r\n")
	_, err = io.WriteString(conn, b.String())
	require.NoError(t, err)
	io.Copy(io.Discard, conn)
}

// fill makes the keys whose replies are too large.
func (o oversized) fill(t *testing.T, do func(args ...any) error) {
	require.NoError(t, do("SET", "big", strings.Repeat("x", 1<<20)))
	many, long := []any{"HSET", "many"}, []any{"ZADD", "long"}
	for i := range 3000 {
		many = append(many, fmt.Sprint("field", i), strings.Repeat("v", 20))
		long = append(long, i, fmt.Sprint("member", i))
	}
	require.NoError(t, do(many...))
	require.NoError(t, do(long...))
}

// Whatever replies are cut off at the output limits of their clients, the log has what the memory
// had.
func TestOversizedRepliesDoNotReachTheLog(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	o := oversized{Rand: rand.New(rand.NewPCG(seed, 0))}
	dir := t.TempDir()
	digest := ""
	for range 3 {
		s := startServer(t, "--dir", dir, "--appendfsync", "always")
		client := s.connect(t)
		if o.addr = s.addr; digest == "" {
			o.fill(t, func(args ...any) error { return client.Do(t.Context(), args...).Err() })
		} else {
			require.Equal(t, digest, client.Do(t.Context(), "DEBUG", "DIGEST").Val(), "after the kill")
		}
		for _, limits := range []string{"0 0 0", "64kb 32kb 60", "512kb 16kb 1", "2kb 0 0", "0 1kb 1"} {
			require.NoError(t, client.ConfigSet(t.Context(), "client-output-buffer-limit", "normal "+limits).Err())
			for range 12 {
				o.batch(t)
			}
		}
		require.NoError(t, client.ConfigSet(t.Context(), "client-output-buffer-limit", "normal 0 0 0").Err())
		digest = client.Do(t.Context(), "DEBUG", "DIGEST").Val().(string)
		s.kill(t)
	}
}
