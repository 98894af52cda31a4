package object

import (
	"math"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/internal/bitmap"
	"rlserver/zset"
)

// Fits reports whether an effect can be applied to an object; nil is a missing key.
func Fits(f *effect.Effect, o Object) bool {
	switch f.Kind {
	case effect.ZSet:
		return f.Set.Len() > 0
	case effect.String, effect.Flush, effect.Swap, effect.PolicyDelete, effect.Script,
		effect.ScriptDelete, effect.Override, effect.OverrideDelete:
		return true
	case effect.Delete, effect.Expire, effect.Rename, effect.Copy, effect.Move:
		return o != nil
	case effect.Splice:
		return MissingOr[*String](o) && f.Lo >= 0 && f.Lo <= MaxString+bitmap.MaxField-len(f.Value)
	case effect.HashSet:
		return MissingOr[*Hash](o)
	case effect.HashDelete:
		return is[*Hash](o)
	case effect.Add:
		return (MissingOr[*ZSet](o) || is[*Log](o)) && !math.IsNaN(f.Score)
	case effect.Remove:
		return hasMembers(o)
	case effect.RemoveSpan:
		return 0 <= f.Lo && f.Lo < f.Hi && f.Hi <= ranks(o)
	case effect.Insert:
		return fitsInsert(f, o)
	case effect.AddHits:
		return (MissingOr[*ZSet](o) || is[*Log](o)) && 0 <= f.Lo && f.Lo <= ranks(o) && f.Hits.Fit()
	case effect.Runs:
		return (MissingOr[*ZSet](o) || is[*Log](o)) && effect.FitRuns(f.Value)
	case effect.Call:
		return (MissingOr[*ZSet](o) || is[*Log](o)) && 0 <= f.Lo && f.Lo <= ranks(o) && fitsCall(f.Hits)
	case effect.Uncall:
		return is[*ZSet](o) && fitsCall(f.Hits)
	}
	switch f.Kind {
	case effect.Reserve, effect.Forget, effect.Terms, effect.Ban:
		return fitsExtension(f, o)
	}
	ok, _ := fitsState(f, Bare(o))
	return ok
}

// fitsCall reports whether a call with an id can have these hits.
func fitsCall(h effect.Hits) bool {
	return 0 <= h.At && h.At <= zset.MaxTime && 0 < h.N && h.N <= effect.MaxHits &&
		0 < h.Seq && h.Seq <= zset.MaxNumber-uint64(h.N)+1
}

func fitsInsert(f *effect.Effect, o Object) bool {
	n, ok := effect.CountElements(f.Value)
	_, known := inserted[Type(f.Field)]
	return ok && known && n > 0 && f.Hi-f.Lo == n && 0 <= f.Lo && f.Lo <= ranks(o) &&
		(o == nil || o.Kind() == Type(f.Field))
}

// fitsState reports whether an effect can set the state of a limiter; nil is a missing key. ok is
// false if the effect is of another kind.
func fitsState(f *effect.Effect, o Object) (fits, ok bool) {
	switch f.Kind {
	case effect.Tokens, effect.Bucket:
		t := f.Tokens
		return MissingOr[*Token](o) && isCount(t.Missing) && isDuration(t.Earned), true
	case effect.Count, effect.Window:
		c := f.Count
		return MissingOr[*Fixed](o) && isCount(c.Used) && isDuration(c.Length), true
	case effect.Counter:
		return MissingOr[*Counter](o) && fitsCounter(f), true
	}
	return false, false
}

// PutNumbers makes the effect set the state of a type from its numbers. at is the time in the
// state, Unix ms. ok is false if the type is not a State.
func PutNumbers(f *effect.Effect, t Type, n [4]int64) (at int64, ok bool) {
	switch t {
	case TypeToken:
		f.PutTokens(limit.Tokens{Missing: n[0], Fraction: uint64(n[1]), Since: n[2], Earned: n[3]})
		return n[2], true
	case TypeFixed:
		f.PutCount(limit.Count{Start: n[0], Length: n[1], Used: n[2]})
		return n[0], true
	case TypeCounter:
		f.PutCounts(limit.Counts{Start: n[0], Length: n[1], Current: n[2], Previous: n[3]})
		return n[0], true
	}
	return 0, false
}

func isCount(n int64) bool { return 0 <= n && n <= limit.MaxCount }

func isDuration(ms int64) bool { return 0 <= ms && ms <= limit.MaxDuration }

// fitsCounter reports whether the counts are valid for a counter. One that is unused has no length.
func fitsCounter(f *effect.Effect) bool {
	c := f.Counts
	return isCount(c.Current) && isCount(c.Previous) && isDuration(c.Length) &&
		(c.Length > 0 || c.Current == 0 && c.Previous == 0)
}
