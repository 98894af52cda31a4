package integration

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTranscriptsOfRandomElements sends 100,000 random calls on lists and sets to a real
// redis-server too, and compares the replies, and the digests of all keys.
func TestTranscriptsOfRandomElements(t *testing.T) {
	if os.Getenv("TRANSCRIPT_LIVE") == "" {
		t.Skip("compares with a real redis-server: make live")
	}
	seed := randomSeed(t)
	calls := &randomCalls{Rand: rand.New(rand.NewPCG(seed, seed))}
	debug := []string{"--enable-debug-command", "yes"}
	redis, ours := newBatches(t, startRedis(t, debug...)), newBatches(t, startServer(t, debug...))
	for range 1000 {
		batch := []string{"DEBUG DIGEST"}
		for range 100 {
			batch = append(batch, calls.next())
		}
		want, got := redis.send(batch), ours.send(batch)
		for i := range want {
			require.True(t, want[i] == got[i], "Redis: %.500s\nours: %.500s", want[i], got[i])
		}
	}
}

// randomSeed returns TRANSCRIPT_SEED, 1 if it is not set: a run in CI repeats what passed before.
func randomSeed(t *testing.T) uint64 {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("TRANSCRIPT_SEED"), "1"), 10, 64)
	require.NoError(t, err, "TRANSCRIPT_SEED must be an unsigned 64-bit integer")
	t.Log("seed", seed)
	return seed
}

// batches sends pipelines of calls.
type batches struct {
	t   *testing.T
	out io.Writer
	in  *bufio.Reader
}

