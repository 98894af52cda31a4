package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused lists streams by the protocol error that the server replies before it closes the
// connection.
var refused = []struct {
	why     string
	streams []string
}{
	{"invalid bulk length", []string{
		// crashes a parser that adds to the length without an overflow check
		"*1\r\n$9223372036854775807\r\nabc\r\n",
		"*1\r\n$9223372036854775808\r\nabc\r\n", "*1\r\n$18446744073709551617\r\n", "*1\r\n$536870913\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$-0\r\n", "*1\r\n$-9223372036854775808\r\n", "*1\r\n$\r\n", "*1\r\n$a\r\n",
		"*1\r\n$+4\r\nPING\r\n",
		"*1\r\n$04\r\nPING\r\n", "*1\r\n$4 \r\nPING\r\n", "*2\r\n$4\r\nPING\r\n$9223372036854775807\r\n",
	}},
	{"invalid multibulk length", []string{
		"*2147483647\r\n", "*2147483648\r\n", "*9223372036854775807\r\n", "*9223372036854775808\r\n",
		"*-9223372036854775809\r\n",
		"*18446744073709551617\r\n", "*+1\r\n", "*01\r\n", "*00\r\n", "* 1\r\n", "*1 \r\n", "*\r\n", "*-\r\n",
		"*-0\r\n", "*a\r\n",
	}},
	{"expected '$', got 'P'", []string{"*1\r\nPING\r\n"}},
	{"expected '$', got '4'", []string{"*1\r\n4\r\n"}},
	{"expected '$', got ' '", []string{"*1\r\n\r\n", "*1\r\n\n\r\n"}},
	{"expected '$', got '\xff'", []string{"*1\r\n\xff\r\n"}},
	{"expected '$', got '*'", []string{"*1\r\n*1\r\n$4\r\nPING\r\n"}},
	{"expected '$', got ':'", []string{"*1\r\n:4\r\n"}},
	{"unbalanced quotes in request", []string{
		"ECHO \"abc\r\n", "ECHO 'abc\r\n", "ECHO \"abc\"d\r\n", "ECHO 'abc'd\r\n", "ECHO \"a\"\"b\"\r\n",
		"ECHO \"a\\\"\r\n", "ECHO \"\\\r\n",
		"ECHO 'a\\\r\n", "ECHO k \"\" \"\r\n",
	}},
	{
		"too big mbulk count string",
		[]string{"*" + strings.Repeat("1", 65537), "*1\x00\r\n" + strings.Repeat("a", 70_000)},
	},
	{
		"too big bulk count string",
		[]string{"*1\r\n$" + strings.Repeat("1", 65537), "*1\r\n" + strings.Repeat("1", 70_000)},
	},
	{
		"too big inline request",
		[]string{strings.Repeat("a", 65537), strings.Repeat("a", 1<<20), "\x00" + strings.Repeat("PING\r\n", 12_000)},
	},
}

// refusedBeforeAuth lists streams for clients that have not authenticated.
var refusedBeforeAuth = []struct {
	why     string
	streams []string
}{
	{"unauthenticated multibulk length", []string{"*11\r\n", "*1048576\r\n"}},
	{
		"unauthenticated bulk length",
		[]string{"*1\r\n$16385\r\n", "*1\r\n$536870912\r\n", "*2\r\n$4\r\nAUTH\r\n$16385\r\n"},
	},
	{"invalid bulk length", []string{"*1\r\n$9223372036854775807\r\nabc\r\n", "*1\r\n$536870913\r\n"}},
	{"invalid multibulk length", []string{"*2147483648\r\n"}},
	{"too big inline request", []string{strings.Repeat("a", 65537)}},
}

