package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"rlserver/resp/config"
)

// scriptedConn is a connection whose peer sends chunks, one for each read, and then closes it. A
// chunk that is larger than the buffer takes several reads.
type scriptedConn struct {
	net.Conn
	chunks [][]byte
	sent   bytes.Buffer
	writes int
	reads  int
	onRead func() // called before each read
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	for len(c.chunks) > 0 && len(c.chunks[0]) == 0 {
		c.chunks = c.chunks[1:]
	}
	if c.onRead != nil {
		c.onRead()
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

// guardPassword is the password that answerGuarded accepts.
const guardPassword = "pw"

// answerGuarded appends the reply of Redis to a command, as far as the tests of framing need it.
func answerGuarded(reply []byte, g *Guard, args [][]byte) []byte {
	name := strings.ToUpper(string(args[0]))
	if len(args) != map[string]int{"PING": 1, "ECHO": 2, "AUTH": 2}[name] {
		if name != "PING" && name != "ECHO" && name != "AUTH" {
			return redcon.AppendError(
				reply,
				fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: ", args[0]),
			)
		}
		return redcon.AppendError(reply, "ERR wrong number of arguments for '"+strings.ToLower(name)+"' command")
	}
	switch {
	case name == "AUTH" && string(args[1]) == guardPassword:
		g.SetAuthenticated(true)
		return redcon.AppendString(reply, "OK")
	case name == "AUTH":
		return redcon.AppendError(reply, "WRONGPASS invalid username-password pair or user is disabled.")
	case !g.in.authenticated:
		return redcon.AppendError(reply, "NOAUTH Authentication required.")
	case name == "ECHO":
		return redcon.AppendBulk(reply, args[1])
	}
	return redcon.AppendString(reply, "PONG")
}

// readGuarded calls do for each command that the guard hands out, and returns the error that ends
// the stream.
func readGuarded(g *Guard, do func(words [][]byte)) error {
	buf := make([]byte, 4096)
	for {
		if err := g.Wait(buf); err != nil {
			return err
		}
		for words := g.Next(); words != nil; words = g.Next() {
			do(words)
		}
	}
}

// serveGuarded serves the commands of a connection with answerGuarded.
func serveGuarded(g *Guard) error {
	return readGuarded(g, func(words [][]byte) { g.Write(answerGuarded(nil, g, words)) })
}

// guardedStream is the outcome of a stream of bytes.
type guardedStream struct {
	reply  string
	closed bool // by the server, for a protocol error
}

// askGuarded sends chunks, and returns the outcome.
func askGuarded(authenticated bool, chunks ...[]byte) (guardedStream, error) {
	conn := &scriptedConn{chunks: chunks}
	g := NewGuard(conn, config.NewConnectionLimits(), nil)
	g.SetAuthenticated(authenticated)
	err := serveGuarded(g)
	var refusal protocolError
	refused := errors.As(err, &refusal)
	if refused || err == io.EOF {
		err = nil
	}
	return guardedStream{conn.sent.String(), refused}, err
}

// A bad stream ends its own connection only.
func TestGuardOnSockets(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			g := NewGuard(conn, config.NewConnectionLimits(), nil)
			g.SetAuthenticated(true)
			go func() {
				serveGuarded(g)
				g.Close()
			}()
		}
	}()
	for _, f := range append(framings, longFramings...) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		// a stream that is refused need not be read to its end
		if _, err = conn.Write([]byte(f.in)); !f.closed {
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		}
		reply, err := io.ReadAll(conn)
		if !f.closed {
			require.NoError(t, err)
		}
		require.Equal(t, f.reply, string(reply), "%.99q", f.in)
		conn.Close()
	}
	require.NoError(t, ln.Close())
	<-served
}

