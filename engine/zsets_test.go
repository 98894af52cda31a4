package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/zset"
)

// zbench is an engine with a recorder, and a call that holds three keys.
type zbench struct {
	*Tx
	log     *recorder
	a, b, s Key // a holds a sorted set, b nothing, s a string
}

func newZBench(t *testing.T) *zbench {
	log := new(recorder)
	e := New(Options{Journal: log})
	z := &zbench{Tx: e.NewTx(), log: log, a: e.Key([]byte("a")), b: e.Key([]byte("b")), s: e.Key([]byte("s"))}
	z.Begin(epoch, 0, []Key{z.a, z.b, z.s}, true)
	z.apply(nil, &effect.Effect{Kind: effect.String, Key: z.s, Value: []byte("v")})
	_, _, err := z.ZAdd(z.a, 0, zmembers("one", 1, "two", 2, "three", 3))
	require.NoError(t, err)
	z.next()
	t.Cleanup(func() { z.End() })
	return z
}

// next ends the call, begins another one, and returns the kinds of the first one's effects.
func (z *zbench) next() (kinds []effect.Kind) {
	z.End()
	z.Begin(epoch, 0, []Key{z.a, z.b, z.s}, true)
	for _, f := range z.log.effects() {
		kinds = append(kinds, f.Kind)
	}
	z.log.calls = nil
	return kinds
}

// zmembers makes members of a list of names and scores.
func zmembers(list ...any) (members []zset.Member) {
	for i := 0; i < len(list); i += 2 {
		members = append(members, zset.Member{Member: []byte(list[i].(string)), Score: float64(list[i+1].(int))})
	}
	return members
}

// listed returns members as text: "one 1, two 2".
func listed(members zset.Members) (text string) {
	for member, score := range members.All() {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %v", member, score)
	}
	return text
}

var zall = zset.Range{Stop: -1}

func (z *zbench) holds(t *testing.T, k Key, want string) {
	t.Helper()
	set, err := z.ZSet(k)
	require.NoError(t, err)
	assert.Equal(t, want, listed(set.Range(&zall)))
}

func TestUnchangedSortedSetHasNoEffect(t *testing.T) {
	z := newZBench(t)
	for name, call := range map[string]func() error{
		"the same score": func() error {
			_, _,
				err := z.ZAdd(z.a, 0, zmembers("one", 1, "two", 2))
			return err
		},
		"zero, other sign":  func() error { _, _, err := z.ZAdd(z.a, zset.IfNX, zmembers("one", 0)); return err },
		"NX":                func() error { _, _, err := z.ZAdd(z.a, zset.IfNX, zmembers("one", 9)); return err },
		"XX":                func() error { _, _, err := z.ZAdd(z.b, zset.IfXX, zmembers("one", 9)); return err },
		"an increment by 0": func() error { _, _, err := z.ZIncrBy(z.a, 0, []byte("one"), 0); return err },
		"no such member":    func() error { _, err := z.ZRem(z.a, [][]byte{[]byte("none")}); return err },
		"no such key":       func() error { _, err := z.ZRem(z.b, [][]byte{[]byte("one")}); return err },
		"an empty range": func() error {
			_, err := z.ZRemRange(z.a, &zset.Range{Start: 7, Stop: 9})
			return err
		},
		"a range of a missing key": func() error { _, err := z.ZRemRange(z.b, &zall); return err },
		"a count of 0": func() error {
			_,
				err := z.ZPop([]Key{z.b, z.a}, 0, true, func(Key, zset.Members) {})
			return err
		},
		"an empty result for a missing key": func() error { z.ZStore(z.b, zset.Members{}); return nil },
	} {
		require.NoError(t, call(), name)
		assert.Empty(t, z.next(), name)
	}
	z.holds(t, z.a, "one 1, two 2, three 3")
}

