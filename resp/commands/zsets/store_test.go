package zsets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/commands/zsets"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
	"rlserver/zset"
)

// fillSet adds the members m<from> to m<to-1> to a key, with their numbers as scores.
func fillSet(t *testing.T, tx *engine.Tx, k engine.Key, from, to int) {
	var members []zset.Member
	for i := from; i < to; i++ {
		members = append(members, zset.Member{Member: fmt.Append(nil, "m", i), Score: float64(i)})
	}
	tx.Begin(commandtest.Start, 0, []engine.Key{k}, true)
	_, _, err := tx.ZAdd(k, 0, members)
	require.NoError(t, err)
	tx.End()
}

// Results that are computed without locks equal those computed under them.
func TestLongSetCommands(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	e, tx, c := ts.Engine, ts.Engine.NewTx(), ts.Dial()
	fillSet(t, tx, e.Key([]byte("a")), 0, 60_000)
	fillSet(t, tx, e.Key([]byte("b")), 30_000, 90_000)
	fillSet(t, tx, e.Key([]byte("few")), 0, 10)
	for _, step := range [][2]string{
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
		reply, _, _ := strings.Cut(c.Do(step[0]), " ")
		assert.Equal(t, step[1], reply, step[0])
	}
	assert.Equal(t, "$5 30007", c.Do("ZSCORE i m30007"))
	assert.Equal(t, "$-1", c.Do("ZSCORE d m30007"))
	assert.Equal(t, ":29999", c.Do("ZRANK d m29999"))
	text := c.Do("ZRANGE a 59998 -1 WITHSCORES")
	assert.True(t, strings.HasSuffix(c.Do("ZRANGE a 0 -1 WITHSCORES"), text[strings.Index(text, "$"):]))

	c.Do("MULTI")
	c.Do("ZUNIONSTORE u 2 a b")
	c.Do("ZRANGE a 0 5000")
	c.Do("ZCARD u")
	reply := c.Do("EXEC")
	assert.True(t, strings.HasPrefix(reply, "*3 :90000 *5001 $2 m0"))
	assert.True(t, strings.HasSuffix(reply, " :90000"))
}

// A result is stored only if its sources have not changed since they were read. Otherwise it is
// computed again, the last time under the locks.
func TestStoringDetectsChanges(t *testing.T) {
	for _, last := range []bool{false, true} {
		s := commandtest.New(t)
		fillSet(t, s.Tx, s.Env.Engine.Key([]byte("a")), 0, 10)
		e := s.Env.Engine
		other := e.NewTx()
		keys := []engine.Key{e.Key([]byte("dst")), e.Key([]byte("a"))}
		changes := 0
		w := &zsets.Storing{
			Dst:     keys[0],
			Sources: keys[1:],
			Keys:    keys,
			Combine: func(sets []zset.View) zset.Members {
				if changes == 0 {
					changes++
					fillSet(t, other, keys[1], 10, 20)
				}
				return s.Tx.ZUnion(sets, nil, 0)
			},
		}
		s.Tx.Begin(commandtest.Start, 0, keys, true)
		sets, err := s.Tx.ZSets(w.Sources)
		require.NoError(t, err)
		w.Watch(s.Tx, sets)
		s.Tx.End()

		done, err := w.Try(&s.Call, last)
		require.NoError(t, err)
		assert.Equal(t, last, done)
		if !last {
			assert.Empty(t, s.Reply.B)
			done, err = w.Try(&s.Call, false)
			require.NoError(t, err)
			assert.True(t, done)
		}
		assert.Equal(t, ":20\r\n", string(s.Reply.B))
		assert.Equal(t, ":20", s.Do("ZCARD dst"))
	}
}

// If a source has become another type, the call returns an error and stores nothing.
func TestStoringDetectsATypeChange(t *testing.T) {
	s := commandtest.New(t)
	fillSet(t, s.Tx, s.Env.Engine.Key([]byte("a")), 0, 10)
	keys := []engine.Key{s.Env.Engine.Key([]byte("dst")), s.Env.Engine.Key([]byte("a"))}
	w := &zsets.Storing{
		Dst:     keys[0],
		Sources: keys[1:],
		Keys:    keys,
		Combine: func(sets []zset.View) zset.Members { return s.Tx.ZUnion(sets, nil, 0) },
	}
	s.Tx.Begin(commandtest.Start, 0, keys, true)
	sets, err := s.Tx.ZSets(w.Sources)
	require.NoError(t, err)
	w.Watch(s.Tx, sets)
	s.Tx.Set(keys[1], []byte("text"), engine.SetMode{})
	s.Tx.End()
	done, err := w.Try(&s.Call, false)
	assert.True(t, done)
	assert.ErrorIs(t, err, engine.ErrWrongType)
	assert.Equal(t, ":0", s.Do("EXISTS dst"))
}

// A result that was computed without locks is not stored in a pause that has begun meanwhile.
func TestStoringWaitsForTheEndOfAPause(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		s := commandtest.New(t)
		fillSet(t, s.Tx, s.Env.Engine.Key([]byte("a")), 0, 10)
		keys := []engine.Key{s.Env.Engine.Key([]byte("dst")), s.Env.Engine.Key([]byte("a"))}
		w := &zsets.Storing{
			Dst: keys[0], Sources: keys[1:], Keys: keys,
			Combine: func(sets []zset.View) zset.Members { return s.Tx.ZUnion(sets, nil, 0) },
		}
		s.Tx.Begin(commandtest.Start, 0, keys, true)
		sets, err := s.Tx.ZSets(w.Sources)
		require.NoError(t, err)
		w.Watch(s.Tx, sets)
		s.Tx.End()

		paused := false
		s.OnPause = func() bool {
			other := s.Env.Engine.NewTx()
			other.Begin(commandtest.Start, 0, keys, false)
			defer other.End()
			paused = true
			assert.False(t, other.Exists(keys[0]))
			return !leaves
		}
		done, err := w.Try(&s.Call, false)
		require.NoError(t, err)
		assert.True(t, done)
		assert.True(t, paused)
		if leaves {
			assert.Equal(t, ":0", s.Do("EXISTS dst"))
		} else {
			assert.Equal(t, ":10", s.Do("ZCARD dst"))
		}
	}
}
