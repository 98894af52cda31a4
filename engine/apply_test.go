package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/internal/bitmap"
	"rlserver/zset"
)

const held = "held" // the key of the effects in these tests

// heldBy has the effects that create a key of each type. The sorted set has three members.
var heldBy = map[object.Type][]effect.Effect{
	object.TypeNone:   nil,
	object.TypeString: {{Kind: effect.String, Value: []byte("abc")}},
	object.TypeHash:   {{Kind: effect.HashSet, Field: []byte("f"), Value: []byte("v")}},
	object.TypeZSet: {
		{
			Kind:  effect.Add,
			Field: []byte("1"),
			Score: 1,
		}, {Kind: effect.Add, Field: []byte("2"), Score: 2}, {Kind: effect.Add, Field: []byte("c"), Score: 3},
	},
	object.TypeList:  {inserts(object.TypeList)},
	object.TypeSet:   {inserts(object.TypeSet)},
	object.TypeToken: {{Kind: effect.Tokens, Tokens: limit.Tokens{Missing: 1}, ExpireAt: epoch}},
	object.TypeFixed: {{Kind: effect.Count, Count: limit.Count{Used: 1}, ExpireAt: epoch}},
	object.TypeCounter: {
		{Kind: effect.Counter, Counts: limit.Counts{Start: epoch, Length: 1000, Current: 1}, ExpireAt: epoch},
	},
}

// inserts returns an effect that inserts two elements at rank 0.
func inserts(t object.Type) effect.Effect {
	return effect.Effect{Kind: effect.Insert, Field: []byte(t), Value: []byte("\x01f\x02bc"), Hi: 2}
}

// runsOf returns the Value of a Runs with hits.
func runsOf(list ...effect.Hits) (value []byte) {
	last := int64(0)
	for _, h := range list {
		value, last = effect.AppendRun(value, last, h), h.At
	}
	return value
}

// engineWith returns an engine with two databases, and a key of a type in the first.
func engineWith(t *testing.T, holds object.Type) *Engine {
	e := New(Options{Databases: 2, Shards: 8})
	for _, f := range heldBy[holds] {
		f.Key.Name = []byte(held)
		require.NoError(t, e.Apply(epoch, []effect.Effect{f}))
	}
	return e
}

// requireRefused checks that Apply returns an error with all words for an effect, and that the
// effect changes nothing.
func requireRefused(t *testing.T, holds object.Type, f effect.Effect, words ...string) {
	t.Helper()
	e := engineWith(t, holds)
	before := dump(e)
	var err error
	require.NotPanics(t, func() { err = e.Apply(epoch, []effect.Effect{f}) })
	require.Error(t, err)
	for _, word := range words {
		assert.Contains(t, err.Error(), word)
	}
	assert.Equal(t, before, dump(e))
	requireSound(t, e)
}

