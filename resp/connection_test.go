package resp

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/wire"
)

func TestConnectionCommands(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"PING", "+PONG"},
		{"ping hello", "$5 hello"},
		{"PING a b", "-ERR wrong number of arguments for 'ping' command"},
		{"ECHO hi", "$2 hi"},
		{"ECHO", "-ERR wrong number of arguments for 'echo' command"},
		{"SELECT 15", "+OK"},
		{"SELECT 16", "-ERR DB index is out of range"},
		{"SELECT -1", "-ERR DB index is out of range"},
		{"SELECT a", "-ERR value is not an integer or out of range"},
		{"SELECT 99999999999", "-ERR value is out of range, value must between -2147483648 and 2147483647"},
		{
			"AUTH x",
			"-ERR AUTH <password> called without any password configured for the default user. Are you sure your " +
				"configuration is correct?",
		},
		{"AUTH default x", "+OK"},
		{"AUTH other x", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH a b c", "-ERR syntax error"},
		{"AUTH", "-ERR wrong number of arguments for 'auth' command"},
		{"NOPE", "-ERR unknown command 'NOPE', with args beginning with: "},
		{"NOPE a b", "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "},
		{"CLIENT NOPE", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP."},
		{"CLIENT", "-ERR wrong number of arguments for 'client' command"},
		{"CLIENT GETNAME x", "-ERR wrong number of arguments for 'client|getname' command"},
		{"RESET", "+RESET"},
		{"QUIT", "+OK"},
	})
}

func TestHello(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{
			"HELLO",
			"*14 $6 server $5 redis $7 version $6 7.0.15 $5 proto :2 $2 id :…$4 mode $10 standalone $4 role $6 " +
				"master $7 modules *0",
		},
		{"HELLO 3", "%7 $6 server …*0"},
		{"CLIENT GETNAME", "_"},
		{"HELLO 3 SETNAME me", "%7…*0"},
		{"CLIENT GETNAME", "$2 me"},
		{"HELLO", "…*0"},
		{"HELLO 1", "-NOPROTO unsupported protocol version"},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range"},
		{"HELLO 2 FOO", "-ERR Syntax error in HELLO option 'FOO'"},
		{"HELLO 2 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'"},
		{"HELLO 2 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"},
		{"HELLO 2 AUTH bad x", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"CLIENT GETNAME", "$2 me"},
		{"RESET", "+RESET"},
		{"CLIENT GETNAME", "$-1"},
		{"HELLO 2 AUTH default any SETNAME you", "*14…*0"},
		{"CLIENT GETNAME", "$3 you"},
	})
}

func TestPassword(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "sesame"})
	ts.dial().check([]answer{
		{"GET k", "-NOAUTH Authentication required."},
		{"PING", "-NOAUTH Authentication required."},
		{"NOPE", "-ERR unknown command 'NOPE', with args beginning with: "},
		{
			"HELLO 3",
			"-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> " +
				"<pass> option can be used to " +
				"authenticate the client and select the RESP protocol version at the same time",
		},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH default wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH other sesame", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"RESET", "+RESET"},
		{"AUTH sesame", "+OK"},
		{"PING", "+PONG"},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"PING", "+PONG"},
		{"RESET", "+RESET"},
		{"PING", "-NOAUTH Authentication required."},
		{"HELLO 3 AUTH default sesame", "…*0"},
		{"CONFIG SET requirepass other", "+OK"},
		{"PING", "+PONG"},
		{"QUIT", "+OK"},
	})
	ts.dial().check([]answer{
		{"AUTH sesame", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH other", "+OK"},
	})
}

func TestPasswordRemoved(t *testing.T) {
	ts := startServer(t, config.Defaults{"requirepass": "sesame"})
	out, in := ts.dial(), ts.dial()
	out.check([]answer{{"PING", "-NOAUTH Authentication required."}})
	in.check([]answer{{"AUTH sesame", "+OK"}, {"CONFIG GET requirepass", "*2 $11 requirepass $8 (hidden)"}})
	require.Equal(t, "+OK", in.send("CONFIG", "SET", "requirepass", ""))
	out.check([]answer{{"PING", "+PONG"}, {"HELLO", "*14…"}})
}

