package resp

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/wire"
)

// discardConn is a connection that discards replies and receives nothing.
type discardConn struct{ net.Conn }

func (discardConn) Write(p []byte) (int, error) { return len(p), nil }
func (discardConn) LocalAddr() net.Addr         { return &net.TCPAddr{} }
func (discardConn) RemoteAddr() net.Addr        { return &net.TCPAddr{} }

// newBenchSession returns a session without a connection, of a server of its own.
func newBenchSession(now func() int64) *session {
	settings := commandtest.Settings(nil)
	s := NewServer(Options{
		Engine: engine.New(engine.Options{}), Store: new(commandtest.Store), Clock: commandtest.ClockBy(now),
		Settings: settings,
		Log:      slog.New(slog.DiscardHandler),
	})
	return s.newSession(wire.NewGuard(discardConn{}, settings.Limits, settings.Timeout))
}

func words(call ...string) (list [][]byte) {
	for _, w := range call {
		list = append(list, []byte(w))
	}
	return list
}

// BenchmarkCall runs a call from its words to the reply that is sent.
func BenchmarkCall(b *testing.B) {
	for _, call := range [][]string{
		{"PING"},
		{"GET", "user:42"},
		{"SET", "user:42", "v"},
		{"INCR", "c"},
		{"RL.TOKEN", "user:42", "100", "100", "1s"},
		{"RL.FIXED", "user:42", "100", "1m"},
		{"RL.SLIDE", "user:42", "100", "1m"},
		{"RL.MULTI", "user:42", "100", "1m", "1000", "1h"},
		{"RL.CHECK", "42", "token"},
		{"RL.ALL", "user:42", "SLIDE", "100", "1m", "t:42", "TOKEN", "100", "100", "1s"},
	} {
		b.Run(call[0], func(b *testing.B) {
			now := int64(testStart)
			s := newBenchSession(func() int64 { now++; return now })
			s.execute(words("RL.POLICY", "SET", "token", "TOKEN", "100", "100", "1s"))
			list := words(call...)
			b.ReportAllocs()
			for b.Loop() {
				s.execute(list)
				s.flush()
			}
		})
	}
}

// restrict logs a session in as a user with key patterns.
func (s *session) restrict(tb testing.TB) {
	require.NoError(
		tb,
		s.server.Users.Set("ann", strings.Fields("on nopass +@all -@dangerous ~other:* ~user:* ~[a-z] ~token:*")),
	)
	require.NoError(tb, s.login([]byte("ann"), nil))
}

// BenchmarkRestrictedUser compares the cost of calls of a restricted user with those of the default
// user.
func BenchmarkRestrictedUser(b *testing.B) {
	for _, user := range []string{"default", "restricted"} {
		for _, call := range [][]string{
			{"GET", "user:42"}, {"RL.TOKEN", "user:42", "100", "100", "1s"}, {"RL.CHECK", "42", "token"},
			{"RL.ALL", "user:42", "SLIDE", "100", "1m", "t:42", "TOKEN", "100", "100", "1s"},
		} {
			b.Run(user+"/"+call[0], func(b *testing.B) {
				now := int64(testStart)
				s := newBenchSession(func() int64 { now++; return now })
				s.execute(words("RL.POLICY", "SET", "token", "TOKEN", "100", "100", "1s"))
				if user == "restricted" {
					s.restrict(b)
				}
				list := words(call...)
				b.ReportAllocs()
				for b.Loop() {
					s.execute(list)
					s.flush()
				}
			})
		}
	}
}

// The common calls do not allocate.
func TestCallsDoNotAllocate(t *testing.T) {
	for _, restricted := range []bool{false, true} {
		t.Run(fmt.Sprint("restricted ", restricted), func(t *testing.T) { testCallsDoNotAllocate(t, restricted) })
	}
}

func testCallsDoNotAllocate(t *testing.T, restricted bool) {
	now := int64(testStart)
	s := newBenchSession(func() int64 { return now })
	if restricted {
		s.restrict(t)
	}
	for _, call := range [][]string{
		{"PING"}, {"RL.TOKEN", "t", "100", "100", "1s"}, {"RL.FIXED", "f", "100", "1m"}, {"RL.SLIDE", "s", "2", "1m"},
		{"RL.FIXED", "d", "1", "day", "TZ", "Europe/Berlin"},
	} {
		list := words(call...)
		for range 3 { // the first calls allocate the key and the buffers
			s.execute(list)
			s.flush()
		}
		allocs := testing.AllocsPerRun(100, func() {
			s.execute(list)
			s.flush()
		})
		if allocs != 0 {
			t.Errorf("%v allocates %v times", call, allocs)
		}
	}
}
