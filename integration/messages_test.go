package integration

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMessageTranscripts plays calls of several connections, and compares what each connection gets
// with what it got from a real Redis, byte by byte. The format of a file:
//
//	# a comment
//	@ server FLAGS     before the first step: a server with these flags
//	a> SUBSCRIBE news  connection a sends a call; " | " separates calls that are sent at once
//	a< "*3\r\n..."     what it gets then, quoted as in Go; so do the other connections
//	a< closed          the server closes the connection
//
// A step without a reply that blocks is over when INFO counts one more blocked client.
//
// TRANSCRIPT_RECORD and TRANSCRIPT_LIVE are those of TestTranscripts.
func TestMessageTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/messages/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script := readConversation(t, path)
			if os.Getenv("TRANSCRIPT_RECORD") != "" {
				script.play(t, startRedis(t, script.flags...).addr, true)
				require.NoError(t, os.WriteFile(path, []byte(strings.Join(script.lines(), "\n")+"\n"), 0o644))
				return
			}
			if os.Getenv("TRANSCRIPT_LIVE") != "" {
				script.play(t, startRedis(t, script.flags...).addr, false)
			}
			script.play(t, startServer(t, script.flags...).addr, false)
		})
	}
}

// conversation is a transcript of several connections.
type conversation struct {
	path  string
	flags []string
	steps []*turn
}

// turn is a step: what one connection sends, and what all get.
type turn struct {
	line  int
	above []string // lines before the step
	who   string
	calls string
	got   map[string]string // by connection
	ended map[string]bool   // the connection is closed
}

func readConversation(t *testing.T, path string) *conversation {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	c := &conversation{path: path}
	var above []string
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		who, rest, _ := strings.Cut(line, " ")
		switch name := strings.TrimRight(who, "<>"); {
		case strings.HasPrefix(line, "@ server "):
			c.flags = strings.Fields(line)[2:]
			above = append(above, line)
		case strings.HasPrefix(line, "#") || line == "":
			above = append(above, line)
		case strings.HasSuffix(who, ">"):
			c.steps = append(c.steps, &turn{
				line: i + 1, above: above, who: name, calls: rest, got: map[string]string{}, ended: map[string]bool{},
			})
			above = nil
		case rest == "closed":
			c.steps[len(c.steps)-1].ended[name] = true
		default:
			got, err := strconv.Unquote(rest)
			require.NoError(t, err, "%s:%d", path, i+1)
			c.steps[len(c.steps)-1].got[name] = got
		}
	}
	return c
}

func (c *conversation) lines() (list []string) {
	for _, s := range c.steps {
		list = append(append(list, s.above...), s.who+"> "+s.calls)
		for _, name := range slices.Sorted(mapKeys(s.got)) {
			list = append(list, name+"< "+strconv.Quote(s.got[name]))
		}
		for _, name := range slices.Sorted(mapKeys(s.ended)) {
			list = append(list, name+"< closed")
		}
	}
	return list
}

func mapKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// play sends the calls of all steps. It records what the connections get, or compares it.
func (c *conversation) play(t *testing.T, addr string, record bool) {
	conns := map[string]net.Conn{}
	for _, s := range c.steps {
		if conns[s.who] == nil {
			conn, err := dial(addr)
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
			conns[s.who] = conn
		}
		var request strings.Builder
		for call := range strings.SplitSeq(s.calls, " | ") {
			words, err := splitArgs(call)
			require.NoError(t, err, "%s:%d", c.path, s.line)
			request.WriteString(frame(words...))
		}
		waits := len(s.got)+len(s.ended) == 0 && blocks.MatchString(s.calls) && !record
		before := 0
		if waits {
			before = blockedClients(t, addr)
		}
		_, err := io.WriteString(conns[s.who], request.String())
		require.NoError(t, err)
		if waits {
			require.Eventually(t, func() bool { return blockedClients(t, addr) > before }, patience, time.Millisecond)
		}
		where := fmt.Sprintf("%s:%d: %s> %s", c.path, s.line, s.who, s.calls)
		if record {
			s.record(conns)
		} else {
			s.compare(t, where, conns)
		}
	}
	for name, conn := range conns {
		if record {
			continue
		}
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		rest, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Empty(t, string(rest), "%s: %s gets more than recorded", c.path, name)
	}
}

// blocks matches calls that may wait for a key.
var blocks = regexp.MustCompile(`^B[LRZ][A-Z]+ [^|]*$`)

func blockedClients(t *testing.T, addr string) (n int) {
	conn, err := dial(addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "INFO clients\r\nQUIT\r\n")
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "blocked_clients:")
	require.True(t, found, "%s", text)
	_, err = fmt.Sscan(rest, &n)
	require.NoError(t, err)
	return n
}

// unsteady matches what differs from run to run: the ids of clients, and in MONITOR the times and
// addresses.
var (
	unsteady  = regexp.MustCompile(`(\$2\r\nid\r\n:|\$8\r\nredirect\r\n:)\d+`)
	monitored = regexp.MustCompile(`\+\d+\.\d{6} \[(\d+) ([^]:]*)(?::\d+)?\]`)
)

func steady(b []byte) string {
	b = unsteady.ReplaceAll(b, []byte("${1}9"))
	return string(monitored.ReplaceAll(b, []byte("+1.000000 [${1} ${2}]")))
}

func (s *turn) record(conns map[string]net.Conn) {
	s.got, s.ended = map[string]string{}, map[string]bool{}
	time.Sleep(100 * time.Millisecond) // only to record
	for name, conn := range conns {
		conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		var got bytes.Buffer
		_, err := io.Copy(&got, conn)
		if got.Len() > 0 {
			s.got[name] = steady(got.Bytes())
		}
		if err == nil || !os.IsTimeout(err) {
			s.ended[name] = true
			delete(conns, name)
		}
	}
}

func (s *turn) compare(t *testing.T, where string, conns map[string]net.Conn) {
	for name, want := range s.got {
		var got []byte
		for conns[name].SetReadDeadline(time.Now().Add(patience)); len(steady(got)) < len(want); {
			var buf [4096]byte
			n, err := conns[name].Read(buf[:])
			got = append(got, buf[:n]...)
			require.NoError(t, err, "%s: %s has got %q of %q", where, name, got, want)
		}
		require.Equal(t, want, steady(got), "%s: %s", where, name)
	}
	for name := range s.ended {
		n, err := conns[name].Read(make([]byte, 1))
		require.Zero(t, n, where)
		require.Error(t, err, where)
		require.False(t, os.IsTimeout(err), "%s: %s is still open", where, name)
		delete(conns, name)
	}
}
