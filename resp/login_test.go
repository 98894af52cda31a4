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

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/certs"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/wire"
)

func connect(p *commandtest.Pipes) *bufio.ReadWriter {
	client, server := net.Pipe()
	p.Arrive(server)
	return bufio.NewReadWriter(bufio.NewReader(client), bufio.NewWriterSize(client, 0))
}

// withLogins runs a server in a synctest bubble.
func withLogins(t *testing.T, d config.Defaults, log io.Writer,
	test func(t *testing.T, ts *Server, p *commandtest.Pipes)) {

	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		server := NewServer(Options{
			Engine: engine.New(engine.Options{Databases: 16}),
			Clock:  commandtest.ClockBy(func() int64 { return testStart + time.Since(start).Milliseconds() }),
			Log:    slog.New(slog.NewTextHandler(log, nil)), Settings: commandtest.Settings(d), Version: "test",
		})
		p := commandtest.NewPipes()
		go server.Serve(p)
		test(t, server, p)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		server.Shutdown(ctx)
	})
}

// fromAddress is a connection that comes from an address.
type fromAddress struct {
	net.Conn
	address net.TCPAddr
}

func (c fromAddress) RemoteAddr() net.Addr { return &c.address }

func connectFrom(p *commandtest.Pipes, address string) *bufio.ReadWriter {
	client, server := net.Pipe()
	p.Arrive(fromAddress{server, *net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 5000))})
	return bufio.NewReadWriter(bufio.NewReader(client), bufio.NewWriterSize(client, 0))
}

// Failed logins of an address are limited, on all of its connections and by AUTH and HELLO alike.
// Above the limit no password is checked. Other addresses are not affected.
func TestFailedLoginsAreLimitedByAddress(t *testing.T) {
	d := config.Defaults{"requirepass": "sesame", "preauth-timeout": "60"}
	withLogins(t, d, io.Discard, func(t *testing.T, s *Server, p *commandtest.Pipes) {
		s.Settings.Logins.PerAddress.Store(6)
		const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		const refused = "-ERR too many logins from this address or its network have failed (see login-failures): " +
			"this one was not checked, try again in 10.0 s\r\n"
		start := time.Now()
		ask := func(address, text string, want ...string) {
			t.Helper()
			c := connectFrom(p, address)
			go func() { fmt.Fprint(c, text); c.Flush() }()
			for _, want := range want {
				line, err := c.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, want, line)
			}
		}
		ask("192.0.2.1", "AUTH x\r\nAUTH ann x\r\nAUTH sesame\r\nAUTH x\r\n", wrong, wrong, "+OK\r\n", wrong)
		ask("192.0.2.1", "HELLO 2 AUTH default x\r\nHELLO 3 AUTH ann x\r\nAUTH x\r\nAUTH x\r\n",
			wrong, wrong, wrong, refused)
		ask("::ffff:192.0.2.1", "AUTH sesame\r\nHELLO 2 AUTH default sesame\r\nPING\r\n", refused, refused,
			"-NOAUTH Authentication required.\r\n")
		ask("192.0.2.2", "AUTH sesame\r\nPING\r\n", "+OK\r\n", "+PONG\r\n")
		for i := range 7 {
			ask(fmt.Sprintf("2001:db8::%d", i), "AUTH x\r\n", map[bool]string{true: wrong, false: refused}[i < 6])
		}
		ask("2001:db8:0:1::1", "AUTH sesame\r\n", "+OK\r\n")
		require.Zero(t, time.Since(start), "every login is answered at once")
		time.Sleep(10 * time.Second)
		ask("192.0.2.1", "AUTH sesame\r\nINFO stats\r\n", "+OK\r\n")
		require.EqualValues(t, 4, s.Logins.Refused())
		require.EqualValues(t, 12, s.AccessLog.Count(acl.DeniedAuth), "others were not checked")
		ask("192.0.2.1", "AUTH sesame\r\nCONFIG RESETSTAT\r\n", "+OK\r\n", "+OK\r\n")
		require.Zero(t, s.Logins.Refused())
	})
}