// The buffer grows with the input that has arrived, whatever length is announced.
func TestGuardBufferFollowsInput(t *testing.T) {
	echo := "*2\r\n$4\r\nECHO\r\n$300000\r\n" + strings.Repeat("x", 300000) + "\r\n"
	for _, c := range []struct {
		name   string
		chunks []string
		want   []int // largest buffer while waiting for each chunk, and for the end
	}{
		{"idle", []string{"*1\r\n$4\r\nPING\r\n", "PING\r\n"}, []int{0, 0, 0}},
		{"announced lengths", []string{"*2\r\n$4\r\nECHO\r\n", "$500000000\r\n", "abc"},
			[]int{0, restBuffer, restBuffer, restBuffer}},
		{"after a large command", []string{echo, "PING\r\n"}, []int{0, 0, 0}},
		{"behind a large command", []string{echo + "*1\r\n", "$4\r\n", "PING\r\n"},
			[]int{0, restBuffer, restBuffer, 0}},
		{"inside a large command", []string{echo[:200000], echo[200000:]}, []int{0, 400000, 0}},
	} {
		conn := &scriptedConn{}
		for _, chunk := range c.chunks {
			conn.chunks = append(conn.chunks, []byte(chunk))
		}
		g := NewGuard(conn, config.NewConnectionLimits(), nil)
		g.SetAuthenticated(true)
		conn.onRead = func() {
			i := len(c.chunks) - len(conn.chunks)
			// otherwise the chunk is being read
			if i == len(c.chunks) || len(conn.chunks[0]) == len(c.chunks[i]) {
				require.LessOrEqual(t, cap(g.in.buf), c.want[i], "%s, chunk %d", c.name, i)
			}
		}
		require.ErrorIs(t, serveGuarded(g), io.EOF)
	}
}

// Input behind a large command is not lost, wherever it is cut.
func TestGuardLargeCommands(t *testing.T) {
	var in, want bytes.Buffer
	for i, size := range []int{5, 4096, 10, 16384, 16385, 0, 20000, 20001, 300000, 3, 100000} {
		x := bytes.Repeat([]byte{byte('a' + i)}, size)
		in.Write(redcon.AppendArray(nil, 2))
		in.Write(redcon.AppendBulk(nil, []byte("ECHO")))
		in.Write(redcon.AppendBulk(nil, x))
		want.Write(redcon.AppendBulk(nil, x))
		if size%2 == 1 {
			in.WriteString("ECHO " + string(x[:min(size, 60000)]) + "\r\n")
			want.Write(redcon.AppendBulk(nil, x[:min(size, 60000)]))
		}
	}
	for _, chunk := range []int{333, 4096, 16384, 1 << 20} {
		for _, authenticated := range []bool{false, true} {
			conn := &scriptedConn{chunks: slices.Collect(slices.Chunk(bytes.Clone(in.Bytes()), chunk))}
			g := NewGuard(conn, config.NewConnectionLimits(), nil)
			g.SetAuthenticated(authenticated)
			if !authenticated {
				conn.chunks = append([][]byte{[]byte("AUTH pw\r\n")}, conn.chunks...)
				conn.sent.Truncate(0)
			}
			require.ErrorIs(t, serveGuarded(g), io.EOF)
			require.Equal(
				t,
				want.String(),
				strings.TrimPrefix(conn.sent.String(), "+OK\r\n"),
				"chunks of %d, authenticated %v",
				chunk,
				authenticated,
			)
		}
	}
}

// One Wait is enough for all commands that have arrived in full.
func TestGuardWaitsOncePerBatch(t *testing.T) {
	conn := &scriptedConn{chunks: [][]byte{[]byte("PING 1\r\nPING 2\r\n*1\r\n$4\r\nPI"), []byte("NG\r\n*0\r\n")}}
	g := NewGuard(conn, config.NewConnectionLimits(), nil)
	g.SetAuthenticated(true)
	p := make([]byte, 100)
	for _, want := range [][]string{{"PING 1", "PING 2"}, {"PING"}} {
		require.NoError(t, g.Wait(p))
		for _, command := range want {
			require.Equal(t, command, string(bytes.Join(g.Next(), []byte(" "))))
		}
		require.Nil(t, g.Next())
	}
	require.ErrorIs(t, g.Wait(p), io.EOF)
}