func TestQuitClosesAfterItsReply(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	_, err := c.Write([]byte("PING\r\nQUIT\r\nPING\r\n"))
	require.NoError(t, err)
	text, _ := io.ReadAll(c.r)
	require.Equal(t, "+PONG\r\n+OK\r\n", string(text))
}

// As in Redis, but with an error that says why.
func TestHTTPRequestsCloseTheConnection(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	want := "-ERR this port speaks the Redis protocol, not HTTP: metrics and health checks are at --http-port\r\n"
	for _, sent := range []string{"POST / HTTP/1.1\r\n", "Host: localhost:6379\r\nPING\r\n", "*1\r\n$4\r\npost\r\n"} {
		c := ts.dial()
		fmt.Fprint(c, sent)
		got, err := io.ReadAll(c.r)
		require.NoError(t, err)
		require.Equal(t, want, string(got), sent)
	}
}

func TestClientReply(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	for _, step := range []struct{ send, want string }{
		{"CLIENT REPLY ON\r\nPING\r\n", "+OK\r\n+PONG\r\n"},
		{"CLIENT REPLY SKIP\r\nPING one\r\nPING two\r\n", "$3\r\ntwo\r\n"},
		{"CLIENT REPLY OFF\r\nPING one\r\nNOPE\r\nCLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY ON\r\n", "+OK\r\n"},
		{"CLIENT REPLY OFF\r\nPING\r\nRESET\r\nPING\r\n", "+RESET\r\n+PONG\r\n"},
		{"CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n", "+PONG\r\n"},
		{"CLIENT REPLY MAYBE\r\n", "-ERR syntax error\r\n"},
	} {
		_, err := c.Write([]byte(step.send))
		require.NoError(t, err)
		got := make([]byte, len(step.want))
		_, err = io.ReadFull(c.r, got)
		require.NoError(t, err)
		require.Equal(t, step.want, string(got), step.send)
	}
}

// remoteConn is a connection with a made-up remote address.
type remoteConn struct {
	net.Conn
	from net.Addr
}

func (v remoteConn) RemoteAddr() net.Addr { return v.from }

type remoteListener struct {
	net.Listener
	from net.Addr
}

func (v remoteListener) Accept() (net.Conn, error) {
	conn, err := v.Listener.Accept()
	return remoteConn{conn, v.from}, err
}

func TestProtectedMode(t *testing.T) {
	for _, test := range []struct {
		from     string
		defaults config.Defaults
		want     string
	}{
		{"192.0.2.1", config.Defaults{"protected-mode": "yes"}, "-DENIED Redis is running in protected mode because"},
		{"192.0.2.1", config.Defaults{"protected-mode": "no"}, "+PONG"},
		{"192.0.2.1", config.Defaults{"protected-mode": "yes", "requirepass": "x"}, "-NOAUTH"},
		{"127.9.9.9", config.Defaults{"protected-mode": "yes"}, "+PONG"},
		{"::1", config.Defaults{"protected-mode": "yes"}, "+PONG"},
		{"2001:db8::1", config.Defaults{"protected-mode": "yes"}, "-DENIED"},
	} {
		ts := startServer(t, test.defaults)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go ts.Serve(remoteListener{ln, &net.TCPAddr{IP: net.ParseIP(test.from), Port: 1}})
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		fmt.Fprint(conn, "PING\r\nQUIT\r\n")
		text, _ := io.ReadAll(conn)
		require.Contains(t, string(text), test.want, "%+v", test)
		conn.Close()
		if strings.HasPrefix(test.want, "-DENIED") {
			require.Contains(t, ts.dial().do("INFO stats"), "rejected_connections:1", "%+v", test)
		}
	}
}

func TestMaxClients(t *testing.T) {
	ts := startServer(t, config.Defaults{"maxclients": "2"})
	first, second := ts.dial(), ts.dial()
	require.Equal(t, "+PONG", first.do("PING"))
	require.Equal(t, "+PONG", second.do("PING"))
	third := ts.dial()
	require.Equal(t, "-ERR max number of clients reached ", third.read())
	require.Equal(t, "+OK", first.do("CONFIG SET maxclients 3"))
	require.Equal(t, "+PONG", ts.dial().do("PING"))
	require.Contains(t, first.do("INFO stats"), "rejected_connections:1")
}

