package engine

import (
	"fmt"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// EffectKind is which change an effect is.
type EffectKind uint8

// The kinds of effects. The numbers are file format: never renumber, and never reuse one. Each kind
// names the fields of Effect that it uses besides DB and Key.
const (
	EffectDelete EffectKind = 1 // the key is gone
	EffectExpire EffectKind = 2 // ExpireAt: the key's deadline; 0: none
	EffectString EffectKind = 3 // Value, ExpireAt: the key holds this string

	// EffectSplice has Value and Lo: the string's bytes from offset Lo on are Value. A gap before
	// them is zeros. A missing key counts as an empty string.
	EffectSplice EffectKind = 4

	EffectHashSet    EffectKind = 5 // Field, Value: the hash has this field
	EffectHashDelete EffectKind = 6 // Field: removed from the hash; an empty hash is gone
	EffectAdd        EffectKind = 7 // Field, Score: the sorted set has this member with this score
	EffectRemove     EffectKind = 8 // Field: removed from the sorted set; an empty set is gone

	// EffectRemoveSpan has Lo and Hi: the members of rank Lo up to but not including Hi are gone.
	// An empty set is gone.
	EffectRemoveSpan EffectKind = 9
	// EffectHits has Lo, Hits and ExpireAt: the log's first Lo members are gone, the hits are
	// recorded, the deadline is set.
	EffectHits EffectKind = 10
	// EffectTokens has Tokens and ExpireAt: the state of a token bucket, in the form without
	// Fraction.
	EffectTokens EffectKind = 11
	// EffectCount has Count and ExpireAt: the state of a fixed window, in the form without Length.
	EffectCount EffectKind = 12

	// EffectRename has To: the object is moved to the key To, with its deadline, and replaces what
	// is there.
	EffectRename EffectKind = 13
	// EffectCopy has To and ToDB: a copy of the object replaces what is there.
	EffectCopy EffectKind = 14
	// EffectMove has ToDB: the object is moved to that database, with its deadline, and replaces
	// what is there.
	EffectMove EffectKind = 15

	EffectFlush EffectKind = 16 // the database is empty
	EffectSwap  EffectKind = 17 // ToDB: the two databases have changed places

	// Key, Value: the name and definition of a policy, in place of any before
	EffectPolicy       EffectKind = 18
	EffectPolicyDelete EffectKind = 19 // Key: there is no policy of this name

	// Tokens, ExpireAt: the state of a token bucket, in the form without Earned
	EffectBucket EffectKind = 20
	EffectWindow EffectKind = 21 // Count, ExpireAt: the state of a fixed window, with its Length

	// EffectZSet has Value: the key holds the sorted set that zset.Set.Pack has encoded, without a
	// deadline.
	EffectZSet EffectKind = 22

	EffectCounter EffectKind = 23 // Counts, ExpireAt: the state of a sliding window counter

	effectKinds = EffectCounter + 1 // one more than the last
)

var effectNames = [effectKinds]string{
	EffectDelete: "delete", EffectExpire: "expire", EffectString: "string", EffectSplice: "splice",
	EffectHashSet: "hash-set", EffectHashDelete: "hash-delete",
	EffectAdd: "add", EffectRemove: "remove", EffectRemoveSpan: "remove-span",
	EffectHits: "hits", EffectTokens: "tokens", EffectCount: "count",
	EffectRename: "rename", EffectCopy: "copy", EffectMove: "move", EffectFlush: "flush", EffectSwap: "swap",
	EffectPolicy: "policy", EffectPolicyDelete: "policy-delete",
	EffectBucket: "bucket", EffectWindow: "window", EffectCounter: "counter", EffectZSet: "zset",
}

// String is the kind's name, for people.
func (k EffectKind) String() string {
	if int(k) < len(effectNames) && effectNames[k] != "" {
		return effectNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// changesKey reports whether the effect is about what its Key holds, rather than about whole
// databases or policies.
func (k EffectKind) changesKey() bool {
	return k != EffectFlush && k != EffectSwap && k != EffectPolicy && k != EffectPolicyDelete
}

// hasTo reports whether the effect is about what another key, To, holds as well.
func (k EffectKind) hasTo() bool { return k == EffectRename || k == EffectCopy }

// EffectKinds returns all kinds, for tables that must cover each.
func EffectKinds() []EffectKind {
	all := make([]EffectKind, 0, effectKinds-1)
	for k := EffectKind(1); k < effectKinds; k++ {
		all = append(all, k)
	}
	return all
}

// Effect is one change of state, as a result: absolute times, final values. Applying it asks no
// clock, no configuration and no algorithm, so the effects of a run, applied in order to an empty
// engine, rebuild its state. It is one flat struct so that recording one allocates nothing.
type Effect struct {
	Kind     EffectKind
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

	// what Value encodes, if it is decoded already; without a journal there is no Value then
	set *zset.Set
}

// Hits are N members of a limiter's log, named `<At>-<Seq>`, `<At>-<Seq+1>`, …, each with the score
// At, which is Unix ms.
type Hits struct {
	At  int64
	Seq uint64
	N   int64
}

// size is how many members, fields or keys an effect changes, databases aside.
func (f *Effect) size() int64 {
	switch f.Kind {
	case EffectHits:
		return f.Hits.N + int64(f.Lo)
	case EffectRemoveSpan:
		return int64(f.Hi - f.Lo)
	case EffectZSet:
		return int64(f.set.Len())
	}
	return 1
}
