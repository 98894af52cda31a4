package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// scriptedConn is a socket whose peer has sent chunks, one for each read, and
// then no more. A chunk larger than what it is read into takes several reads.
type scriptedConn struct {
	net.Conn
	chunks [][]byte
	sent   bytes.Buffer
	writes int
	reads  int
	onRead func() // called before each read
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if c.onRead != nil {
		c.onRead()
	}
	for len(c.chunks) > 0 && len(c.chunks[0]) == 0 {
		c.chunks = c.chunks[1:]
	}
	if len(c.chunks) == 0 {
		return 0, io.EOF
	}
	c.reads++
	n := copy(p, c.chunks[0])
	c.chunks[0] = c.chunks[0][n:]
	return n, nil
}

func (c *scriptedConn) Write(p []byte) (int, error) {
	c.writes++
	return c.sent.Write(p)
}

func (c *scriptedConn) Close() error                     { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// guardPassword authenticates with the server that answerGuarded plays.
const guardPassword = "pw"

// answerGuarded replies to a command as Redis does, as far as the tests of
// framing need it.
func answerGuarded(reply []byte, g *guard, args [][]byte) []byte {
	name := strings.ToUpper(string(args[0]))
	if len(args) != map[string]int{"PING": 1, "ECHO": 2, "AUTH": 2}[name] {
		if name != "PING" && name != "ECHO" && name != "AUTH" {
			return redcon.AppendError(reply, fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", args[0]))
		}
		return redcon.AppendError(reply, "ERR wrong number of arguments for '"+strings.ToLower(name)+"' command")
	}
	switch {
	case name == "AUTH" && string(args[1]) == guardPassword:
		g.setAuthenticated(true)
		return redcon.AppendString(reply, "OK")
	case name == "AUTH":
		return redcon.AppendError(reply, "WRONGPASS invalid username-password pair or user is disabled.")
	case !g.authenticated:
		return redcon.AppendError(reply, "NOAUTH Authentication required.")
	case name == "ECHO":
		return redcon.AppendBulk(reply, args[1])
	}
	return redcon.AppendString(reply, "PONG")
}

// serveGuarded plays a server to what the connection was scripted to send, by
// redcon's own reader, and returns what ended the stream.
func serveGuarded(g *guard) error {
	rd := redcon.NewReader(g)
	for {
		cmds, err := rd.ReadCommands()
		if err != nil {
			return err
		}
		var reply []byte
		for _, cmd := range cmds {
			reply = answerGuarded(reply, g, cmd.Args)
		}
		if _, err := g.Write(reply); err != nil {
			return err
		}
	}
}

// guardedStream is what came of a stream of bytes.
type guardedStream struct {
	reply  string
	closed bool // by the server, for a protocol error
}

// askGuarded sends chunks and returns what was answered.
func askGuarded(authenticated bool, chunks ...[]byte) (guardedStream, error) {
	conn := &scriptedConn{chunks: chunks}
	g := newGuard(conn, newGuardLimits(), nil)
	g.setAuthenticated(authenticated)
	err := serveGuarded(g)
	var refusal protocolError
	refused := errors.As(err, &refusal)
	if refused || err == io.EOF {
		err = nil
	}
	return guardedStream{conn.sent.String(), refused}, err
}

const (
	noauth   = "-NOAUTH Authentication required.\r\n"
	unquoted = "-ERR Protocol error: unbalanced quotes in request\r\n"
	badArgs  = "-ERR Protocol error: invalid multibulk length\r\n"
	badBulk  = "-ERR Protocol error: invalid bulk length\r\n"
)

// framings are streams and what Redis 7.0.15 answered to them, recorded, on a
// connection that need not authenticate.
var framings = []struct {
	in     string
	reply  string
	closed bool
}{
	{"*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "$0\r\n\r\n", false},
	{"*3\r\n$4\r\nPING\r\n", "", false},

	// Nothing to do.
	{"*0\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"*-1\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"*-10\r\nPING\r\n", "+PONG\r\n", false},
	{"*-9223372036854775808\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", false},
	{"\r\n\n\r\nPING\r\n", "+PONG\r\n", false},
	{"   \r\nPING\n", "+PONG\r\n", false},

	// Bytes that Redis skips without looking.
	{"*2\r\n$4\r\nECHO\r\n$3\r\nabcXY*1\r\n$4\r\nPINGab", "$3\r\nabc\r\n+PONG\r\n", false},
	{"*2\rX$4\rYECHOab$3\rZabcXY", "$3\r\nabc\r\n", false},

	// How many bulk strings.
	{"*+1\r\n", badArgs, true},
	{"*01\r\n", badArgs, true},
	{"* 1\r\n", badArgs, true},
	{"*1 \r\n", badArgs, true},
	{"*\r\n", badArgs, true},
	{"*-\r\n", badArgs, true},
	{"*-0\r\n", badArgs, true},
	{"*00\r\n", badArgs, true},
	{"*a\r\n", badArgs, true},
	{"*1048577\r\n", "", false},
	{"*2147483647\r\n", "", false},
	{"*2147483648\r\n", badArgs, true},
	{"*9223372036854775807\r\n", badArgs, true},
	{"*9223372036854775808\r\n", badArgs, true},
	{"*-9223372036854775809\r\n", badArgs, true},
	{"*18446744073709551617\r\n", badArgs, true},

	// How long each is.
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

	// Lines that do not end, or not yet.
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

	// What came before an error is answered, and nothing after it.
	{"*1\r\n$4\r\nPING\r\n*1\r\n$-5\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n" + badBulk, true},
	{"PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\nECHO \"x\r\nPING\r\n", "+PONG\r\n$1\r\nx\r\n" + unquoted, true},
}

func TestGuardFramings(t *testing.T) {
	for _, f := range framings {
		got, err := askGuarded(true, []byte(f.in))
		require.NoError(t, err, "%q", f.in)
		require.Equal(t, guardedStream{f.reply, f.closed}, got, "%q", f.in)
	}
}

func TestGuardFramingsSplitAnywhere(t *testing.T) {
	for _, f := range framings {
		for at := range len(f.in) {
			got, err := askGuarded(true, []byte(f.in[:at]), []byte(f.in[at:]))
			require.NoError(t, err, "%q", f.in)
			require.Equal(t, guardedStream{f.reply, f.closed}, got, "%q split at %d", f.in, at)
		}
	}
}
