package engine

import (
	"fmt"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// EffectKind says which change an effect is.
type EffectKind uint8

// The changes. Each names the fields of Effect it uses beside DB and Key.
const (
	EffectDelete       EffectKind = iota + 1 // the key is gone
	EffectExpire                             // ExpireAt: the key's deadline from now on, 0 none
	EffectString                             // Value, ExpireAt: the key holds this string
	EffectSplice                             // Value, Lo: the string's bytes from offset Lo on are Value; a gap before is zeros; missing key: an empty string
	EffectHashSet                            // Field, Value: the hash has this field
	EffectHashDelete                         // Field: the hash lacks it; an emptied hash is gone
	EffectAdd                                // Field, Score: the sorted set has this member at this score
	EffectRemove                             // Field: the sorted set lacks it; an emptied set is gone
	EffectRemoveSpan                         // Lo, Hi: the members of rank Lo up to but not Hi are gone; an emptied set is gone
	EffectHits                               // Lo, Hits, ExpireAt: the log's first Lo members are gone, the hits were recorded, the deadline is set
	EffectTokens                             // Tokens, ExpireAt: the state of a token bucket, whose Tokens have no Fraction
	EffectCount                              // Count, ExpireAt: the state of a fixed window, whose Length is not known
	EffectRename                             // To: the object stands under To instead, with its deadline; what stood there is gone
	EffectCopy                               // To, ToDB: a copy stands there too; what stood there is gone
	EffectMove                               // ToDB: the object stands in that database instead, with its deadline; what stood there is gone
	EffectFlush                              // the database is empty
	EffectSwap                               // ToDB: the two databases have changed places
	EffectPolicy                             // Key, Value: there is a policy of this name and definition, in place of any before
	EffectPolicyDelete                       // Key: there is no policy of this name
	EffectBucket                             // Tokens, ExpireAt: the state of a token bucket, whose Tokens have no Earned
	EffectWindow                             // Count, ExpireAt: the state of a fixed window, whose Length is known
	EffectZSet                               // Value: the key holds the sorted set that zset.Set.Pack has told so, without a deadline
	EffectCounter                            // Counts, ExpireAt: the state of a sliding window counter
	effectKinds                              // how many there are, plus one
)

var effectNames = [...]string{
	EffectDelete: "delete", EffectExpire: "expire", EffectString: "string", EffectSplice: "splice", EffectHashSet: "hash-set", EffectHashDelete: "hash-delete",
	EffectAdd: "add", EffectRemove: "remove", EffectRemoveSpan: "remove-span", EffectHits: "hits", EffectTokens: "tokens", EffectCount: "count",
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

// changesKey tells whether the effect is about what its Key holds, rather than about whole databases or policies.
func (k EffectKind) changesKey() bool {
	return k != EffectFlush && k != EffectSwap && k != EffectPolicy && k != EffectPolicyDelete
}

// hasTo tells whether the effect is about what another key, To, holds as well.
func (k EffectKind) hasTo() bool { return k == EffectRename || k == EffectCopy }

// EffectKinds are all kinds there are, for those who must have something for each.
func EffectKinds() []EffectKind {
	all := make([]EffectKind, 0, effectKinds-1)
	for k := EffectKind(1); k < effectKinds; k++ {
		all = append(all, k)
	}
	return all
}

// Effect is one change of state, as a result: absolute times, final values. Applying it asks no clock, no
// configuration and no algorithm, so the effects of a run, applied in order to an empty engine, rebuild its state.
// It is one flat struct so that recording one allocates nothing.
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

	set *zset.Set // what Value tells, if it is made already: then there is no Value where there is no journal
}

// Hits are N members of a limiter's log, named `<At>-<Seq>`, `<At>-<Seq+1>`, …, each with the score At, which is Unix ms.
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
