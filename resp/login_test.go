package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/acl"
	"rlserver/engine"
	"rlserver/resp/config"
	"rlserver/resp/wire"
)

func (p *pipes) connect() *bufio.ReadWriter {
	client, server := net.Pipe()
	p.arriving <- server
	return bufio.NewReadWriter(bufio.NewReader(client), bufio.NewWriterSize(client, 0))
}

// withLogins runs a server in a synctest bubble.
func withLogins(t *testing.T, d config.Defaults, log io.Writer, test func(t *testing.T, ts *Server, p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d.Databases, d.MaxClients = 16, 100
		server := NewServer(Options{
			Engine: engine.New(engine.Options{Databases: 16}),
			Clock:  clockBy(func() int64 { return testStart + time.Since(start).Milliseconds() }),
			Log:    slog.New(slog.NewTextHandler(log, nil)), Settings: config.NewSettings(d), Version: "test",
		})
		p := &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
		go server.Serve(p)
		test(t, server, p)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		server.Shutdown(ctx)
	})
}

func TestFailedLoginsAreDelayed(t *testing.T) {
	var log logBuffer
	withLogins(
		t,
		config.Defaults{Password: "sesame", PreauthTimeout: time.Minute},
		&log,
		func(t *testing.T, s *Server, p *pipes) {
			guesser, other := p.connect(), p.connect()
			start := time.Now()
			go func() {
				for i := range 6 {
					fmt.Fprintf(guesser, "AUTH guess%d\r\n", i) // a pipeline
				}
				fmt.Fprint(guesser, "AUTH sesame\r\nAUTH guess\r\n")
				guesser.Flush()
			}()
			go func() {
				fmt.Fprint(other, "AUTH sesame\r\nPING\r\n")
				other.Flush()
			}()
			for _, want := range []string{"+OK\r\n", "+PONG\r\n"} {
				line, err := other.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, want, line)
			}
			require.Zero(t, time.Since(start), "other clients are not delayed")

			var answered []time.Duration
			for range 8 {
				line, err := guesser.ReadString('\n')
				require.NoError(t, err)
				answered = append(answered, time.Since(start))
				if len(answered) == 7 {
					require.Equal(t, "+OK\r\n", line)
				} else {
					require.Equal(t, "-WRONGPASS invalid username-password pair or user is disabled.\r\n", line)
				}
			}
			last := 4750 * time.Millisecond // 250 ms, 500 ms and four times 1 s
			assert.Equal(t, last+firstLoginDelay, answered[7], "a successful login resets the delay")
			assert.EqualValues(t, 7, s.AccessLog.Count(acl.DeniedAuth))
			assert.Regexp(
				t,
				`(?m)^.*level=WARN msg="a login failed" client=1 address=\S+ others_since_the_last_line=0$`,
				log.String(),
			)
			assert.Contains(t, log.String(), "others_since_the_last_line=2")
			assert.LessOrEqual(t, strings.Count(log.String(), "a login failed"), 7)
		},
	)
}

// fromAddress is a connection that comes from an address.
type fromAddress struct {
	net.Conn
	address net.TCPAddr
}

func (c fromAddress) RemoteAddr() net.Addr { return &c.address }

func (p *pipes) connectFrom(address string) *bufio.ReadWriter {
	client, server := net.Pipe()
	p.arriving <- fromAddress{server, *net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 5000))}
	return bufio.NewReadWriter(bufio.NewReader(client), bufio.NewWriterSize(client, 0))
}

