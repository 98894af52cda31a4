package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/bitmap"
	"rlserver/engine/limit"
)

const held = "held" // the key that the effects of these tests are about

// holding one of each type: the sorted set has three members.
var heldBy = map[Type][]Effect{
	TypeNone:   nil,
	TypeString: {{Kind: EffectString, Value: []byte("abc")}},
	TypeHash:   {{Kind: EffectHashSet, Field: []byte("f"), Value: []byte("v")}},
	TypeZSet: {
		{
			Kind:  EffectAdd,
			Field: []byte("1"),
			Score: 1,
		}, {Kind: EffectAdd, Field: []byte("2"), Score: 2}, {Kind: EffectAdd, Field: []byte("c"), Score: 3},
	},
	TypeToken:   {{Kind: EffectTokens, Tokens: limit.Tokens{Missing: 1}, ExpireAt: epoch}},
	TypeFixed:   {{Kind: EffectCount, Count: limit.Count{Used: 1}, ExpireAt: epoch}},
	TypeCounter: {{Kind: EffectCounter, Counts: limit.Counts{Start: epoch, Length: 1000, Current: 1}, ExpireAt: epoch}},
}

// holder is an engine with two databases, in the first of which a key holds an object of the type.
func holder(t *testing.T, holds Type) *Engine {
	e := New(Options{Databases: 2, Shards: 8})
	for _, f := range heldBy[holds] {
		f.Key.Name = []byte(held)
		require.NoError(t, e.Apply(epoch, []Effect{f}))
	}
	return e
}

// requireRefused checks that an effect is refused with an error that has all those words, and that
// it changes nothing.
func requireRefused(t *testing.T, holds Type, f Effect, words ...string) {
	t.Helper()
	e := holder(t, holds)
	before := dump(e)
	var err error
	require.NotPanics(t, func() { err = e.Apply(epoch, []Effect{f}) })
	require.Error(t, err)
	for _, word := range words {
		assert.Contains(t, err.Error(), word)
	}
	assert.Equal(t, before, dump(e))
	requireSound(t, e)
}

// Every kind of effect meets every type, and a missing key.
func TestApplyRefusesOtherTypes(t *testing.T) {
	anything := []Type{TypeString, TypeHash, TypeZSet, TypeToken, TypeFixed, TypeCounter}
	all := append([]Type{TypeNone}, anything...)
	fits := map[EffectKind][]Type{
		EffectDelete:     all, // for a missing key, see Apply
		EffectExpire:     anything,
		EffectString:     all,
		EffectSplice:     {TypeNone, TypeString},
		EffectHashSet:    {TypeNone, TypeHash},
		EffectHashDelete: {TypeHash},
		EffectAdd:        {TypeNone, TypeZSet},
		EffectRemove:     {TypeZSet},
		EffectRemoveSpan: {TypeZSet},
		EffectHits:       {TypeNone, TypeZSet},
		EffectTokens:     {TypeNone, TypeToken},
		EffectCount:      {TypeNone, TypeFixed},
		EffectRename:     anything,
		EffectCopy:       anything,
		EffectMove:       anything,
		EffectFlush:      all,
		EffectSwap:       all,

		EffectPolicy:       all,
		EffectPolicyDelete: all,

		EffectBucket: {TypeNone, TypeToken},
		EffectWindow: {TypeNone, TypeFixed},

		EffectCounter: {TypeNone, TypeCounter},
		EffectZSet:    all,
	}
	for _, kind := range EffectKinds() {
		require.NotEmpty(t, fits[kind], "kind %d", kind)
		f := Effect{
			Kind:   kind,
			ToDB:   1,
			Field:  []byte("f"),
			Value:  []byte("FIXED 5 1m"),
			Hi:     1,
			Hits:   Hits{N: 1},
			Counts: limit.Counts{Length: 1},
		}
		f.Key.Name, f.To.Name = []byte(held), []byte("other")
		if kind == EffectZSet {
			f.Value = []byte("\x01m\x00\x00\x00\x00\x00\x00\xf0\x3f")
		}
		for _, holds := range all {
			t.Run(fmt.Sprint(kind, " ", holds), func(t *testing.T) {
				if !slices.Contains(fits[kind], holds) {
					requireRefused(t, holds, f, `"held"`, kind.String(), holds.String())
					return
				}
				e := holder(t, holds)
				require.NoError(t, e.Apply(epoch, []Effect{f}))
				requireSound(t, e)
			})
		}
	}
}

func TestApplyRefusesWhatIsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		holds Type
		f     Effect
	}{
		{TypeString, Effect{Kind: EffectSplice, Lo: -1, Value: []byte("x")}},
		{TypeString, Effect{Kind: EffectSplice, Lo: MaxString + bitmap.MaxField, Value: []byte("x")}},
		{TypeNone, Effect{Kind: EffectSplice, Lo: math.MaxInt, Value: []byte("x")}},
		{TypeZSet, Effect{Kind: EffectAdd, Field: []byte("m"), Score: math.NaN()}},
		{TypeNone, Effect{Kind: EffectZSet}},
		{TypeZSet, Effect{Kind: EffectZSet, Value: []byte("\x02m\x00\x00\x00\x00\x00\x00\xf0\x3f")}},
		{TypeZSet, Effect{Kind: EffectRemoveSpan, Lo: -1, Hi: 1}},
		{TypeZSet, Effect{Kind: EffectRemoveSpan, Lo: 0, Hi: 4}},
		{TypeZSet, Effect{Kind: EffectRemoveSpan, Lo: 1, Hi: 1}},
		{TypeZSet, Effect{Kind: EffectRemoveSpan, Lo: 2, Hi: 1}},
		{TypeZSet, Effect{Kind: EffectRemoveSpan, Lo: 3, Hi: 4}},
		{TypeZSet, Effect{Kind: EffectHits, Lo: -1, Hits: Hits{N: 1}}},
		{TypeZSet, Effect{Kind: EffectHits, Lo: 4, Hits: Hits{N: 1}}},
		{TypeNone, Effect{Kind: EffectHits, Lo: 1, Hits: Hits{N: 1}}},
		{TypeZSet, Effect{Kind: EffectHits}},
		{TypeZSet, Effect{Kind: EffectHits, Hits: Hits{N: -1}}},
		{TypeNone, Effect{Kind: EffectHits, Hits: Hits{N: MaxHits + 1}}},
		{TypeToken, Effect{Kind: EffectTokens, Tokens: limit.Tokens{Missing: -1}}},
		{TypeToken, Effect{Kind: EffectTokens, Tokens: limit.Tokens{Earned: -1}}},
		{TypeNone, Effect{Kind: EffectTokens, Tokens: limit.Tokens{Earned: 1 << 40}}},
		{TypeToken, Effect{Kind: EffectBucket, Tokens: limit.Tokens{Missing: limit.MaxCount + 1}}},
		{TypeFixed, Effect{Kind: EffectCount, Count: limit.Count{Used: -1}}},
		{TypeNone, Effect{Kind: EffectWindow, Count: limit.Count{Used: limit.MaxCount + 1}}},
		{TypeNone, Effect{Kind: EffectWindow, Count: limit.Count{Length: -1}}},
		{TypeFixed, Effect{Kind: EffectWindow, Count: limit.Count{Length: limit.MaxDuration + 1}}},
		{TypeCounter, Effect{Kind: EffectCounter, Counts: limit.Counts{Current: -1, Length: 1}}},
		{TypeNone, Effect{Kind: EffectCounter, Counts: limit.Counts{Previous: limit.MaxCount + 1, Length: 1}}},
		{TypeNone, Effect{Kind: EffectCounter, Counts: limit.Counts{Current: 1}}},
		{TypeString, Effect{Kind: 0}},
		{TypeString, Effect{Kind: effectKinds}},
		{TypeNone, Effect{Kind: math.MaxUint8}},
	} {
		c.f.Key.Name = []byte(held)
		t.Run(fmt.Sprint(c.f.Kind, " of ", c.holds), func(t *testing.T) {
			requireRefused(t, c.holds, c.f, `"held"`, c.f.Kind.String(), c.holds.String())
		})
	}
}

func TestApplyRefusesMissingDatabases(t *testing.T) {
	for _, kind := range EffectKinds() {
		for _, db := range []int{-1, 2, math.MaxInt32} {
			f := Effect{Kind: kind, Key: Key{Name: []byte(held)}}
			f.DB = db
			requireRefused(t, TypeString, f, `"held"`, fmt.Sprint(db))
			f.DB, f.ToDB = 0, db
			requireRefused(t, TypeString, f, `"held"`, fmt.Sprint(db))
		}
	}
}

// What comes before an effect that does not fit has been applied, what comes after has not.
func TestApplyStopsAtAnError(t *testing.T) {
	e := New(Options{})
	set := func(name string) Effect {
		return Effect{Kind: EffectString, Key: Key{Name: []byte(name)}}
	}
	misfit := Effect{Kind: EffectRemove, Key: Key{Name: []byte("a")}, Field: []byte("m")}
	require.ErrorContains(t, e.Apply(epoch, []Effect{set("a"), misfit, set("b")}), `"a"`)
	assert.Equal(t, []string{`0 "a": string, deadline 0: ""`}, dump(e))
}