// Next returns nil if Wait has not been called.
func TestGuardNextWithoutWait(t *testing.T) {
	g := NewGuard(&scriptedConn{}, config.NewConnectionLimits(), nil)
	require.Nil(t, g.Next())
}

var errUnplugged = errors.New("unplugged")

// unpluggedConn fails to write.
type unpluggedConn struct{ scriptedConn }

func (c *unpluggedConn) Write([]byte) (int, error) { return 0, errUnplugged }

func TestGuardWriteFails(t *testing.T) {
	conn := &unpluggedConn{scriptedConn{chunks: [][]byte{[]byte("PING\r\n"), []byte("PING\r\n")}}}
	g := NewGuard(conn, config.NewConnectionLimits(), nil)
	p := make([]byte, 100)
	err := g.Wait(p)
	require.NoError(t, err)
	require.NotNil(t, g.Next())
	_, err = g.Write([]byte("lost"))
	require.ErrorIs(t, err, errUnplugged)
	err = g.Wait(p)
	require.ErrorIs(t, err, errUnplugged)
	_, err = g.Write([]byte("more"))
	require.ErrorIs(t, err, errUnplugged)
}

func TestGuardWriteAfterClose(t *testing.T) {
	g := NewGuard(&scriptedConn{}, config.NewConnectionLimits(), nil)
	require.NoError(t, g.Close())
	_, err := g.Write([]byte("more"))
	require.ErrorIs(t, err, net.ErrClosed)
}

// Close does not wait for a client that does not read.
func TestGuardCloseOfStuckConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		g := NewGuard(server, config.NewConnectionLimits(), nil)
		stuck := make(chan error)
		go func() {
			_, err := g.Write([]byte("stuck"))
			stuck <- err
		}()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, g.Close())
		require.Zero(t, time.Since(start))
		require.Error(t, <-stuck)
	})
}

func TestGuardIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		limit := time.Minute
		g := NewGuard(server, config.NewConnectionLimits(), func() time.Duration { return limit })
		p := make([]byte, 100)
		go func() {
			time.Sleep(59 * time.Second)
			client.Write([]byte("PING\r\n"))
			time.Sleep(time.Hour)
			client.Write([]byte("PING\r\n"))
		}()
		err := g.Wait(p)
		require.NoError(t, err)
		limit = 0
		err = g.Wait(p)
		require.NoError(t, err, "without a limit there is no deadline")
		limit = time.Minute
		start := time.Now()
		err = g.Wait(p)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, limit, time.Since(start))
	})
}

// Retime applies a new limit to a Wait that is running, and to one that is about to start.
func TestGuardRetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		var limit atomic.Int64
		g := NewGuard(server, config.NewConnectionLimits(), func() time.Duration { return time.Duration(limit.Load()) })
		ended := make(chan error)
		start := time.Now()
		go func() {
			err := g.Wait(make([]byte, 100))
			ended <- err
		}()
		for _, l := range []time.Duration{time.Minute, 0, time.Hour} {
			time.Sleep(30 * time.Second)
			limit.Store(int64(l))
			g.Retime()
		}
		require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
		require.Equal(t, 90*time.Second+time.Hour, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		limit := time.Minute
		g := NewGuard(server, config.NewConnectionLimits(), func() time.Duration {
			was := limit
			limit = time.Hour // Retime sets the new deadline before this Wait sets its own
			return was
		})
		start := time.Now()
		err := g.Wait(make([]byte, 100))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		g := NewGuard(server, config.NewConnectionLimits(), func() time.Duration { return time.Hour })
		ended := make(chan error)
		start := time.Now()
		go func() {
			err := g.Wait(make([]byte, 100))
			ended <- err
		}()
		synctest.Wait()
		g.draining.Store(true) // Drain has been called, and Retime
		g.Retime()             // overwrites its deadline
		require.ErrorIs(t, <-ended, io.EOF)
		require.Zero(t, time.Since(start))
	})
}