// A new connection does not avoid the delay: failed logins count for the address.
func TestFailedLoginsAreDelayedByAddress(t *testing.T) {
	d := config.Defaults{Password: "sesame", PreauthTimeout: time.Minute}
	withLogins(t, d, io.Discard, func(t *testing.T, s *Server, p *pipes) {
		answered := func(address, password string) time.Duration {
			c, start := p.connectFrom(address), time.Now()
			go func() { fmt.Fprintf(c, "AUTH %s\r\n", password); c.Flush() }()
			_, err := c.ReadString('\n')
			require.NoError(t, err)
			return time.Since(start)
		}
		for _, step := range []struct {
			address, password string
			want              time.Duration
		}{
			{"192.0.2.1", "guess", firstLoginDelay},
			{"192.0.2.1", "guess", 2 * firstLoginDelay},
			{"192.0.2.1", "guess", maxLoginDelay},
			{"192.0.2.1", "guess", maxLoginDelay},
			{"::ffff:192.0.2.1", "guess", maxLoginDelay},
			{"192.0.2.2", "guess", firstLoginDelay},
			{"2001:db8::1", "guess", firstLoginDelay},
			{"2001:db8::ffff", "guess", 2 * firstLoginDelay},
			{"2001:db8:0:1::1", "guess", firstLoginDelay},
			{"192.0.2.1", "sesame", 0},
			{"192.0.2.1", "guess", firstLoginDelay},
		} {
			require.Equal(t, step.want, answered(step.address, step.password), "%+v", step)
		}
		time.Sleep(acl.FailureMemory + time.Second)
		require.Equal(t, firstLoginDelay, answered("192.0.2.1", "guess"), "failures of long ago do not count")
	})
}

func TestFailedLoginsAreLoggedOnceASecond(t *testing.T) {
	var log logBuffer
	withLogins(t, config.Defaults{Password: "sesame"}, &log, func(t *testing.T, s *Server, p *pipes) {
		for range 20 {
			c := p.connect()
			go func() { fmt.Fprint(c, "AUTH guess\r\n"); c.Flush() }()
			_, err := c.ReadString('\n')
			require.NoError(t, err)
		}
		assert.EqualValues(t, 20, s.AccessLog.Count(acl.DeniedAuth))
		assert.LessOrEqual(t, strings.Count(log.String(), "\n"), 6, "in 5 seconds")
		assert.Contains(t, log.String(), "others_since_the_last_line=3")
	})
}

// Shutdown does not wait until the delay of a failed login is over.
func TestShutdownEndsTheLoginDelay(t *testing.T) {
	withLogins(t, config.Defaults{Password: "sesame"}, io.Discard, func(t *testing.T, s *Server, p *pipes) {
		c := p.connect()
		go func() { fmt.Fprint(c, "AUTH guess\r\n"); c.Flush() }()
		synctest.Wait()
		start := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Shutdown(t.Context())
		}()
		text, _ := io.ReadAll(c)
		<-ended
		assert.Contains(t, string(text), "-WRONGPASS")
		assert.Less(t, time.Since(start), firstLoginDelay)
	})
}