func TestMaxClientsIsLimitedByOpenFiles(t *testing.T) {
	c := startServer(t, config.Defaults{"maxclients": "5"}, func(o *Options) {
		o.Settings.Start.MaxPossibleClients = 10
	}).dial()
	require.Equal(t, "+OK", c.do("CONFIG SET maxclients 10"))
	require.Equal(t, "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - "+
		"The operating system is not able to handle the specified number of clients, try with 10", c.do("CONFIG SET "+
		"timeout 9 maxclients 11"))
	require.Equal(t, "*4 $10 maxclients $2 10 $7 timeout $1 0", c.do("CONFIG GET maxclients timeout"))
}

// A long call checks whether its client is still connected.
func TestGuardOfASessionDetectsDisconnect(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+PONG", c.send("PING"))
	var g *wire.Guard
	ts.mu.Lock()
	for _, s := range ts.sessions {
		g = s.guard
	}
	ts.mu.Unlock()
	assert.False(t, g.Gone())
	c.Close()
	assert.Eventually(t, g.Gone, time.Minute, time.Millisecond)
}

func TestClientNamesAreLimited(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	long := strings.Repeat("x", command.MaxWordLen+1)
	assert.Equal(t, "+OK", c.send("CLIENT", "SETNAME", long[1:]))
	assert.Equal(t, "-ERR Client names must not be longer than 65536 bytes.", c.send("CLIENT", "SETNAME", long))
	assert.Equal(t, "-ERR Client names must not be longer than 65536 bytes.", c.send("HELLO", "2", "SETNAME", long))
	assert.Equal(t, "-ERR LIB-NAME must not be longer than 65536 bytes.", c.send("CLIENT", "SETINFO", "LIB-NAME", long))
	assert.Equal(t, "$65536 "+long[1:], c.send("CLIENT", "GETNAME"))
}

// An argument that is far too long is refused as soon as its length arrives: the client need not
// send it, and it takes no memory.
func TestTooLongWordIsRefusedByItsLength(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	const want = "-ERR Protocol error: invalid bulk length: an argument of this command has at most 65536 bytes"
	for _, begin := range []string{
		strings.Replace(frame("RL.SLIDE", "key", "10", "1m", "ID", ""), "$0\r\n\r\n", "$419430400\r\n", 1),
		"*6\r\n$8\r\nrl.slide\r\n$419430400\r\n",
		"*5\r\n$9\r\nRL.POLICY\r\n$3\r\nSET\r\n$1114113\r\n",
	} {
		c := ts.dial()
		c.Write([]byte(begin))
		assert.Equal(t, want, strings.TrimSpace(c.read()), begin)
		c.requireClosed()
	}
	c := ts.dial()
	assert.Equal(t, "$-1", c.send("GET", strings.Repeat("k", 1114113)), "other keys may be as long as in Redis")
	assert.Contains(t, c.send("RL.TOKEN", strings.Repeat("k", 1<<20), "5", "5", "1s"), "key is too long")
}

// A client that has closed its side of the connection still gets the replies of calls that take at
// most a second.
func TestDisconnectEndsOnlyLongCalls(t *testing.T) {
	now := int64(testStart)
	server := newBenchSession(func() int64 { return now }).server
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	conn, err := ln.Accept()
	require.NoError(t, err)
	defer conn.Close()
	s := server.newSession(wire.NewGuard(conn, server.limits, server.Settings.Timeout))
	client.Close()
	require.Eventually(t, s.guard.Gone, time.Minute, time.Millisecond)
	now += 10_000
	s.updateProfile(nil, server.Time.Elapsed())
	now += 999
	assert.NoError(t, s.Call.Unwanted())
	now++
	assert.ErrorIs(t, s.Call.Unwanted(), command.ErrGone)
}

// A client that does not read its replies is idle, and timeout closes it.
func TestTimeoutClosesAClientThatDoesNotRead(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, "+PONG", c.do("PING"), "the server has accepted the connection")
	// in one batch, so that the client is not idle before
	_, err := c.Write([]byte("CONFIG SET timeout 1\r\nSETRANGE k 50000000 x\r\n" + strings.Repeat("GET k\r\n", 4)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ts.clients() == 0 }, time.Minute, time.Millisecond)
}
