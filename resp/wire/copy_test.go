package wire

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCopyReplyCopiesOneReplyOfAnyKind(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n",
		"-ERR " + strings.Repeat("x", 10000) + "\r\n", ":1\r\n", "$-1\r\n", "$0\r\n\r\n", "$2\r\n\r\n\r\n",
		"$100000\r\n" + strings.Repeat("y", 100000) + "\r\n", "*0\r\n", "*-1\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
		"_\r\n", "#t\r\n", ",1.5\r\n", "(12345678901234567890\r\n", "=5\r\ntxt:x\r\n",
		"~1\r\n+a\r\n", "%1\r\n+a\r\n:1\r\n",
		"|1\r\n+ttl\r\n:1\r\n*1\r\n:2\r\n", "!3\r\nERR\r\n",
	} {
		r, from := Reply{B: []byte("before")}, bufio.NewReader(strings.NewReader(reply+"+next\r\n"))
		require.NoError(t, CopyReply(&r, from), "%.40q", reply)
		assert.Equal(t, "before"+reply, string(r.B))
		next, _ := from.ReadString('\n')
		assert.Equal(t, "+next\r\n", next, "%.40q", reply)
		for cut := range min(len(reply), 50) {
			assert.Error(
				t,
				CopyReply(new(Reply), bufio.NewReader(strings.NewReader(reply[:cut]))),
				"%.40q",
				reply[:cut],
			)
		}
	}
	for _, other := range []string{
		"GET / HTTP/1.0\r\n", "$x\r\n", "*-2\r\n", "\r\n", "$18446744073709551616\r\n", "\x00\r\n",
	} {
		assert.Error(t, CopyReply(new(Reply), bufio.NewReader(strings.NewReader(other))), "%q", other)
	}
}

// atMost limits replies to a number of bytes.
type atMost int

func (most atMost) MayReply(size, _ int) int {
	if size > int(most) {
		return 0
	}
	return size + 1
}

func TestCopyReplyReadsATruncatedReplyToItsEnd(t *testing.T) {
	r := Reply{Limiter: atMost(1000)}
	long := "$5000\r\n" + strings.Repeat("y", 5000) + "\r\n"
	from := bufio.NewReader(strings.NewReader("*2\r\n" + long + long + "+next\r\n"))
	require.NoError(t, CopyReply(&r, from))
	assert.True(t, r.Truncated)
	assert.LessOrEqual(t, len(r.B), 1000)
	next, _ := from.ReadString('\n')
	assert.Equal(t, "+next\r\n", next)
}