// A drained guard hands out the commands that have arrived and ends, whether or not it waits.
func TestGuardDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		g := NewGuard(server, config.NewConnectionLimits(), func() time.Duration { return time.Minute })
		go client.Write([]byte("PING\r\nPING\r\nPI"))
		p := make([]byte, 100)
		err := g.Wait(p) // before authentication: one command for each Wait
		require.NoError(t, err)
		g.Drain()
		start := time.Now()
		err = g.Wait(p)
		require.NoError(t, err)
		err = g.Wait(p)
		require.ErrorIs(t, err, io.EOF)
		require.Zero(t, time.Since(start), "Wait does not wait for more input")
	})
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		g := NewGuard(server, config.NewConnectionLimits(), nil)
		ended := make(chan error)
		go func() {
			err := g.Wait(make([]byte, 100))
			ended <- err
		}()
		synctest.Wait()
		g.Drain()
		require.ErrorIs(t, <-ended, io.EOF)
	})
}

// A line pushed by another goroutine while the guard waits is sent at once, even if half a command
// has arrived.
func TestGuardPushWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		g := NewGuard(server, config.NewConnectionLimits(), nil)
		go func() {
			p := make([]byte, 100)
			for {
				if err := g.Wait(p); err != nil {
					return
				}
			}
		}()
		client.Write([]byte("PING\r\nPI"))
		synctest.Wait()
		go g.Write([]byte("push"))
		p := make([]byte, 4)
		_, err := io.ReadFull(client, p)
		require.NoError(t, err)
		require.Equal(t, "push", string(p))
		client.Close()
		synctest.Wait()
	})
}

func TestGuardLimitsCanChange(t *testing.T) {
	limits := config.NewConnectionLimits()
	ask := func(in string) (string, error) {
		conn := &scriptedConn{chunks: [][]byte{[]byte(in)}}
		g := NewGuard(conn, limits, nil)
		g.SetAuthenticated(true)
		err := serveGuarded(g)
		return conn.sent.String(), err
	}
	const ping, echo = "*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n"
	limits.MaxBulk.Store(4)
	reply, err := ask(ping + echo + ping)
	require.Equal(t, protocolError("invalid bulk length"), err)
	require.Equal(t, "+PONG\r\n"+badBulk, reply)

	limits.MaxBulk.Store(math.MaxInt64)
	limits.MaxQuery.Store(int64(len(echo)))
	reply, err = ask(ping + echo + ping)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "+PONG\r\n$5\r\nhello\r\n+PONG\r\n", reply)

	limits.MaxQuery.Store(int64(len(echo)) - 1)
	reply, err = ask(ping + echo + ping)
	require.ErrorIs(t, err, errBigQuery)
	require.Equal(t, "+PONG\r\n", reply)

	limits.MaxQuery.Store(1 << 20)
	reply, err = ask(ping + "*1\r\n$9223372036854775807\r\n")
	require.ErrorIs(t, err, errBigQuery)
	require.Equal(t, "+PONG\r\n", reply)
}

func TestGuardDoesNotAllocate(t *testing.T) {
	for _, depth := range []int{1, 1000} {
		conn := &repeatingConn{bytes: []byte(strings.Repeat("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING x\r\n", depth))}
		g := NewGuard(conn, config.NewConnectionLimits(), nil)
		g.SetAuthenticated(true)
		p, reply := make([]byte, 4096), []byte("+OK\r\n")
		allocs := testing.AllocsPerRun(1000, func() {
			g.Wait(p)
			for g.Next() != nil {
			}
			g.Write(reply)
		})
		require.Less(t, allocs, 0.1) // a pool may be emptied at any time
	}
}

