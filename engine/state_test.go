package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine/counts"
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// recorder is a journal that keeps copies of all effects, call by call.
type recorder struct {
	mu    sync.Mutex
	calls [][]effect.Effect
}

func (r *recorder) Append(_ int64, effects []byte) Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	var call []effect.Effect
	for in := (effect.Reader{Rest: bytes.Clone(effects)}); len(in.Rest) > 0; {
		call = in.Append(call)
		if in.Err != nil {
			panic(in.Err)
		}
	}
	r.calls = append(r.calls, call)
	return Position(len(r.calls))
}

func copies(effects []effect.Effect) []effect.Effect {
	kept := slices.Clone(effects)
	for i := range kept {
		f := &kept[i]
		f.Key.Name, f.To.Name = bytes.Clone(f.Key.Name), bytes.Clone(f.To.Name)
		f.Field, f.Value = bytes.Clone(f.Field), bytes.Clone(f.Value)
	}
	return kept
}

func (r *recorder) Wait(Position) error { return nil }

// effects returns all recorded effects.
func (r *recorder) effects() []effect.Effect {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.calls...)
}

// replayed returns a new engine after applying all recorded calls to it, one by one.
func (r *recorder) replayed(o Options) *Engine {
	e := New(o)
	for _, call := range r.calls {
		if err := e.Apply(0, call); err != nil {
			panic(err)
		}
	}
	return e
}

// dump returns all that an engine holds, including expired keys that are not deleted yet: a line
// for each policy and script, and for each database a line for each key, sorted, with its type,
// deadline and content.
func dump(e *Engine) (lines []string) { return living(e, math.MinInt64) }

// living is dump without expired keys.
func living(e *Engine, now int64) (lines []string) {
	if all := e.overrides.Cut(); all != nil {
		for o := range all {
			lines = append(lines, fmt.Sprintf("override %+v", o))
		}
	}
	slices.Sort(lines)
	for _, p := range e.Policies() {
		lines = append(lines, fmt.Sprintf("policy %q: %s", p.Name(), p.Definition()))
	}
	var scripts []string
	for _, f := range e.Scripts.All() {
		scripts = append(scripts, fmt.Sprintf("script %s %d: %s", f.Key.Name, f.Lo, f.Value))
	}
	slices.Sort(scripts)
	lines = append(lines, scripts...)
	for db := range e.databases {
		keys := make(map[string]string)
		for o := range objects(e, db) {
			if o.Expired(now) {
				continue
			}
			keys[o.Name()] = fmt.Sprintf(
				"%d %q: %v, deadline %d: %s",
				db,
				o.Name(),
				o.Kind(),
				o.Deadline(),
				contentOf(o),
			)
		}
		lines = slices.AppendSeq(lines, func(yield func(string) bool) {
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				if !yield(keys[name]) {
					return
				}
			}
		})
	}
	return lines
}

// objects returns an iterator over the objects of a database.
func objects(e *Engine, db int) func(func(object.Object) bool) {
	return func(yield func(object.Object) bool) {
		for i := range e.shards {
			if keys := e.shards[i].dbs[db].keys; keys != nil {
				for o := range keys.All() {
					if !yield(o) {
						return
					}
				}
			}
		}
	}
}

func contentOf(o object.Object) string {
	var b strings.Builder
	switch o := o.(type) {
	case *object.String:
		fmt.Fprintf(&b, "%q", o.Value)
	case *object.Hash:
		fields := maps.Collect(o.Fields.All())
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&b, "%q=%q ", field, fields[field])
		}
	case *object.Log:
		return contentOf(o.Unpacked(nil))
	case *object.ZSet:
		for member, score := range o.Set.Ascend(0, o.Set.Len()) {
			fmt.Fprintf(&b, "%q=%v ", member, score)
		}
	case *object.List:
		for e := range o.Elements.All() {
			fmt.Fprintf(&b, "%q ", e)
		}
	case *object.Set:
		fmt.Fprintf(&b, "%q", slices.Sorted(o.View().All()))
	case object.State:
		fmt.Fprint(&b, o.Numbers())
	default:
		panic(fmt.Sprintf("dump: unknown type %T", o))
	}
	if x := object.ExtensionOf(o); !x.Empty() {
		for r := range x.Book.All(0) {
			fmt.Fprintf(&b, " %q: %d until %d", r.Call, r.Amount, r.Until)
		}
		fmt.Fprintf(&b, ", %s", rule.AppendRules(nil, x.Terms))
	}
	return b.String()
}

// requireSound checks the invariants between calls: each key is found under its name in its shard,
// and only there; the counts of keys, deadlines, types and bytes are right; no collection is empty,
// and sorted sets are in order.
func requireSound(t testing.TB, e *Engine) {
	t.Helper()
	for i := range e.shards {
		sh, weight, reserved := &e.shards[i], int64(0), counts.Load{}
		var kinds [len(object.Types)]int64
		for db := range sh.dbs {
			if sh.dbs[db].keys == nil {
				require.Zero(t, sh.dbs[db].expires)
				require.Zero(t, sh.dbs[db].weight)
				continue
			}
			n, expires, weighs, held := 0, 0, int64(0), counts.Load{}
			for o := range sh.dbs[db].keys.All() {
				n++
				weighs += object.Weigh(o)
				held = held.Plus(object.ExtensionOf(o).Held())
				kinds[o.Kind().Number()]++
				if o.Deadline() != 0 {
					expires++
				}
				k := e.Key([]byte(o.Name()))
				require.Equal(t, i, e.shardIndex(k.Hash), "%q is in the wrong shard", o.Name())
				require.True(t, sh.find(db, k) == o, "%q is in its shard twice", o.Name())
				switch o := o.(type) {
				case *object.Hash:
					require.NotZero(t, o.Fields.Len(), "%q is empty", o.Name)
				case *object.Log:
					require.NoError(t, o.Unpacked(nil).Set.Check())
				case *object.ZSet:
					require.True(t, o.Set.Len() > 0 || !o.Ext.Empty(), "%q is empty", o.Name)
					require.NoError(t, o.Set.Check())
				case *object.List:
					require.NotZero(t, o.Elements.Len(), "%q is empty", o.Name)
					require.NoError(t, o.Elements.Check())
				case *object.Set:
					require.NotZero(t, o.View().Len(), "%q is empty", o.Name)
				}
			}
			require.Equal(t, n, sh.dbs[db].size())
			require.Equal(t, expires, sh.dbs[db].expires)
			require.Equal(t, weighs, sh.dbs[db].weight, "the weight counted with each change")
			weight += weighs
			require.Equal(t, held, sh.dbs[db].held, "reservations")
			reserved = reserved.Plus(held)
		}
		require.Equal(t, weight, sh.bytes.Weight.Load())
		require.Equal(t, reserved, sh.held.Load())
		for kind, n := range kinds {
			require.Equal(t, n, sh.types[kind].Load(), "keys of type %s", object.Types[kind])
		}
		require.Less(t, max(weight-sh.reported, sh.reported-weight), int64(reportGrain))
	}
}