func newBatches(t *testing.T, s *server) *batches {
	conn, err := dial(s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &batches{t, conn, bufio.NewReader(conn)}
}

// unordered has the commands whose replies have no order.
var unordered = []string{"SMEMBERS", "SINTER", "SUNION", "SDIFF", "SPOP", "SRANDMEMBER", "SSCAN"}

// send returns each call with its reply, as text.
func (b *batches) send(calls []string) (lines []string) {
	var list [][]string
	for _, call := range calls {
		list = append(list, strings.Split(call, " "))
	}
	return b.sendWords(list)
}

func (b *batches) sendWords(calls [][]string) (lines []string) {
	var request strings.Builder
	for _, words := range calls {
		request.WriteString(frame(words...))
	}
	_, err := io.WriteString(b.out, request.String())
	require.NoError(b.t, err)
	for _, words := range calls {
		call := strings.Join(words, " ")
		r, err := readReply(b.in)
		require.NoError(b.t, err, call)
		reply := r.lines("")
		name, rest, _ := strings.Cut(call, " ")
		if slices.Contains(unordered, name) || strings.HasSuffix(rest, " nosort") {
			slices.Sort(reply)
		}
		lines = append(lines, call+"\n"+strings.Join(reply, "\n"))
	}
	return lines
}

// randomCalls makes calls on few keys, most of which are lists or sets.
type randomCalls struct{ *rand.Rand }

func (r *randomCalls) pick(of string) string {
	words := strings.Fields(of)
	return words[r.IntN(len(words))]
}

// word replaces the words of a pattern that stand for something random.
func (r *randomCalls) word(w string) string {
	switch w {
	case "LIST":
		return r.pick("l1 l2 l3 l4 l5 l6 s1 z missing")
	case "SET":
		return r.pick("s1 s2 s3 s4 s5 s6 l1 z missing")
	case "ANY":
		return r.pick("l1 l2 l3 s1 s2 s3 z missing")
	case "ELEMENT":
		return r.pick(fmt.Sprint("a b c 1 2 3 -4 999999 ", r.IntN(1000), " e", r.IntN(100), " 1.5 0 00 ",
			strings.Repeat("x", r.IntN(100)), " ", strings.Repeat("long", r.IntN(3000)/1000*500)))
	case "ELEMENTS":
		elements := []string{r.word("ELEMENT")}
		for range r.IntN(8) {
			elements = append(elements, r.word("ELEMENT"))
		}
		return strings.Join(elements, " ")
	case "KEYS":
		keys := []string{r.word("SET")}
		for range r.IntN(4) {
			keys = append(keys, r.word("SET"))
		}
		return strings.Join(keys, " ")
	case "INDEX":
		return r.pick(fmt.Sprint("0 1 -1 2 -2 9999999999 x -9223372036854775808 ", r.IntN(60)-30, " ", r.IntN(60)-30))
	case "NTH":
		return r.pick(fmt.Sprint("0 1 -1 2 -2 9999999999 x ", r.IntN(60)-30, " ", r.IntN(60)-30))
	case "COUNT":
		return r.pick(fmt.Sprint("0 1 2 3 -1 1000 x ", r.IntN(10), " ", r.IntN(10)))
	case "END":
		return r.pick("LEFT RIGHT LEFT RIGHT left UP")
	}
	return w
}

// patterns has the calls; more of those that add elements.
var patterns = []string{
	"LPUSH LIST ELEMENTS", "RPUSH LIST ELEMENTS", "LPUSH LIST ELEMENTS", "RPUSH LIST ELEMENTS",
	"LPUSHX LIST ELEMENTS", "RPUSHX LIST ELEMENT", "LPOP LIST", "RPOP LIST", "LPOP LIST COUNT",
	"RPOP LIST COUNT", "LLEN LIST", "LRANGE LIST INDEX INDEX", "LINDEX LIST INDEX", "LSET LIST INDEX ELEMENT",
	"LTRIM LIST INDEX INDEX", "LREM LIST INDEX ELEMENT", "LINSERT LIST BEFORE ELEMENT ELEMENT",
	"LINSERT LIST AFTER ELEMENT ELEMENT", "LPOS LIST ELEMENT", "LPOS LIST ELEMENT RANK NTH",
	"LPOS LIST ELEMENT COUNT COUNT", "LPOS LIST ELEMENT RANK NTH COUNT COUNT MAXLEN COUNT",
	"LMOVE LIST LIST END END", "RPOPLPUSH LIST LIST", "LMPOP 1 LIST END", "LMPOP 2 LIST LIST END COUNT COUNT",
	"SADD SET ELEMENTS", "SADD SET ELEMENTS", "SADD SET ELEMENTS", "SADD SET ELEMENTS",
	"SREM SET ELEMENTS", "SREM SET ELEMENT", "SMEMBERS SET", "SISMEMBER SET ELEMENT", "SMISMEMBER SET ELEMENTS",
	"SCARD SET", "SPOP SET 100000", "SPOP SET 0", "SRANDMEMBER SET 100000", "SMOVE SET SET ELEMENT", "SINTER KEYS",
	"SUNION KEYS", "SDIFF KEYS", "SINTERSTORE KEYS SET", "SUNIONSTORE KEYS SET", "SDIFFSTORE KEYS SET",
	"SINTERCARD 2 SET SET", "SINTERCARD 1 SET LIMIT COUNT", "SINTERCARD COUNT KEYS", "SSCAN SET 0 COUNT 100000",
	"SSCAN SET 0 MATCH e* COUNT 100000", "TYPE ANY", "EXISTS ANY", "DEL ANY", "RENAME ANY ANY", "COPY ANY ANY REPLACE",
	"SORT SET ALPHA LIMIT 0 5", "SORT LIST ALPHA DESC STORE LIST", "SORT SET ALPHA STORE LIST", "SORT LIST BY nosort",
	"ZADD z 1 a 2 b 3 1", "ZUNIONSTORE z 2 SET SET", "ZINTERSTORE z 2 z SET WEIGHTS 2 3", "DEL z",
	"DEBUG DIGEST-VALUE LIST SET", "EXPIRE ANY 1000", "PERSIST ANY",
}

func (r *randomCalls) next() string {
	words := strings.Fields(patterns[r.IntN(len(patterns))])
	for i, w := range words {
		option := w == "COUNT" && i > 2 && !slices.Contains([]string{"COUNT", "MAXLEN", "LIMIT"}, words[i-1])
		if i > 0 && !option {
			words[i] = r.word(w)
		}
	}
	return strings.Join(words, " ")
}