func TestSortedSetErrorsChangeNothing(t *testing.T) {
	z := newZBench(t)
	for name, call := range map[string]func() error{
		"ZSet":      func() error { _, err := z.ZSet(z.s); return err },
		"ZSets":     func() error { _, err := z.ZSets([]Key{z.a, z.b, z.s}); return err },
		"ZAdd":      func() error { _, _, err := z.ZAdd(z.s, 0, zmembers("one", 1)); return err },
		"ZIncrBy":   func() error { _, _, err := z.ZIncrBy(z.s, 0, []byte("one"), 1); return err },
		"ZRem":      func() error { _, err := z.ZRem(z.s, [][]byte{[]byte("one")}); return err },
		"ZRemRange": func() error { _, err := z.ZRemRange(z.s, &zall); return err },
		"ZPop": func() error {
			_, err := z.ZPop([]Key{z.b, z.s, z.a}, 1, false,
				func(Key, zset.Members) {})
			return err
		},
	} {
		require.ErrorIs(t, call(), ErrWrongType, name)
		assert.Empty(t, z.next(), name)
	}

	_, _, err := z.ZAdd(z.a, 0, []zset.Member{{Member: []byte("one"), Score: math.Inf(1)}})
	require.NoError(t, err)
	z.next()
	_, _, err = z.ZIncrBy(z.a, 0, []byte("one"), math.Inf(-1))
	require.ErrorIs(t, err, ErrScoreNaN)
	_, ok, err := z.ZIncrBy(z.a, zset.IfNX, []byte("one"), math.Inf(-1))
	require.NoError(t, err, "NX is checked before the sum")
	assert.False(t, ok)
	assert.Empty(t, z.next())
}

func TestRemovingManyIsOneEffect(t *testing.T) {
	z := newZBench(t)
	n, err := z.ZRemRange(z.a, &zset.Range{By: zset.ByScore, Scores: zset.ScoreRange{Min: 2, Max: 3}})
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []effect.Kind{effect.RemoveSpan}, z.next())
	z.holds(t, z.a, "one 1")

	n, err = z.ZRem(z.a, [][]byte{[]byte("one"), []byte("one")})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, []effect.Kind{effect.Remove}, z.next())
	assert.Equal(t, object.TypeNone, z.Type(z.a), "an empty sorted set's key is deleted")
}

func TestStoringIsOneEffect(t *testing.T) {
	z := newZBench(t)
	a, err := z.ZSet(z.a)
	require.NoError(t, err)
	assert.Equal(t, 2, z.ZStore(z.s, a.Range(&zset.Range{Start: 1, Stop: 2})), "a key of another type is replaced")
	assert.Equal(t, []effect.Kind{effect.ZSet}, z.next())
	z.holds(t, z.s, "two 2, three 3")

	z.Expire(z.a, epoch+1000, 0)
	assert.Equal(t, 2, z.ZStore(z.a, a.Range(&zset.Range{Stop: 1})), "its source is replaced")
	z.holds(t, z.a, "one 1, two 2")
	deadline, _ := z.Deadline(z.a)
	assert.Zero(t, deadline)
	z.next()

	assert.Equal(t, 0, z.ZStore(z.a, zset.Members{}))
	assert.Equal(t, []effect.Kind{effect.Delete}, z.next())
}

// The recorded members stay intact when a removal from a packed sorted set moves those after it.
func TestJournalNamesStoredMembers(t *testing.T) {
	z := newZBench(t)
	a, err := z.ZSet(z.a)
	require.NoError(t, err)
	z.ZStore(z.b, a.Range(&zall))
	_, err = z.ZRem(z.a, [][]byte{[]byte("two")})
	require.NoError(t, err)
	z.End()
	replica := New(Options{})
	require.NoError(t, replica.Apply(0, z.log.effects()[:1]))
	assert.Equal(t, []string{`0 "b": zset, deadline 0: "one"=1 "two"=2 "three"=3 `}, dump(replica))
	z.next()
}

func TestPopVisitsMembersBeforeRemoval(t *testing.T) {
	z := newZBench(t)
	var seen []string
	see := func(from Key, popped zset.Members) { seen = append(seen, string(from.Name)+": "+listed(popped)) }
	for _, call := range []struct {
		n        int64
		greatest bool
		want     string
	}{
		{1, true, "a: three 3"},
		{0, true, "a: "},
		{math.MaxInt64, false, "a: one 1, two 2"},
	} {
		found, err := z.ZPop([]Key{z.b, z.a, z.s}, call.n, call.greatest, see)
		require.NoError(t, err)
		assert.True(t, found)
		assert.Equal(t, call.want, seen[len(seen)-1])
	}
	found, err := z.ZPop([]Key{z.b, z.a}, 1, false, see)
	require.NoError(t, err)
	assert.False(t, found)
	assert.Len(t, seen, 3)
}

// All 20 choices of 3 from 6 are equally likely: each comes 1,000 times in 20,000 samples, within 5
// standard deviations.
func TestDifferentRanksIsFair(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := make(map[[3]int]int)
	for range 20_000 {
		ranks := zset.DifferentRanks(r, 3, 6)
		slices.Sort(ranks)
		seen[[3]int(ranks)]++
	}
	require.Len(t, seen, 20)
	for choice, n := range seen {
		assert.InDelta(t, 1000, n, 5*math.Sqrt(1000*0.95), "%v", choice)
	}
}
