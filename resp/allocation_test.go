package resp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/wire"
)

func TestRatesDoNotAllocate(t *testing.T) {
	now := int64(testStart)
	s := newBenchSession(func() int64 { return now })
	for _, call := range []string{
		"RL.ALL a SLIDE 2 1m b TOKEN 100 100 1s c FIXED 100 1m", "RL.LEASE l 1 1m me", "RL.LEAKY p 10 1s QUEUE 5",
		"CL.THROTTLE t 100 100 60",
		"GCRA g 100 100 0.5 TOKENS 2", "THROTTLE h 100 100 60",
	} {
		list := words(strings.Fields(call)...)
		for range 3 {
			s.execute(list)
			s.flush()
		}
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			s.execute(list)
			s.flush()
		}), call)
	}
}

func BenchmarkAll(b *testing.B) {
	for _, call := range []string{
		"RL.SLIDE a 100 1m", "RL.ALL a SLIDE 100 1m", "RL.ALL a SLIDE 100 1m b TOKEN 100 100 1s c FIXED 100 1m",
		"RL.ALL a SLIDE 100 1m b SLIDE 100 1m c SLIDE 100 1m",
	} {
		b.Run(fmt.Sprint(call), func(b *testing.B) {
			now := int64(testStart)
			s := newBenchSession(func() int64 { now++; return now })
			list := words(strings.Fields(call)...)
			b.ReportAllocs()
			for b.Loop() {
				s.execute(list)
				s.flush()
			}
		})
	}
}

// newSession returns a session without a connection, of a server with a journal.
func newSession() *session {
	e := engine.New(engine.Options{Seed: [2]uint64{1, 2}, Journal: discardJournal{}})
	server := NewServer(Options{
		Engine: e, Journal: discardJournal{}, Clock: commandtest.ClockBy(commandtest.FrozenTime().Load),
		Log: slog.New(slog.DiscardHandler), Settings: config.NewSettings(config.Defaults{}), Version: "test",
	})
	s := server.newSession(wire.NewGuard(discardConn{}, config.NewConnectionLimits(), nil))
	s.setAuthenticated(true)
	return s
}

type discardJournal struct{}

func (discardJournal) Append(int64, []byte) engine.Position { return 1 }

func (discardJournal) Wait(engine.Position) error { return nil }

// reply executes one call and returns its raw reply, which is valid until the next call.
func (s *session) reply(words [][]byte) []byte {
	s.Reply.B = s.Reply.B[:0]
	s.execute(words)
	return s.Reply.B
}

func wordsOf(call string) (words [][]byte) {
	for _, w := range strings.Fields(call) {
		words = append(words, []byte(w))
	}
	return words
}

// hotCalls are the calls that applications send most. hotKeys create their keys.
var (
	hotKeys  = []string{"SET s text", "SET c 1000000", "HSET h f value n 1000000"}
	hotCalls = []string{
		"GET s", "GET missing", "STRLEN s", "GETRANGE s 0 1", "MGET s c missing",
		"SET s new!", "SET s text XX KEEPTTL", "INCR c", "DECRBY c 5", "INCREX limit UBOUND 1000000000 EX 60 ENX",
		"HGET h f", "HEXISTS h f", "HMGET h f n",
	}
)

func TestHotCallsDoNotAllocate(t *testing.T) {
	for _, call := range hotCalls {
		s, words := newSession(), wordsOf(call)
		for _, made := range hotKeys {
			require.NotEqual(t, byte('-'), s.reply(wordsOf(made))[0])
		}
		require.NotEqual(t, byte('-'), s.reply(words)[0], "%s: %s", call, s.Reply.B)
		assert.Zero(t, testing.AllocsPerRun(100, func() { s.reply(words) }), call)
	}
}

func BenchmarkHotCalls(b *testing.B) {
	for _, call := range append(hotCalls, "SET s text EX 60", "HSET h f value2", "HINCRBY h n 1", "INCRBYFLOAT x 0.5") {
		b.Run(strings.ReplaceAll(call, " ", "_"), func(b *testing.B) {
			s, words := newSession(), wordsOf(call)
			for _, made := range hotKeys {
				s.reply(wordsOf(made))
			}
			b.ReportAllocs()
			for b.Loop() {
				s.reply(words)
			}
		})
	}
}

// RL.CHECK reuses the buffers of earlier calls.
func TestCheckCallsDoNotAllocate(t *testing.T) {
	now := int64(testStart)
	s := newBenchSession(func() int64 { return now })
	for _, call := range []string{"RL.POLICY SET t TOKEN 100 100 1s", "RL.POLICY SET s SLIDE 2 1m", "RL.POLICY SET " +
		"f FIXED 5 day TZ Europe/Berlin SHADOW"} {
		s.execute(words(strings.Fields(call)...))
	}
	list := words("RL.CHECK", "ann", "t", "s", "f", "COST", "1")
	for range 3 {
		s.execute(list)
		s.flush()
	}
	allocs := testing.AllocsPerRun(100, func() {
		s.execute(list)
		s.flush()
	})
	assert.Zero(t, allocs)
}