// Clients must log in within preauth-timeout, whatever else they send.
func TestClientsMustLogInInTime(t *testing.T) {
	sendSlowly := func(c net.Conn, piece string) {
		for {
			if _, err := fmt.Fprint(c, piece); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
	for piece, name := range map[string]string{"": "nothing", "x": "a byte a second", "PING\r\n": "commands",
		"RESET\r\n": "RESET"} {
		t.Run(name, func(t *testing.T) {
			withLogins(
				t,
				config.Defaults{Password: "sesame", PreauthTimeout: 10 * time.Second},
				io.Discard,
				func(t *testing.T, s *Server, p *pipes) {
					client, server := net.Pipe()
					start := time.Now()
					p.arriving <- server
					ended := make(chan struct{})
					go func() { defer close(ended); sendSlowly(client, piece) }()
					io.Copy(io.Discard, client)
					assert.Equal(t, 10*time.Second, time.Since(start))
					client.Close()
					<-ended
					assert.EqualValues(t, 1, s.loginTimeouts.Load())
				},
			)
		})
	}
}

func TestClientsThatLogInInTimeStayConnected(t *testing.T) {
	withLogins(
		t,
		config.Defaults{Password: "sesame", PreauthTimeout: 10 * time.Second},
		io.Discard,
		func(t *testing.T, s *Server, p *pipes) {
			c := p.connect()
			ask := func(text, want string) {
				t.Helper()
				sent := make(chan struct{})
				go func() { defer close(sent); fmt.Fprint(c, text); c.Flush() }()
				line, err := c.ReadString('\n')
				<-sent
				require.NoError(t, err)
				require.Equal(t, want, line)
			}
			time.Sleep(9 * time.Second)
			ask("AUTH sesame\r\n", "+OK\r\n")
			time.Sleep(time.Hour)
			ask("PING\r\n", "+PONG\r\n")
			ask("RESET\r\n", "+RESET\r\n") // the time starts again
			time.Sleep(9 * time.Second)
			ask("AUTH sesame\r\n", "+OK\r\n")
			ask("CONFIG SET preauth-timeout 1\r\n", "+OK\r\n")
			ask("RESET\r\n", "+RESET\r\n")
			start := time.Now()
			_, err := c.ReadString('\n')
			assert.Equal(t, io.EOF, err)
			assert.Equal(t, time.Second, time.Since(start))
		},
	)
	withLogins(
		t,
		config.Defaults{PreauthTimeout: 10 * time.Second},
		io.Discard,
		func(t *testing.T, s *Server, p *pipes) {
			c := p.connect()
			time.Sleep(time.Hour)
			go func() { fmt.Fprint(c, "PING\r\n"); c.Flush() }()
			line, err := c.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "+PONG\r\n", line)
		},
	)
}

// A change of preauth-timeout applies to clients that are connected already.
func TestLoginTimeChangesForConnectedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		g, limit := wire.NewGuard(server, config.NewConnectionLimits(), nil), time.Hour
		g.LoginTime = func() time.Duration { return limit }
		g.SetAuthenticated(false)
		start, ended := time.Now(), make(chan error)
		go func() {
			err := g.Wait(make([]byte, 100))
			ended <- err
		}()
		synctest.Wait()
		time.Sleep(time.Minute)
		limit = 2 * time.Minute
		g.Retime()
		require.ErrorIs(t, <-ended, wire.ErrLoginTimeout)
		require.Equal(t, 2*time.Minute, time.Since(start))
	})
}

func TestReservedClients(t *testing.T) {
	ts := startServer(t, config.Defaults{MaxClients: 4, Reserved: 1})
	from := func(addr net.Addr) func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go ts.Serve(remoteListener{ln, addr})
		return func() string {
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
			fmt.Fprint(conn, "PING\r\n")
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err.Error()
			}
			return strings.TrimSuffix(line, "\r\n")
		}
	}
	const full = "-ERR max number of clients reached"
	remote := from(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1})
	loopback := from(&net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 1})
	unix := from(&net.UnixAddr{Name: "s", Net: "unix"})
	for range 3 {
		require.Equal(t, "+PONG", remote())
	}
	require.Equal(t, full, remote(), "one connection is reserved for this machine")
	require.Equal(t, "+PONG", loopback())
	require.Equal(t, full, loopback())
	require.Equal(t, "+PONG", unix(), "one more connection is reserved for the Unix socket")
	require.Equal(t, full, unix())

	// Clients on loopback get all of maxclients.
	ts = startServer(t, config.Defaults{MaxClients: 4, Reserved: 100})
	var c *testClient
	for range 4 {
		c = ts.dial()
		require.Equal(t, "+PONG", c.do("PING"))
	}
	refused := ts.dial()
	require.Equal(t, full+" ", refused.read())
	require.Contains(t, c.do("INFO clients"), "reserved_clients:100\r\n")
	require.EqualValues(t, 2, ts.maxClientsFor(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}), "half is never reserved")
	require.Equal(t, "+OK", c.do("CONFIG SET reserved-clients 0"))
	require.EqualValues(t, 4, ts.maxClientsFor(&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}))
	require.Equal(
		t,
		"*4 $16 reserved-clients $1 0 $15 preauth-timeout $1 0",
		c.do("CONFIG GET reserved-clients preauth-timeout"),
	)
	require.Contains(t, c.do("INFO stats"),
		"preauth_timeouts:0\r\ntls_handshake_failures:0\r\nacl_access_denied_auth:0\r\n")
}
