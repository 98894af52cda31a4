package commandtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Answer is a call and its reply as recorded from Redis 7.0.15, each \r\n as a space. A word "" of
// a call is an empty argument.
type Answer [2]string

// Client is a connection that sends commands and returns raw replies.
type Client struct {
	net.Conn
	T  testing.TB
	In *bufio.Reader
}

// NewClient returns a client that uses a connection.
func NewClient(t testing.TB, conn net.Conn) *Client {
	return &Client{Conn: conn, T: t, In: bufio.NewReader(conn)}
}

// Dial returns a client of the server at an address. The connection ends with the test.
func Dial(t testing.TB, address string) *Client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return NewClient(t, conn)
}

// DialAgain opens another connection to the same server.
func (c *Client) DialAgain() *Client { return Dial(c.T, c.RemoteAddr().String()) }

// Do sends one command, its words separated by spaces, and returns the raw reply with each \r\n as
// a space: "*2 :1 :2".
func (c *Client) Do(line string) string {
	c.T.Helper()
	return c.Send(strings.Fields(line)...)
}

// Send is Do for words that contain spaces or are empty.
func (c *Client) Send(words ...string) string {
	c.T.Helper()
	_, err := c.Write([]byte(Frame(words...)))
	require.NoError(c.T, err)
	return strings.TrimSuffix(c.Read(), " ")
}

// Pipe sends commands at once and returns their replies.
func (c *Client) Pipe(lines ...string) (replies []string) {
	c.T.Helper()
	go io.WriteString(c, Pipeline(lines...))
	for range lines {
		replies = append(replies, strings.TrimSuffix(c.Read(), " "))
	}
	return replies
}

// Check sends calls one after the other, and compares their replies. A … in the expected reply
// matches anything.
func (c *Client) Check(steps []Answer) {
	c.T.Helper()
	for _, step := range steps {
		words := strings.Fields(step[0])
		for i, w := range words {
			if w == `""` {
				words[i] = ""
			}
		}
		got := c.Send(words...)
		if !strings.Contains(step[1], "…") {
			assert.Equal(c.T, step[1], got, step[0])
			continue
		}
		pattern := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(step[1]), "…", ".*") + "$"
		assert.Regexp(c.T, pattern, got, step[0])
	}
}

// Frame encodes a command as clients send it.
func Frame(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// Pipeline returns commands, given one per line, as clients send them.
func Pipeline(lines ...string) (text string) {
	for _, line := range lines {
		text += Frame(strings.Fields(line)...)
	}
	return text
}

// Read reads one reply in full, and returns it with each \r\n as a space.
func (c *Client) Read() string {
	c.T.Helper()
	var b strings.Builder
	c.appendReply(&b)
	return b.String()
}

func (c *Client) appendReply(b *strings.Builder) {
	line, err := c.In.ReadString('\n')
	require.NoError(c.T, err)
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	b.WriteString(line + " ")
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			body := make([]byte, n+2)
			_, err := io.ReadFull(c.In, body)
			require.NoError(c.T, err)
			b.WriteString(string(body[:n]) + " ")
		}
	case '*', '~', '>', '%':
		if line[0] == '%' {
			n *= 2
		}
		for range max(n, 0) {
			c.appendReply(b)
		}
	}
}

// Ask sends a line as a person types it, and returns the reply as ReadValue does.
func (c *Client) Ask(line string) any {
	c.T.Helper()
	fmt.Fprint(c, line+"\r\n")
	return c.ReadValue()
}

// SendWords is Ask for words that may hold any bytes.
func (c *Client) SendWords(words ...string) any {
	c.T.Helper()
	fmt.Fprint(c, Frame(words...))
	return c.ReadValue()
}

// ReadValue reads one reply: integers as int64, all texts as string, arrays and sets as []any, maps
// as map[string]any.
func (c *Client) ReadValue() any {
	line, err := c.In.ReadString('\n')
	require.NoError(c.T, err)
	kind, line := line[0], strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.ParseInt(line, 10, 64)
	switch kind {
	case '+', '-':
		return line
	case ':':
		return n
	case '_':
		return nil
	case '$', '=':
		body := make([]byte, n+2)
		_, err := io.ReadFull(c.In, body)
		require.NoError(c.T, err)
		return string(body[:n])
	case '*', '~':
		list := make([]any, n)
		for i := range list {
			list[i] = c.ReadValue()
		}
		return list
	case '%':
		m := make(map[string]any, n)
		for range n {
			name := c.ReadValue().(string)
			m[name] = c.ReadValue()
		}
		return m
	}
	require.FailNow(c.T, "reply of unknown kind", "%c%s", kind, line)
	return nil
}

// Info returns the value of a field of INFO.
func (c *Client) Info(name string) string {
	c.T.Helper()
	_, rest, found := strings.Cut(c.Do("INFO"), "\r\n"+name+":")
	require.True(c.T, found, name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// InfoNumber returns the value of a field of INFO that is a number.
func (c *Client) InfoNumber(name string) int {
	c.T.Helper()
	n, err := strconv.Atoi(c.Info(name))
	require.NoError(c.T, err)
	return n
}

// Eventually waits until a condition is true.
func (c *Client) Eventually(what string, condition func() bool) {
	c.T.Helper()
	require.Eventually(c.T, condition, time.Minute, time.Millisecond, what)
}

// RequireClosed waits for the server to close the connection.
func (c *Client) RequireClosed() {
	c.T.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := c.In.ReadByte()
	require.Error(c.T, err)
	require.NotErrorIs(c.T, err, os.ErrDeadlineExceeded)
}

// Quit ends the connection.
func (c *Client) Quit() {
	c.T.Helper()
	require.Equal(c.T, "+OK", c.Do("QUIT"))
	c.RequireClosed()
}

// Monitored reads n lines of MONITOR while the time is Start, and returns them without time and
// address.
func (c *Client) Monitored(n int) (lines []string) {
	c.T.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	for range n {
		line, err := c.In.ReadString('\n')
		require.NoError(c.T, err)
		stamp, rest, _ := strings.Cut(line, " [")
		assert.Equal(c.T, "+1767225600.000000", stamp)
		address, call, _ := strings.Cut(rest, "] ")
		assert.Regexp(c.T, `^\d+ (lua|127\.0\.0\.1:\d+|unix:/\S+)$`, address)
		lines = append(lines, strings.TrimSuffix(call, "\r\n"))
	}
	return lines
}