func TestLoginLimitsAreSettings(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxclients": "10", "requirepass": "sesame"})
	c := ts.dial()
	for range 40 {
		c.do("AUTH x")
	}
	ts.Settings.Logins.PerAddress.Store(0)
	require.Equal(t, "+OK", c.do("AUTH sesame"))
	require.Contains(t, c.do("INFO stats"), "login_refusals:10\r\nlogin_addresses:1\r\n")
	require.Equal(t, "+OK", c.do("CONFIG SET login-failures 2 login-failures-exempt 10.0.0.0/8,192.0.2.7"))
	require.Equal(t, "*8 $14 login-failures $1 2 $20 login-failures-total $3 600 $24 login-failures-addresses "+
		"$5 16384 $21 login-failures-exempt $23 10.0.0.0/8 192.0.2.7/32", c.do("CONFIG GET login-failures*"))
	require.Contains(t, c.do("CONFIG SET login-failures-exempt 10.0.0.0/99"),
		"'10.0.0.0/99' is not an address or a network such as 10.0.0.0/8")
	require.Equal(t, "+OK", c.do("CONFIG SET login-failures-exempt 127.0.0.1"))
	for range 100 {
		require.Contains(t, c.do("AUTH x"), "-WRONGPASS")
	}
}

func TestFailedLoginsAreLoggedOnceASecond(t *testing.T) {
	var log commandtest.LogBuffer
	withLogins(t, config.Defaults{"requirepass": "sesame"}, &log, func(t *testing.T, s *Server, p *commandtest.Pipes) {
		for range 20 {
			c := connect(p)
			go func() { fmt.Fprint(c, "AUTH guess\r\n"); c.Flush() }()
			_, err := c.ReadString('\n')
			require.NoError(t, err)
			time.Sleep(250 * time.Millisecond)
		}
		assert.EqualValues(t, 20, s.AccessLog.Count(acl.DeniedAuth))
		assert.LessOrEqual(t, strings.Count(log.String(), "\n"), 6, "in 5 seconds")
		assert.Contains(t, log.String(), "others_since_the_last_line=3")
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
				config.Defaults{"requirepass": "sesame", "preauth-timeout": "10"},
				io.Discard,
				func(t *testing.T, s *Server, p *commandtest.Pipes) {
					client, server := net.Pipe()
					start := time.Now()
					p.Arrive(server)
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
		config.Defaults{"requirepass": "sesame", "preauth-timeout": "10"},
		io.Discard,
		func(t *testing.T, s *Server, p *commandtest.Pipes) {
			c := connect(p)
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
		config.Defaults{"preauth-timeout": "10"},
		io.Discard,
		func(t *testing.T, s *Server, p *commandtest.Pipes) {
			c := connect(p)
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
	ts := startServer(t, config.Defaults{"maxclients": "4", "reserved-clients": "1"})
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
	ts = startServer(t, config.Defaults{"maxclients": "4", "reserved-clients": "100"})
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

// Clients of this machine that do not log in must not take the places of its operators.
func TestClientsWithoutLoginMakePlaceForOperators(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxclients": "4", "reserved-clients": "1", "requirepass": "sesame"})
	var strangers []net.Conn
	for i := range 4 {
		conn, err := net.Dial("tcp", ts.addr)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, "P") // half a call
		strangers = append(strangers, conn)
		require.Eventually(t, func() bool { return ts.clients() == i+1 }, 10*time.Second, time.Millisecond)
	}
	var operators []*testClient
	for i := range 4 {
		operators = append(operators, ts.dial())
		require.Equal(t, "+OK", operators[i].do("AUTH sesame"))
		_, err := strangers[i].Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the oldest of them is closed")
	}
	require.Equal(t, "-ERR max number of clients reached ", ts.dial().read(), "all have logged in")
	require.Contains(t, operators[0].do("INFO stats"), "rejected_connections:5\r\n")

	// Without a password, a client has its place from its first call on.
	require.Equal(t, "+OK", operators[0].send("CONFIG", "SET", "requirepass", ""))
	operators[3].Quit()
	conn, err := net.Dial("tcp", ts.addr)
	require.NoError(t, err)
	defer conn.Close()
	require.Eventually(t, func() bool { return ts.clients() == 4 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "+PONG", ts.dial().do("PING"))
	require.Equal(t, "-ERR max number of clients reached ", ts.dial().read())
}

// A client that has not logged in makes place before an older one that has, and only has not called
// anything yet.
func TestClientsWithoutLoginMakePlaceFirst(t *testing.T) {
	s := startTLS(t, certs.None, config.Defaults{"maxclients": "2"})
	idle := s.dial() // no password is needed
	require.Eventually(t, func() bool { return s.clients() == 1 }, 10*time.Second, time.Millisecond)
	halfway := s.raw() // its handshake is not complete
	require.Eventually(t, func() bool { return s.clients() == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, "+PONG", s.dial().do("PING"))
	halfway.requireClosed()
	require.Equal(t, "+PONG", idle.do("PING"))
}

// A client that keeps calling without a login is closed, whatever it calls.
func TestClientsThatAreRefusedOftenAreClosed(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "sesame"})
	for i, call := range []string{"PING", "HELLO 3", "NOSUCH a b", "MULTI", "EXEC", "RESET", "GET", "RL.SLIDE k 1 1s"} {
		conn, err := net.Dial("tcp", ts.addr)
		require.NoError(t, err)
		go func() {
			fmt.Fprint(conn, strings.Repeat(call+"\r\n", 2000), call) // the last one is incomplete
		}()
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		replies, _ := io.ReadAll(conn)
		conn.Close()
		require.Equal(t, maxRefused, strings.Count(string(replies), "\r\n"), "%s: %s", call, replies)
		require.EqualValues(t, i+1, ts.loginTimeouts.Load())
	}
	c := ts.dial()
	for range maxRefused - 1 {
		require.Equal(t, "-NOAUTH Authentication required.", c.do("PING"))
	}
	require.Equal(t, "+OK", c.do("AUTH sesame"))
	require.Equal(t, "+RESET", c.do("RESET"))
	for range maxRefused - 2 {
		require.Equal(t, "-NOAUTH Authentication required.", c.do("PING"))
	}
	require.Equal(t, "+OK", c.do("AUTH sesame"))
}

// A call counts once among those that were refused, also if CLIENT PAUSE held it back.
func TestPausedCallsAreRefusedOnce(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "sesame"})
	operator, c := ts.dial(), ts.dial()
	require.Equal(t, "+OK", operator.do("AUTH sesame"))
	for range maxRefused - 2 {
		require.Equal(t, "-NOAUTH Authentication required.", c.do("PING"))
	}
	require.Equal(t, "+OK", operator.do("CLIENT PAUSE 5 ALL"))
	io.WriteString(c, frame("AUTH", "wrong"))
	require.Eventually(t, func() bool { return ts.held.Load() == 1 }, time.Minute, time.Millisecond)
	ts.advance(5)
	require.Contains(t, c.read(), "-WRONGPASS")
	require.Equal(t, "+OK", c.do("AUTH sesame"))
	require.Equal(t, "+PONG", c.do("PING"))
}

// A rule on DEBUG is one on DEBUG OBJECT too, which has a key.
func TestRulesOnDebugDenyDebugObject(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	for _, rule := range []string{"-@dangerous", "-@admin", "-debug"} {
		require.Equal(t, "+OK", c.do("ACL SETUSER b on nopass ~* +@all "+rule))
		assert.Contains(t, c.do("ACL DRYRUN b debug object k"), "no permissions", rule)
		b := ts.dial()
		require.Equal(t, "+OK", b.do("AUTH b x"))
		assert.Contains(t, b.do("DEBUG OBJECT k"), "-NOPERM", rule)
	}
}
