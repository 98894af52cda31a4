package effect

import (
	"fmt"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// Kind is the kind of an effect.
type Kind uint8

// The kinds of effects. The numbers are file format: never renumber, and never reuse one. Each kind
// names the fields of Effect that it uses besides DB and Key.
const (
	Delete Kind = 1 // the key is gone
	Expire Kind = 2 // ExpireAt: the key's deadline; 0: none
	String Kind = 3 // Value, ExpireAt: the key holds this string

	// Splice has Value and Lo: the string's bytes from offset Lo on are Value. A gap before
	// them is zeros. A missing key counts as an empty string.
	Splice Kind = 4

	HashSet    Kind = 5 // Field, Value: the hash has this field
	HashDelete Kind = 6 // Field: removed from the hash; an empty hash is gone
	Add        Kind = 7 // Field, Score: the sorted set has this member with this score
	Remove     Kind = 8 // Field: removed from the sorted set or set; an empty one is gone

	// RemoveSpan has Lo and Hi: the members of a sorted set, or the elements of a list, of rank
	// Lo up to but not including Hi are gone. An empty one is gone.
	RemoveSpan Kind = 9
	// AddHits has Lo, Hits and ExpireAt: the log's first Lo members are removed, the hits are
	// added, the deadline is set.
	AddHits Kind = 10
	// Tokens has Tokens and ExpireAt: the state of a token bucket, in the form without
	// Fraction.
	Tokens Kind = 11
	// Count has Count and ExpireAt: the state of a fixed window, in the form without Length.
	Count Kind = 12

	// Rename has To: the object is moved to the key To, with its deadline, and replaces what
	// is there.
	Rename Kind = 13
	// Copy has To and ToDB: a copy of the object replaces what is there.
	Copy Kind = 14
	// Move has ToDB: the object is moved to that database, with its deadline, and replaces
	// what is there.
	Move Kind = 15

	Flush Kind = 16 // the database is empty
	Swap  Kind = 17 // ToDB: the two databases have changed places

	// Key, Value: the name and definition of a policy, in place of any before
	Policy       Kind = 18
	PolicyDelete Kind = 19 // Key: there is no policy of this name

	// Tokens, ExpireAt: the state of a token bucket, in the form without Earned
	Bucket Kind = 20
	Window Kind = 21 // Count, ExpireAt: the state of a fixed window, with its Length

	// ZSet has Value: the key holds the sorted set that zset.Set.Pack has encoded, without a
	// deadline.
	ZSet Kind = 22

	Counter Kind = 23 // Counts, ExpireAt: the state of a sliding window counter

	// Insert has Field, Value, Lo and Hi: a collection of the type that Field names has the
	// elements that AppendElement has encoded in Value, from rank Lo up to but not including Hi.
	// A type without ranks uses Hi-Lo, their number.
	Insert Kind = 24

	// Script has Value and Lo: the script of this text, whose SHA-1 is Key, can be run by its name.
	// Lo is 1 if SCRIPT LOAD has added it.
	Script       Kind = 25
	ScriptDelete Kind = 26 // Key: there is no script of this name; an empty one: there are none

	// Reserve has Field, Hold, Lo, Hi and ExpireAt: the limiter's first Lo reservations are
	// forgotten, the call named Field has this one, the deadline is set. A missing key becomes an
	// unused limiter: Hi is its object.Form, 0 for a log of hits.
	Reserve Kind = 27
	Forget  Kind = 28 // Lo: the limiter's first reservations are forgotten
	// Terms has Value: the rules of a limiter with reservations, see rule.AppendRules
	Terms Kind = 29

	// Override has Value and Lo: the policy has this definition for the id of Key, policy:{id},
	// since the version Lo of the policies
	Override Kind = 30
	// Key: the policy has no definition of its own for the id; an empty one: no policy has any
	OverrideDelete Kind = 31

	// Ban has Value, Lo, Hi and ExpireAt: the limiter's first Lo denials are forgotten, Value is
	// what ban.State.Apply adds, the deadline is set. A missing key becomes an unused limiter as
	// with Reserve.
	Ban Kind = 32

	// Call has Field, Lo, Hits and ExpireAt: the log's first Lo members are removed, hits of a call
	// are added whose id is Field, the deadline is set. Hits.Seq is the number of the first, from
	// 1 on, see zset.Set.AddCall.
	Call Kind = 33
	// Uncall has Field and Hits: these hits of a call whose id is Field are gone, if they are
	// there; an empty sorted set is gone.
	Uncall Kind = 34

	Runs Kind = 35 // Value: the log has the hits that AppendRun has encoded too; in snapshots

	nextKind = Runs + 1 // one more than the last
)

var names = [nextKind]string{
	Delete: "delete", Expire: "expire", String: "string", Splice: "splice",
	HashSet: "hash-set", HashDelete: "hash-delete",
	Add: "add", Remove: "remove", RemoveSpan: "remove-span",
	AddHits: "hits", Tokens: "tokens", Count: "count",
	Rename: "rename", Copy: "copy", Move: "move", Flush: "flush", Swap: "swap",
	Policy: "policy", PolicyDelete: "policy-delete",
	Bucket: "bucket", Window: "window", Counter: "counter", ZSet: "zset", Insert: "insert",
	Script: "script", ScriptDelete: "script-delete",
	Reserve: "reserve", Forget: "forget", Terms: "terms",
	Override: "override", OverrideDelete: "override-delete", Ban: "ban",
	Call: "call", Uncall: "uncall", Runs: "runs",
}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// keyless are the kinds of effects that change no key, as bits.
const keyless = 1<<Flush | 1<<Swap | 1<<Policy | 1<<PolicyDelete | 1<<Script | 1<<ScriptDelete |
	1<<Override | 1<<OverrideDelete

// ChangesKey reports whether the effect changes its Key, rather than whole databases, policies or
// scripts.
func (k Kind) ChangesKey() bool { return uint64(1)<<k&keyless == 0 }

// ChangesOnlyKey reports whether the effect changes its Key in its database, and nothing else.
func (k Kind) ChangesOnlyKey() bool { return uint64(1)<<k&(keyless|1<<Rename|1<<Copy|1<<Move) == 0 }

// HasTo reports whether the effect uses a second key, To.
func (k Kind) HasTo() bool { return k == Rename || k == Copy }

// Kinds returns all kinds, for tables that must cover each.
func Kinds() []Kind {
	all := make([]Kind, 0, nextKind-1)
	for k := Kind(1); k < nextKind; k++ {
		all = append(all, k)
	}
	return all
}

// Effect is one change of state, as a result: absolute times, final values. Applying it needs no
// clock, no configuration and no algorithm, so the effects of a run, applied in order to an empty
// engine, rebuild its state. It is one flat struct so that recording one allocates nothing.
type Effect struct {
	Kind     Kind
	DB, ToDB int
	Key, To  Key
	Field    []byte
	Value    []byte
	Score    float64
	Lo, Hi   int
	ExpireAt int64 // Unix ms; 0: never
	Hits     Hits
	Tokens   limit.Tokens
	Count    limit.Count
	Counts   limit.Counts
	Hold     Hold

	// the decoded Value, if known; without a journal, Value may then be nil
	Set *zset.Set
}

// Hold is what a reservation holds: the amount, 0 of a call that is settled, until a time, Unix ms.
type Hold struct{ Amount, Until int64 }

// maxCounted is how many hits of an effect Size counts at most: sums of sizes do not overflow.
const maxCounted = 1 << 30

// Size is how many members, fields or keys an effect changes, databases aside.
func (f *Effect) Size() int64 {
	switch f.Kind {
	case AddHits, Call, Uncall:
		return min(f.Hits.N, maxCounted) + min(int64(f.Lo), maxCounted)
	case RemoveSpan, Insert:
		return min(int64(f.Hi-f.Lo), maxCounted)
	case Reserve:
		return 1 + int64(f.Lo)
	case Forget:
		return int64(f.Lo)
	case ZSet:
		return int64(f.Set.Len())
	}
	return 1
}

// Target returns the database of To.
func (f *Effect) Target() int {
	if f.Kind == Copy {
		return f.ToDB
	}
	return f.DB
}

// PutTokens makes the effect set the state of a token bucket. The kind Tokens is for states that
// were stored before Fraction existed.
func (f *Effect) PutTokens(t limit.Tokens) {
	f.Kind, f.Tokens, f.Count, f.Counts = Bucket, t, limit.Count{}, limit.Counts{}
	if t.Earned > 0 {
		f.Kind = Tokens
	}
}

// PutCount makes the effect set the state of a fixed window. The kind Count is for states that were
// stored before Length existed.
func (f *Effect) PutCount(c limit.Count) {
	f.Kind, f.Tokens, f.Count, f.Counts = Window, limit.Tokens{}, c, limit.Counts{}
	if c.Length == 0 {
		f.Kind = Count
	}
}

// PutCounts makes the effect set the state of a sliding window counter.
func (f *Effect) PutCounts(c limit.Counts) {
	f.Kind, f.Tokens, f.Count, f.Counts = Counter, limit.Tokens{}, limit.Count{}, c
}