// Every kind of effect is applied to every type, and to a missing key.
func TestApplyRefusesOtherTypes(t *testing.T) {
	anything := object.Types[:]
	all := append([]object.Type{object.TypeNone}, anything...)
	limiters := []object.Type{object.TypeZSet, object.TypeToken, object.TypeFixed, object.TypeCounter}
	fits := map[effect.Kind][]object.Type{
		effect.Delete:     all, // for a missing key, see Apply
		effect.Expire:     anything,
		effect.String:     all,
		effect.Splice:     {object.TypeNone, object.TypeString},
		effect.HashSet:    {object.TypeNone, object.TypeHash},
		effect.HashDelete: {object.TypeHash},
		effect.Add:        {object.TypeNone, object.TypeZSet},
		effect.Remove:     {object.TypeZSet, object.TypeSet},
		effect.RemoveSpan: {object.TypeZSet, object.TypeList},
		effect.AddHits:    {object.TypeNone, object.TypeZSet},
		effect.Tokens:     {object.TypeNone, object.TypeToken},
		effect.Count:      {object.TypeNone, object.TypeFixed},
		effect.Rename:     anything,
		effect.Copy:       anything,
		effect.Move:       anything,
		effect.Flush:      all,
		effect.Swap:       all,

		effect.Policy:       all,
		effect.PolicyDelete: all,
		effect.Script:       all,
		effect.ScriptDelete: all,

		effect.Override:       all,
		effect.OverrideDelete: all,

		effect.Bucket: {object.TypeNone, object.TypeToken},
		effect.Window: {object.TypeNone, object.TypeFixed},

		effect.Counter: {object.TypeNone, object.TypeCounter},
		effect.ZSet:    all,
		effect.Insert:  {object.TypeNone, object.TypeList},

		effect.Reserve: append([]object.Type{object.TypeNone}, limiters...),
		effect.Forget:  limiters,
		effect.Terms:   limiters,
		effect.Ban:     append([]object.Type{object.TypeNone}, limiters...),

		effect.Call:   {object.TypeNone, object.TypeZSet},
		effect.Uncall: {object.TypeZSet},
		effect.Runs:   {object.TypeNone, object.TypeZSet},
	}
	for _, kind := range effect.Kinds() {
		require.NotEmpty(t, fits[kind], "kind %d", kind)
		f := effect.Effect{
			Kind:   kind,
			ToDB:   1,
			Field:  []byte("f"),
			Value:  []byte("FIXED 5 1m"),
			Hi:     1,
			Hits:   effect.Hits{Seq: 1, N: 1},
			Counts: limit.Counts{Length: 1},
		}
		f.Key.Name, f.To.Name = []byte(held), []byte("other")
		if kind == effect.Insert {
			f.Field, f.Value, f.Hi = []byte("list"), inserts(object.TypeList).Value, 2
		}
		reserved := effect.Effect{Kind: effect.Reserve, Key: f.Key, Field: []byte("call")}
		if kind == effect.Forget {
			f.Lo = 1
		}
		if kind == effect.Ban {
			f.Value = []byte{2, 8, 10, 10}
		}
		if kind == effect.ZSet {
			f.Value = []byte("\x01m\x00\x00\x00\x00\x00\x00\xf0\x3f")
		}
		if kind == effect.Runs {
			f.Value = runsOf(effect.Hits{At: epoch, N: 1}, effect.Hits{At: epoch, Seq: 7, N: 2})
		}
		for _, holds := range all {
			t.Run(fmt.Sprint(kind, " ", holds), func(t *testing.T) {
				if !slices.Contains(fits[kind], holds) {
					requireRefused(t, holds, f, `"held"`, kind.String(), holds.String())
					return
				}
				e := engineWith(t, holds)
				if kind == effect.Forget {
					require.NoError(t, e.Apply(epoch, []effect.Effect{reserved}))
				}
				require.NoError(t, e.Apply(epoch, []effect.Effect{f}))
				requireSound(t, e)
			})
		}
	}
}

