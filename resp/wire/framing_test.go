package wire

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	noauth   = "-NOAUTH Authentication required.\r\n"
	unquoted = "-ERR Protocol error: unbalanced quotes in request\r\n"
	badArgs  = "-ERR Protocol error: invalid multibulk length\r\n"
	badBulk  = "-ERR Protocol error: invalid bulk length\r\n"
)

type framingCase struct {
	in     string
	reply  string
	closed bool // by the server
}

// framings are streams and the replies of Redis 7.0.15 to them, recorded on a connection that need
// not authenticate.
var framings = []framingCase{
	{"*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "$0\r\n\r\n", false},
	{"*3\r\n$4\r\nPING\r\n", "", false},

	// Empty commands.
	{"*0\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"*-1\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"*-10\r\nPING\r\n", "+PONG\r\n", false},
	{"*-9223372036854775808\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"\r\n\n\r\nPING\r\n", "+PONG\r\n", false},
	{"   \r\nPING\n", "+PONG\r\n", false},

	// Bytes that Redis skips without checking them.
	{"*2\r\n$4\r\nECHO\r\n$3\r\nabcXY*1\r\n$4\r\nPINGab", "$3\r\nabc\r\n+PONG\r\n", false},
	{"*2\rX$4\rYECHOab$3\rZabcXY", "$3\r\nabc\r\n", false},

	// The number of bulk strings.
	{"*+1\r\n", badArgs, true},
	{"*01\r\n", badArgs, true},
	{"* 1\r\n", badArgs, true},
	{"*1 \r\n", badArgs, true},
	{"*\r\n", badArgs, true},
	{"*-\r\n", badArgs, true},
	{"*-0\r\n", badArgs, true},
	{"*00\r\n", badArgs, true},
	{"*a\r\n", badArgs, true},
	{"*1048576\r\n", "", false},
	{"*1048577\r\n", "", false},
	{"*44739242\r\n", "", false},
	// The array of words alone would exceed client-query-buffer-limit. Redis waits for more input,
	// up to the next case.
	{"*44739243\r\n", badArgs, true},
	{"*2147483647\r\n", badArgs, true},
	{"*2147483648\r\n", badArgs, true},
	{"*9223372036854775807\r\n", badArgs, true},
	{"*9223372036854775808\r\n", badArgs, true},
	{"*-9223372036854775809\r\n", badArgs, true},
	{"*18446744073709551617\r\n", badArgs, true},

	// The length of a bulk string.
	{"*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n", true},
	{"*1\r\n4\r\n", "-ERR Protocol error: expected '$', got '4'\r\n", true},
	{"*1\r\n\r\n", "-ERR Protocol error: expected '$', got ' '\r\n", true},
	{"*1\r\n\n\r\n", "-ERR Protocol error: expected '$', got ' '\r\n", true},
	{"*1\r\n\xff\r\n", "-ERR Protocol error: expected '$', got '\xff'\r\n", true},
	{"*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'\r\n", true},
	{"*1\r\n$\r\n", badBulk, true},
	{"*1\r\n$-1\r\n", badBulk, true},
	{"*1\r\n$-0\r\n", badBulk, true},
	{"*1\r\n$+4\r\nPING\r\n", badBulk, true},
	{"*1\r\n$04\r\nPING\r\n", badBulk, true},
	{"*1\r\n$4 \r\nPING\r\n", badBulk, true},
	{"*1\r\n$a\r\n", badBulk, true},
	{"*1\r\n$536870912\r\n", "", false},
	{"*1\r\n$536870913\r\n", badBulk, true},
	{"*1\r\n$9223372036854775807\r\nabc\r\n", badBulk, true},
	{"*1\r\n$9223372036854775808\r\nabc\r\n", badBulk, true},

	// Incomplete lines.
	{"*1\n$4\nPING\n", "", false},
	{"*1\r", "", false},
	{"*1\r\nX", "", false},
	{"*1\x00\r\n", "", false},
	{"*\x001\r\n", "", false},
	{"PI\x00NG\r\nPING\r\n", "", false},
	{`ECHO "\`, "", false},

	// Inline commands.
	{"ECHO \"a b\"\r\n", "$3\r\na b\r\n", false},
	{"ECHO 'a b'\r\n", "$3\r\na b\r\n", false},
	{`ECHO "\n\r\t\b\a\\\"\x41\xfF\xg1\q"` + "\r\n", "$13\r\n\n\r\t\b\a\\\"A\xffxg1q\r\n", false},
	{`ECHO 'a\'b\n"'` + "\r\n", "$6\r\na'b\\n\"\r\n", false},
	{"ECHO a\"b c\"\r\n", "$4\r\nab c\r\n", false},
	{"ECHO a'b c'\r\n", "$4\r\nab c\r\n", false},
	{"ECHO \"\"\r\n", "$0\r\n\r\n", false},
	{"ECHO ''\r\n", "$0\r\n\r\n", false},
	{"ECHO\ta\vb\r\n", "$3\r\na\vb\r\n", false},
	{"\v\fECHO \v\fa\r\n", "$1\r\na\r\n", false},
	{"ECHO \"a\"\v\r\n", "$1\r\na\r\n", false},
	{"ECHO a\v\r\n", "$2\r\na\v\r\n", false},
	{"ECHO a\rb\r\n", "-ERR wrong number of arguments for 'echo' command\r\n", false},
	{"ECHO a\r\r\n", "$1\r\na\r\n", false},
	{`ECHO \x41` + "\r\n", "$4\r\n\\x41\r\n", false},
	{`ECHO "\x4"` + "\r\n", "$2\r\nx4\r\n", false},
	{"\"ECHO\" \"a\"\r\n", "$1\r\na\r\n", false},
	{"ECHO \xff\xfe\r\n", "$2\r\n\xff\xfe\r\n", false},
	{"\"\"\r\n", "-ERR unknown command '', with args beginning with: \r\n", false},
	{"ECHO \"abc\r\n", unquoted, true},
	{"ECHO 'abc\r\n", unquoted, true},
	{"ECHO \"abc\"d\r\n", unquoted, true},
	{"ECHO 'abc'd\r\n", unquoted, true},
	{"ECHO \"a\"\"b\"\r\n", unquoted, true},
	{`ECHO "a\"` + "\r\n", unquoted, true},
	{`ECHO "\` + "\r\n", unquoted, true},
	{`ECHO 'a\` + "\r\n", unquoted, true},
	{"ECHO k \"\" \"\r\n", unquoted, true},

	// Commands before an error get replies, those after it do not.
	{"*1\r\n$4\r\nPING\r\n*1\r\n$-5\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n" + badBulk, true},
	{"PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\nECHO \"x\r\nPING\r\n", "+PONG\r\n$1\r\nx\r\n" + unquoted, true},
}

// framingsBeforeAuth are streams on a connection that has not authenticated yet.
var framingsBeforeAuth = []framingCase{
	{"*1\r\n$4\r\nPING\r\n", noauth, false},
	{"PING\r\n", noauth, false},
	{"*10\r\n", "", false},
	{"*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n", true},
	{"*-11\r\n", "", false},
	{
		"*10\r\n$4\r\nECHO\r\n" + strings.Repeat("$1\r\nx\r\n", 9),
		"-ERR wrong number of arguments for 'echo' command\r\n",
		false,
	},
	{
		"*11\r\n$4\r\nECHO\r\n" + strings.Repeat("$1\r\nx\r\n", 10),
		"-ERR Protocol error: unauthenticated multibulk length\r\n",
		true,
	},
	{"*2147483647\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n", true},
	{"*2147483648\r\n", badArgs, true},
	{"*1\r\n$16384\r\n", "", false},
	{"*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n", true},
	{"*1\r\n$536870912\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n", true},
	{"*1\r\n$536870913\r\n", badBulk, true},
	{"ECHO x x x x x x x x x x x x \r\n", "-ERR wrong number of arguments for 'echo' command\r\n", false},
	{"*1\r\n$4\r\nPING\r\n*1\r\n$-5\r\n*1\r\n$4\r\nPING\r\n", noauth + badBulk, true},
	{"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*12\r\n$4\r\nECHO\r\n" + strings.Repeat("$1\r\nx\r\n", 11),
		"+OK\r\n-ERR wrong number of arguments for 'echo' command\r\n", false},
	{"*2\r\n$4\r\nAUTH\r\n$2\r\nno\r\n*12\r\n$4\r\nECHO\r\n" + strings.Repeat("$1\r\nx\r\n", 11),
		"-WRONGPASS invalid username-password pair or user is disabled.\r\n" +
			"-ERR Protocol error: unauthenticated multibulk length\r\n", true},
}

// longFramings are streams at the limit of 64 KB for a line.
var longFramings = []framingCase{
	{"*" + strings.Repeat("1", 70000), "-ERR Protocol error: too big mbulk count string\r\n", true},
	{"*1\x00\r\n" + strings.Repeat("a", 70000), "-ERR Protocol error: too big mbulk count string\r\n", true},
	{"*1\r\n$" + strings.Repeat("1", 70000), "-ERR Protocol error: too big bulk count string\r\n", true},
	{"*1\r\n" + strings.Repeat("1", 70000), "-ERR Protocol error: too big bulk count string\r\n", true},
	{"\x16\x03\x01\x02\x00", "-ERR Protocol error: " + string(errTLS) + "\r\n", true},
	{"PING\r\n\x16\x03", "+PONG\r\n-ERR Protocol error: " + string(errTLS) + "\r\n", true},
	{strings.Repeat("a", 70000), "-ERR Protocol error: too big inline request\r\n", true},
	{strings.Repeat("a", 65537), "-ERR Protocol error: too big inline request\r\n", true},
	{strings.Repeat("a", 65536), "", false},
	{strings.Repeat("a", 65536) + "\n", longUnknown, false},
	{strings.Repeat("a", 65535) + "\r\n", longUnknown, false},
	{"\x00" + strings.Repeat("PING\r\n", 12000), "-ERR Protocol error: too big inline request\r\n", true},
}

// longUnknown is the reply to an unknown command with a long name.
var longUnknown = "-ERR unknown command '" + strings.Repeat("a", 128) + "', with args beginning with: \r\n"

// requireFraming sends a stream in chunks, and compares the replies.
func requireFraming(t *testing.T, f framingCase, authenticated bool, chunks ...[]byte) {
	t.Helper()
	got, err := askGuarded(authenticated, chunks...)
	require.NoError(t, err, "%.99q", f.in)
	require.Equal(
		t,
		guardedStream{f.reply, f.closed},
		got,
		"%.99q in %d chunks, the first of %d bytes",
		f.in,
		len(chunks),
		len(chunks[0]),
	)
}

func oneByOne(s string) (chunks [][]byte) {
	for i := range len(s) {
		chunks = append(chunks, []byte{s[i]})
	}
	return chunks
}

func TestGuardFramings(t *testing.T) {
	for _, f := range framings {
		requireFraming(t, f, true, []byte(f.in))
		requireFraming(t, f, true, oneByOne(f.in)...)
		for at := range len(f.in) {
			requireFraming(t, f, true, []byte(f.in[:at]), []byte(f.in[at:]))
		}
	}
}

func TestGuardFramingsBeforeAuth(t *testing.T) {
	for _, f := range framingsBeforeAuth {
		requireFraming(t, f, false, []byte(f.in))
		requireFraming(t, f, false, oneByOne(f.in)...)
		for at := range len(f.in) {
			requireFraming(t, f, false, []byte(f.in[:at]), []byte(f.in[at:]))
		}
	}
}

func TestGuardLongFramings(t *testing.T) {
	for _, f := range longFramings {
		requireFraming(t, f, true, []byte(f.in))
		requireFraming(t, f, true, slices.Collect(slices.Chunk([]byte(f.in), 7))...)
		for range 5 {
			at := rand.IntN(len(f.in))
			requireFraming(t, f, true, []byte(f.in[:at]), []byte(f.in[at:]))
		}
	}
}
