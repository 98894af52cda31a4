package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
)

// fillSet adds members <from> up to but not <to> to a key, with their numbers for scores.
func fillSet(t *testing.T, s *session, key string, from, to int) {
	k := s.server.engine.Key([]byte(key))
	var members []engine.ZMember
	for i := from; i < to; i++ {
		members = append(members, engine.ZMember{Member: fmt.Append(nil, "m", i), Score: float64(i)})
	}
	s.tx.Begin(testStart, 0, []engine.Key{k}, true)
	_, _, err := s.tx.ZAdd(k, 0, members)
	require.NoError(t, err)
	s.tx.End()
}

// answers runs a call and gives its raw reply.
func (s *session) answers(call string) string {
	s.reply.b = s.reply.b[:0]
	s.execute(words(strings.Fields(call)...))
	return string(s.reply.b)
}

// What is worked out without locks is what is worked out under them.
func TestLongSetCommands(t *testing.T) {
	s := newBenchSession(func() int64 { return testStart })
	fillSet(t, s, "a", 0, 60_000)
	fillSet(t, s, "b", 30_000, 90_000)
	fillSet(t, s, "few", 0, 10)
	for _, c := range [][2]string{
		{"ZUNIONSTORE u 2 a b", ":90000"},
		{"ZUNIONSTORE u 2 few b", ":60010"},
		{"ZINTERSTORE i 2 a b WEIGHTS 1 0", ":30000"},
		{"ZINTERSTORE i2 2 a few", ":10"},
		{"ZDIFFSTORE d 2 a b", ":30000"},
		{"ZDIFFSTORE a2 2 a few", ":59990"},
		{"ZRANGESTORE r a 10 50009", ":50000"},
		{"ZRANGESTORE r a 59999 0 BYSCORE REV", ":60000"},
		{"ZINTERCARD 2 a b", ":30000"},
		{"ZINTERCARD 2 a b LIMIT 7", ":7"},
		{"ZUNION 2 a b", "*90000"},
		{"ZINTER 2 a b WITHSCORES", "*60000"},
		{"ZDIFF 2 a b", "*30000"},
		{"ZRANGE a 0 -1", "*60000"},
		{"ZREVRANGE a 0 -1 WITHSCORES", "*120000"},
		{"ZUNIONSTORE missing 1 nothing", ":0"},
		{"ZUNIONSTORE few 2 few b AGGREGATE MAX", ":60010"},
	} {
		reply, _, _ := strings.Cut(s.answers(c[0]), "\r\n")
		assert.Equal(t, c[1], reply, c[0])
	}
	assert.Equal(t, "$5\r\n30007\r\n", s.answers("ZSCORE i m30007"))
	assert.Equal(t, "$-1\r\n", s.answers("ZSCORE d m30007"))
	assert.Equal(t, ":29999\r\n", s.answers("ZRANK d m29999"))
	text := s.answers("ZRANGE a 59998 -1 WITHSCORES")
	assert.True(t, strings.HasSuffix(s.answers("ZRANGE a 0 -1 WITHSCORES"), text[strings.Index(text, "$"):]))

	s.answers("MULTI")
	s.answers("ZUNIONSTORE u 2 a b")
	s.answers("ZRANGE a 0 5000")
	s.answers("ZCARD u")
	reply := s.answers("EXEC")
	assert.True(t, strings.HasPrefix(reply, "*3\r\n:90000\r\n*5001\r\n$2\r\nm0\r\n"))
	assert.True(t, strings.HasSuffix(reply, "\r\n:90000\r\n"))
}

// A result is stored only if its sources are still what it was made of. Otherwise it is made anew, the last time under the locks.
func TestStoringSeesChanges(t *testing.T) {
	for _, last := range []bool{false, true} {
		s := newBenchSession(func() int64 { return testStart })
		fillSet(t, s, "a", 0, 10)
		e, other := s.server.engine, newBenchSession(func() int64 { return testStart })
		other.tx = s.server.engine.NewTx()
		other.server = s.server
		keys := []engine.Key{e.Key([]byte("dst")), e.Key([]byte("a"))}
		disturbed := 0
		w := &storing{dst: keys[0], sources: keys[1:], keys: keys, combine: func(sets []engine.ZSet) engine.ZMembers {
			if disturbed == 0 {
				disturbed++
				fillSet(t, other, "a", 10, 20)
			}
			return s.tx.ZUnion(sets, nil, 0)
		}}
		s.tx.Begin(testStart, 0, keys, true)
		sets, err := s.tx.ZSets(w.sources)
		require.NoError(t, err)
		w.watch(s.tx, sets)
		s.tx.End()

		done, err := w.try(&s.call, last)
		require.NoError(t, err)
		assert.Equal(t, last, done)
		if !last {
			assert.Empty(t, s.reply.b)
			done, err = w.try(&s.call, false)
			require.NoError(t, err)
			assert.True(t, done)
		}
		assert.Equal(t, ":20\r\n", string(s.reply.b))
		assert.Equal(t, ":20\r\n", s.answers("ZCARD dst"))
	}
}

// A source that is no sorted set any more is told of, and nothing is stored.
func TestStoringSeesOtherTypes(t *testing.T) {
	s := newBenchSession(func() int64 { return testStart })
	fillSet(t, s, "a", 0, 10)
	keys := []engine.Key{s.server.engine.Key([]byte("dst")), s.server.engine.Key([]byte("a"))}
	w := &storing{dst: keys[0], sources: keys[1:], keys: keys, combine: func(sets []engine.ZSet) engine.ZMembers { return s.tx.ZUnion(sets, nil, 0) }}
	s.tx.Begin(testStart, 0, keys, true)
	sets, err := s.tx.ZSets(w.sources)
	require.NoError(t, err)
	w.watch(s.tx, sets)
	s.tx.Set(keys[1], []byte("text"), engine.SetMode{})
	s.tx.End()
	done, err := w.try(&s.call, false)
	assert.True(t, done)
	assert.ErrorIs(t, err, engine.ErrWrongType)
	assert.Equal(t, ":0\r\n", s.answers("EXISTS dst"))
}