func TestApplyRefusesValuesOutOfRange(t *testing.T) {
	for _, c := range []struct {
		holds object.Type
		f     effect.Effect
	}{
		{object.TypeString, effect.Effect{Kind: effect.Splice, Lo: -1, Value: []byte("x")}},
		{object.TypeString, effect.Effect{
			Kind: effect.Splice, Lo: object.MaxString + bitmap.MaxField, Value: []byte("x"),
		}},
		{object.TypeNone, effect.Effect{Kind: effect.Splice, Lo: math.MaxInt, Value: []byte("x")}},
		{object.TypeZSet, effect.Effect{Kind: effect.Add, Field: []byte("m"), Score: math.NaN()}},
		{object.TypeNone, effect.Effect{Kind: effect.ZSet}},
		{object.TypeZSet, effect.Effect{Kind: effect.ZSet, Value: []byte("\x02m\x00\x00\x00\x00\x00\x00\xf0\x3f")}},
		{object.TypeZSet, effect.Effect{Kind: effect.RemoveSpan, Lo: -1, Hi: 1}},
		{object.TypeZSet, effect.Effect{Kind: effect.RemoveSpan, Lo: 0, Hi: 4}},
		{object.TypeZSet, effect.Effect{Kind: effect.RemoveSpan, Lo: 1, Hi: 1}},
		{object.TypeZSet, effect.Effect{Kind: effect.RemoveSpan, Lo: 2, Hi: 1}},
		{object.TypeZSet, effect.Effect{Kind: effect.RemoveSpan, Lo: 3, Hi: 4}},
		{object.TypeZSet, effect.Effect{Kind: effect.AddHits, Lo: -1, Hits: effect.Hits{N: 1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.AddHits, Lo: 4, Hits: effect.Hits{N: 1}}},
		{object.TypeNone, effect.Effect{Kind: effect.AddHits, Lo: 1, Hits: effect.Hits{N: 1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.AddHits}},
		{object.TypeZSet, effect.Effect{Kind: effect.AddHits, Hits: effect.Hits{N: -1}}},
		{object.TypeNone, effect.Effect{Kind: effect.AddHits, Hits: effect.Hits{N: effect.MaxHits + 1}}},
		{object.TypeNone, effect.Effect{Kind: effect.Call, Lo: 1, Hits: effect.Hits{Seq: 1, N: 1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.Call, Hits: effect.Hits{N: 1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.Call, Hits: effect.Hits{Seq: 1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.Call, Hits: effect.Hits{At: -1, Seq: 1, N: 1}}},
		{object.TypeNone, effect.Effect{Kind: effect.Call, Hits: effect.Hits{Seq: zset.MaxNumber, N: 2}}},
		{object.TypeZSet, effect.Effect{Kind: effect.Uncall, Hits: effect.Hits{Seq: 1, N: -1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.Runs}},
		{object.TypeZSet, effect.Effect{Kind: effect.Runs, Value: []byte("\x03")}},
		{object.TypeZSet, effect.Effect{Kind: effect.Runs, Value: []byte("\x03\x00")}},
		{object.TypeZSet, effect.Effect{Kind: effect.Runs, Value: []byte("\x02\x03\x00\x00")}},
		{object.TypeNone, effect.Effect{Kind: effect.Runs, Value: runsOf(effect.Hits{At: zset.MaxTime + 1, N: 1})}},
		{object.TypeNone, effect.Effect{Kind: effect.Runs, Value: runsOf(effect.Hits{N: -1})}},
		{object.TypeNone, effect.Effect{Kind: effect.Runs, Value: runsOf(effect.Hits{N: effect.MaxHits + 1})}},
		{object.TypeNone, effect.Effect{Kind: effect.Runs, Value: runsOf(effect.Hits{Seq: zset.MaxSeq, N: 2})}},
		{object.TypeToken, effect.Effect{Kind: effect.Tokens, Tokens: limit.Tokens{Missing: -1}}},
		{object.TypeToken, effect.Effect{Kind: effect.Tokens, Tokens: limit.Tokens{Earned: -1}}},
		{object.TypeNone, effect.Effect{Kind: effect.Tokens, Tokens: limit.Tokens{Earned: 1 << 40}}},
		{object.TypeToken, effect.Effect{Kind: effect.Bucket, Tokens: limit.Tokens{Missing: limit.MaxCount + 1}}},
		{object.TypeFixed, effect.Effect{Kind: effect.Count, Count: limit.Count{Used: -1}}},
		{object.TypeNone, effect.Effect{Kind: effect.Window, Count: limit.Count{Used: limit.MaxCount + 1}}},
		{object.TypeNone, effect.Effect{Kind: effect.Window, Count: limit.Count{Length: -1}}},
		{object.TypeFixed, effect.Effect{Kind: effect.Window, Count: limit.Count{Length: limit.MaxDuration + 1}}},
		{object.TypeCounter, effect.Effect{Kind: effect.Counter, Counts: limit.Counts{Current: -1, Length: 1}}},
		{object.TypeNone, effect.Effect{
			Kind: effect.Counter, Counts: limit.Counts{Previous: limit.MaxCount + 1, Length: 1},
		}},
		{object.TypeNone, effect.Effect{Kind: effect.Counter, Counts: limit.Counts{Current: 1}}},
		{object.TypeToken, effect.Effect{Kind: effect.Reserve, Hold: effect.Hold{Amount: -1}}},
		{object.TypeNone, effect.Effect{Kind: effect.Reserve, Hold: effect.Hold{Amount: limit.MaxCount + 1}}},
		{object.TypeZSet, effect.Effect{Kind: effect.Reserve, Lo: 1}},
		{object.TypeZSet, effect.Effect{Kind: effect.Reserve, Lo: -1}},
		{object.TypeNone, effect.Effect{Kind: effect.Reserve, Hi: -1}},
		{object.TypeNone, effect.Effect{Kind: effect.Reserve, Hi: int(object.Forms)}},
		{object.TypeFixed, effect.Effect{Kind: effect.Forget, Lo: 1}},
		{object.TypeZSet, effect.Effect{Kind: effect.Forget}},
		{object.TypeZSet, effect.Effect{Kind: effect.Terms, Value: []byte("SLIDE 5")}},
		{object.TypeString, effect.Effect{Kind: 0}},
		{object.TypeString, effect.Effect{Kind: 200}},
		{object.TypeNone, effect.Effect{Kind: math.MaxUint8}},
	} {
		c.f.Key.Name = []byte(held)
		t.Run(fmt.Sprint(c.f.Kind, " of ", c.holds), func(t *testing.T) {
			requireRefused(t, c.holds, c.f, `"held"`, c.f.Kind.String(), c.holds.String())
		})
	}
}

func TestApplyRefusesMissingDatabases(t *testing.T) {
	for _, kind := range effect.Kinds() {
		for _, db := range []int{-1, 2, math.MaxInt32} {
			f := effect.Effect{Kind: kind, Key: Key{Name: []byte(held)}}
			f.DB = db
			requireRefused(t, object.TypeString, f, `"held"`, fmt.Sprint(db))
			f.DB, f.ToDB = 0, db
			requireRefused(t, object.TypeString, f, `"held"`, fmt.Sprint(db))
		}
	}
}

// Effects before one that does not fit are applied, those after it are not.
func TestApplyStopsAtAnError(t *testing.T) {
	e := New(Options{})
	require.ErrorContains(t, e.Apply(epoch, []effect.Effect{setEmpty("a"), misfit("a"), setEmpty("b")}), `"a"`)
	assert.Equal(t, []string{`0 "a": string, deadline 0: ""`}, dump(e))
}

func setEmpty(name string) effect.Effect {
	return effect.Effect{Kind: effect.String, Key: Key{Name: []byte(name)}}
}

func misfit(name string) effect.Effect {
	return effect.Effect{Kind: effect.Remove, Key: Key{Name: []byte(name)}, Field: []byte("m")}
}

// Of effects on a shard, the first one that does not fit is reported.
func TestApplyToReportsTheFirstError(t *testing.T) {
	e := New(Options{Shards: 1})
	effects := make([]effect.Effect, 100)
	var list []*effect.Effect
	for i := range effects {
		effects[i] = setEmpty(fmt.Sprint(i))
		if i == 40 || i == 41 || i == 90 {
			effects[i] = misfit(fmt.Sprint(i - 40))
		}
		effects[i].Key = e.Key(effects[i].Key.Name)
		list = append(list, &effects[i])
	}
	misfit, err := e.NewTx().ApplyTo(0, epoch, list)
	require.ErrorContains(t, err, `"0"`)
	require.Same(t, &effects[40], misfit)
	require.Len(t, dump(e), 40)
}

// Effects of single keys that are applied by shard, at the same time, give the state of the run.
func TestShardsGiveTheSameState(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	w := newWalk(seed, Options{Shards: 8}).steps(walkSteps)
	replica, divided := New(Options{Databases: walkDatabases, Shards: 16}), 0
	for effects := w.log.effects(); len(effects) > 0; {
		wide := slices.IndexFunc(effects, func(f effect.Effect) bool { return f.Kind.HasTo() || !f.Kind.ChangesKey() })
		switch {
		case wide == 0:
			require.NoError(t, replica.Apply(epoch, effects[:1]))
			effects = effects[1:]
			continue
		case wide < 0:
			wide = len(effects)
		}
		divided = max(divided, wide)
		var shards [16][]*effect.Effect
		for i := range wide {
			f := &effects[i]
			f.Key = replica.Key(f.Key.Name)
			shard := replica.ShardOf(f.Key)
			shards[shard] = append(shards[shard], f)
		}
		var all sync.WaitGroup
		for shard, list := range shards {
			all.Go(func() {
				_, err := replica.NewTx().ApplyTo(shard, epoch, list)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		effects = effects[wide:]
	}
	require.Equal(t, dump(w.e), dump(replica))
	requireSound(t, replica)
	require.Greater(t, divided, 10)
}