// repeatingConn is a connection whose peer sends the same bytes repeatedly.
type repeatingConn struct {
	net.Conn
	bytes []byte
	at    int
}

func (c *repeatingConn) Read(p []byte) (int, error) {
	n := copy(p, c.bytes[c.at:])
	c.at = (c.at + n) % len(c.bytes)
	return n, nil
}

func (c *repeatingConn) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkGuard measures the time per command that a guard hands out.
func BenchmarkGuard(b *testing.B) {
	const slide = "*4\r\n$8\r\nRL.SLIDE\r\n$10\r\nuser:12345\r\n$3\r\n100\r\n$3\r\n60s\r\n"
	for _, c := range []struct {
		name    string
		command string
		depth   int
	}{
		{"slide", slide, 1},
		{"slide", slide, 16},
		{"slide", slide, 1000},
		{"inline", "PING\r\n", 1},
		{"inline", "PING\r\n", 100},
		{"large", "*2\r\n$4\r\nECHO\r\n$65536\r\n" + strings.Repeat("x", 65536) + "\r\n", 1},
	} {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.depth), func(b *testing.B) {
			g := NewGuard(
				&repeatingConn{bytes: []byte(strings.Repeat(c.command, c.depth))},
				config.NewConnectionLimits(),
				nil,
			)
			g.SetAuthenticated(true)
			p := make([]byte, 4096)
			b.ReportAllocs()
			b.SetBytes(int64(len(c.command)))
			for b.Loop() {
				for g.Next() == nil {
					if err := g.Wait(p); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// A client that is still sending when the guard ends gets its replies and the end of the stream,
// not a reset that loses them.
func TestGuardRepliesBeforeClose(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*Guard)
		more string
		want string
	}{
		"drained": {(*Guard).Drain, "PING\r\n", "+PONG\r\n"},
		"protocol error": {func(*Guard) {}, "*1\r\nPING\r\n", "+PONG\r\n-ERR Protocol error: expected '$', got " +
			"'P'\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer ln.Close()
			client, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer client.Close()
			server, err := ln.Accept()
			require.NoError(t, err)
			g := NewGuard(server, config.NewConnectionLimits(), nil)

			p := make([]byte, 100)
			fmt.Fprint(client, "PING\r\n")
			err = g.Wait(p)
			require.NoError(t, err)
			fmt.Fprint(g, "+PONG\r\n")
			fmt.Fprint(client, test.more)
			fmt.Fprint(client, strings.Repeat("PING\r\n", 10_000)) // more than one read takes
			test.end(g)
			err = g.Wait(p)
			require.Error(t, err)
			g.Close()

			got, err := io.ReadAll(client)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

// A call that is held back may last longer than the client had to log in: AUTH is one.
func TestGuardPausesBeyondTheTimeToLogIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		g := NewGuard(server, config.NewConnectionLimits(), nil)
		g.LoginTime = func() time.Duration { return time.Second }
		g.SetAuthenticated(false)
		time.Sleep(2 * time.Second)
		start := time.Now()
		require.NoError(t, g.PauseFor(3*time.Second))
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

// hidden is a connection that hides its socket, and whose other end does not read.
type hidden struct{ net.Conn }

func (hidden) SyscallConn() (syscall.RawConn, error) { return nil, errors.ErrUnsupported }

// Who pushes to the connection of another node over TLS never waits for that node.
func TestGuardNeverBlocksOnAHiddenSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		g := NewGuard(hidden{server}, config.NewConnectionLimits(), nil)
		g.SetAuthenticated(true)
		_, err := g.Offer([]byte("reply"), false)
		require.NoError(t, err)
		g.Push([]byte(" push"))
		got := make([]byte, len("reply push"))
		_, err = io.ReadFull(client, got)
		require.NoError(t, err)
		require.Equal(t, "reply push", string(got))
		client.Close()
		g.Close()
	})
}