// accepted lists unusual or incomplete streams, and the replies to their complete commands. The
// server does not close the connection before the client does.
var accepted = []struct{ stream, replies string }{
	{"", ""},
	{"*0\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n"},
	{"*-1\r\n*-10\r\nPING\r\n", "+PONG\r\n"},
	{"*-9223372036854775808\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n"},
	{"\r\n\n\r\n   \r\nPING\n", "+PONG\r\n"},
	{"*2\r\n$4\r\nECHO\r\n$3\r\nabcXY*1\r\n$4\r\nPINGab", "$3\r\nabc\r\n+PONG\r\n"},
	{"*1\r\n$4\r\nPING\r\n*1048576\r\n", "+PONG\r\n"},
	{"*1\r\n$4\r\nPING\r\n*1048577\r\n", "+PONG\r\n"},
	{"*1\r\n$4\r\nPING\r\n*1\r\n$536870912\r\nabc", "+PONG\r\n"},
	{"*3\r\n$4\r\nPING\r\n", ""},
	{"*1\n$4\nPING\n", ""},
	{"*1\r", ""},
	{"*1\r\nX", ""},
	{"*1\x00\r\n", ""},
	{"*\x001\r\n", ""},
	{"PI\x00NG\r\nPING\r\n", ""},
	{`ECHO "\`, ""},
	{"ECHO \"a b\"\r\nECHO 'c d'\r\n", "$3\r\na b\r\n$3\r\nc d\r\n"},
	{`ECHO "\n\x41\\\""` + "\r\n", "$4\r\n\nA\\\"\r\n"},
	{"ECHO \"\"\r\nECHO ''\r\n", "$0\r\n\r\n$0\r\n\r\n"},
	{"ECHO\ta\vb\r\n", "$3\r\na\vb\r\n"},
	{"ECHO \xff\xfe\r\n", "$2\r\n\xff\xfe\r\n"},
	{"\"\"\r\n", "-ERR unknown command '', with args beginning with: \r\n"},
	{"*1\r\n$0\r\n\r\n", "-ERR unknown command '', with args beginning with: \r\n"},
	{strings.Repeat("a", 65536), ""},
	{
		strings.Repeat("a", 65535) + "\r\n",
		"-ERR unknown command '" + strings.Repeat("a", 128) + "', with args beginning with: \r\n",
	},
}

// For each malformed stream the server returns an error, closes that connection, and answers the
// next one as usual.
func TestBadFramingClosesItsConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, group := range refused {
		for _, stream := range group.streams {
			want := "-ERR Protocol error: " + group.why + "\r\n"
			require.Equal(t, want, exchange(t, s, stream, false), "%.99q", stream)
			require.Equal(t, "+PONG\r\n+OK\r\n"+want, exchange(t, s, "PING\r\n"+frame("SET", "k", "v")+stream, false),
				"PING, SET and %.99q", stream)
			require.Equal(t, "+PONG\r\n", exchange(t, s, "PING\r\n", true), "after %.99q", stream)
		}
	}
	for _, c := range accepted {
		require.Equal(t, c.replies, exchange(t, s, c.stream, true), "%.99q", c.stream)
		require.Equal(t, "+PONG\r\n", exchange(t, s, "PING\r\n", true), "after %.99q", c.stream)
	}
	assert.Equal(t, strconv.Itoa(s.pid), infoField(t, s, "process_id"), "the server has not been restarted")
}

// Before authentication the limits on requests are lower.
func TestBadFramingBeforeAuth(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--requirepass", "sesame")
	for _, group := range refusedBeforeAuth {
		for _, stream := range group.streams {
			require.Equal(t, "-ERR Protocol error: "+group.why+"\r\n", exchange(t, s, stream, false), "%.99q", stream)
			require.Equal(t, "-NOAUTH Authentication required.\r\n", exchange(t, s, "PING\r\n", true), "after %.99q",
				stream)
		}
	}
	large := strings.Repeat("x", 20_000)
	echo, reply := frame("ECHO", large), fmt.Sprintf("$%d\r\n%s\r\n", len(large), large)
	assert.Equal(t, "-ERR Protocol error: unauthenticated bulk length\r\n", exchange(t, s, echo, false))
	assert.Equal(t, "+OK\r\n"+reply, exchange(t, s, frame("AUTH", "sesame")+echo, true))
}

// exchange sends a stream on a new connection and returns all replies. With hangUp it closes its
// sending side; without, the server must close the connection.
func exchange(t *testing.T, s *server, stream string, hangUp bool) string {
	t.Helper()
	conn, err := dial(s.addr)
	require.NoError(t, err)
	defer conn.Close()
	// an error is allowed: the server need not read all of a stream that it refuses
	if _, err = io.WriteString(conn, stream); hangUp {
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	}
	replies, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server does not close the connection: %.99q", stream)
	return string(replies)
}

// infoField returns a field of INFO, or "" if it is missing.
func infoField(t *testing.T, s *server, name string) string {
	t.Helper()
	for line := range strings.Lines(s.connect(t).Info(t.Context()).Val()) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// The commands of a long pipeline before a malformed one are answered.
func TestPipelineBeforeBadFraming(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const calls = 1000
	conn, err := dial(s.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, strings.Repeat(frame("INCR", "n"), calls)+"*1\r\n$x\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	for n := range calls {
		r, err := readReply(in)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(n+1), r.text)
	}
	r, err := readReply(in)
	require.NoError(t, err)
	assert.Equal(t, "-ERR Protocol error: invalid bulk length", r.String())
	_, err = in.ReadByte()
	assert.Equal(t, io.EOF, err)
}

// Frames are damaged and split at random: all replies are complete, and the server stays up.
func TestDamagedFrames(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const senders, frames = 8, 250
	var wg sync.WaitGroup
	for sender := range uint64(senders) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, sender))
			for sent := 0; sent < frames; {
				batch := 1 + random.IntN(20)
				sendDamaged(t, s, random, batch)
				sent += batch
			}
		})
	}
	wg.Wait()
	assert.Equal(t, "+PONG\r\n", exchange(t, s, "PING\r\n", true))
	assert.Equal(t, strconv.Itoa(s.pid), infoField(t, s, "process_id"))
}

// sendDamaged sends a batch of frames over one connection, in pieces, with some of them damaged,
// and reads the replies.
func sendDamaged(t *testing.T, s *server, random *rand.Rand, batch int) {
	var stream []byte
	for range batch {
		line := someCommands[random.IntN(len(someCommands))]
		whole := []byte(line + "\r\n")
		if random.IntN(4) > 0 {
			whole = []byte(frame(strings.Fields(line)...))
		}
		if random.IntN(3) == 0 {
			whole = damage(random, whole)
		}
		stream = append(stream, whole...)
	}
	var pieces [][]byte
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), 1+random.IntN(40))
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}

	conn, err := dial(s.addr)
	if !assert.NoError(t, err) {
		return
	}
	defer conn.Close()
	go func() {
		for _, piece := range pieces {
			_, _ = conn.Write(piece) // fails if the server has closed the connection
		}
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	for in := bufio.NewReader(conn); ; {
		_, err := readReply(in)
		var broken *net.OpError
		if err == io.EOF || errors.As(err, &broken) && !broken.Timeout() {
			return
		}
		if !assert.NoError(t, err, "%q", stream) {
			return
		}
	}
}

// someCommands are the commands that sendDamaged damages.
var someCommands = []string{
	"PING", "ECHO hello", "SET k v", "GET k", "INCR n", "MGET k n none", "HSET h f v", "HGETALL h",
	"ZADD z 1 a 2 b", "ZRANGE z 0 -1 WITHSCORES",
	"RL.SLIDE s 5 1m", "RL.TOKEN t 5 1 1m COST 2", "RL.MULTI m 1 1m 5 1h", "RL.FIXED f 5 day", "HELLO 3", "HELLO 2",
	"SELECT 1", "RESET", "NONSENSE",
}

// badNumbers replace lengths.
var badNumbers = []string{
	"-1", "0", "00", "-0", "+1", "1x", "", "16385", "65536", "1048576", "1048577", "536870912", "536870913",
	"2147483647", "2147483648", "4294967296",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
	"99999999999999999999",
}

// noiseBytes are bytes with and without a meaning in the protocol.
const noiseBytes = "*$+-:\r\n\x00\"'0129 \xff"

// damage changes a frame in one of several ways.
func damage(random *rand.Rand, whole []byte) []byte {
	at := random.IntN(len(whole))
	switch random.IntN(6) {
	case 0: // one byte changed
		whole[at] = byte(random.IntN(256))
		return whole
	case 1: // cut off
		return whole[:at]
	case 2: // a part removed
		return slices.Delete(whole, at, at+random.IntN(len(whole)-at))
	case 3: // a part repeated
		return slices.Insert(whole, at, whole[at:]...)
	case 4: // random bytes
		noise := make([]byte, 1+random.IntN(20))
		for i := range noise {
			noise[i] = noiseBytes[random.IntN(len(noiseBytes))]
		}
		return slices.Insert(whole, at, noise...)
	}
	// a length replaced
	lines := bytes.SplitAfter(whole, []byte("\r\n"))
	i := random.IntN(len(lines))
	if len(lines[i]) > 0 {
		lines[i] = []byte(string(lines[i][:1]) + badNumbers[random.IntN(len(badNumbers))] + "\r\n")
	}
	return bytes.Join(lines, nil)
}
