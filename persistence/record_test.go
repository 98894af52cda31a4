package persistence

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// sample returns an effect of a kind with a value in each field of that kind.
func sample(kind effect.Kind) effect.Effect {
	full := effect.Effect{
		DB: 3, ToDB: 15, Key: engine.Key{Name: []byte("key\r\n")}, To: engine.Key{Name: []byte("to")},
		Field: []byte{0, 255}, Value: []byte("value"), Score: -1.5, Lo: 7, Hi: 1 << 40, ExpireAt: -1,
		Hits:   effect.Hits{At: 1767225600000, Seq: 12, N: 3},
		Tokens: limit.Tokens{Missing: limit.MaxCount, Earned: 99, Since: 1767225600000},
		Count:  limit.Count{Start: -60000, Used: 4},
	}
	bucket, window := full.Tokens, full.Count
	bucket.Fraction, bucket.Earned, window.Length = math.MaxUint64, 0, limit.MaxDuration
	has := kind.Fields()
	f := effect.Effect{Kind: kind, DB: full.DB, Key: full.Key}
	for bit, keep := range map[effect.Fields]func(){
		effect.HasToDB: func() { f.ToDB = full.ToDB }, effect.HasTo: func() { f.To = full.To },
		effect.HasField: func() { f.Field = full.Field }, effect.HasValue: func() { f.Value = full.Value },
		effect.HasRuns:  func() { f.Value = full.Value },
		effect.HasScore: func() { f.Score = full.Score },
		effect.HasLo:    func() { f.Lo = full.Lo }, effect.HasHi: func() { f.Hi = full.Hi },
		effect.HasExpireAt: func() { f.ExpireAt = full.ExpireAt }, effect.HasHits: func() { f.Hits = full.Hits },
		effect.HasTokens: func() { f.Tokens = full.Tokens }, effect.HasCount: func() { f.Count = full.Count },
		effect.HasBucket: func() { f.Tokens = bucket }, effect.HasWindow: func() { f.Count = window },
		effect.HasCounter: func() {
			f.Counts = limit.Counts{Start: -60000, Length: 60000, Current: limit.MaxCount, Previous: 1}
		},
	} {
		if has&bit != 0 {
			keep()
		}
	}
	return f
}

func TestEveryKindHasACodec(t *testing.T) {
	var all []effect.Effect
	for _, kind := range effect.Kinds() {
		require.NotZero(t, kind.Fields(), "kind %d", kind)
		all = append(all, sample(kind))
	}
	sealed := AppendCall([]byte("before"), 77, effect.AppendAll(nil, all))[len("before"):]
	got, size, err := readRecord(nil, append(sealed, "after"...))
	require.NoError(t, err)
	assert.Equal(t, len(sealed), size)
	assert.Equal(t, record{kind: recordCall, at: 77, effects: all}, got)
}

func TestMarksAreDecoded(t *testing.T) {
	for _, kind := range []recordKind{recordSynced, recordEnd} {
		mark, _, err := readRecord(nil, appendMark(nil, kind, -1, 1<<40))
		require.NoError(t, err)
		assert.Equal(t, record{kind: kind, at: -1, number: 1 << 40}, mark)
		_, _, err = readRecord(nil, reseal([]byte{byte(kind), 0, 0, 0}))
		assert.ErrorContains(t, err, "more than a number")
	}
}

func TestReadRecordRefusesDamage(t *testing.T) {
	var all []effect.Effect
	for _, kind := range effect.Kinds() {
		all = append(all, sample(kind))
	}
	sealed := AppendCall(nil, 77, effect.AppendAll(nil, all))
	for cut := range len(sealed) {
		_, _, err := readRecord(nil, sealed[:cut])
		require.ErrorIs(t, err, ErrShort, "cut at %d", cut)
	}
	for at := range sealed {
		damaged := append([]byte(nil), sealed...)
		damaged[at] ^= 0x40
		_, _, err := readRecord(nil, damaged)
		require.Error(t, err, "byte %d", at)
	}
}

// reseal adds a valid header to a damaged payload, so that the checks after the checksum are
// reached.
func reseal(payload []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	binary.LittleEndian.PutUint64(b, uint64(len(payload)))
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}

func TestUnknownKindIsNamed(t *testing.T) {
	_, _, err := readRecord(nil, reseal([]byte{byte(recordCall), 0, 200, 0, 0}))
	assert.ErrorContains(t, err, "unknown kind 200")
	_, _, err = readRecord(nil, reseal([]byte{200, 0}))
	assert.ErrorContains(t, err, "unknown kind of record 200")
	_, _, err = readRecord(nil, reseal(nil))
	assert.Error(t, err, "an empty record")
}

func FuzzReadRecord(f *testing.F) {
	for _, kind := range effect.Kinds() {
		f.Add(AppendCall(nil, 1, effect.AppendAll(nil, []effect.Effect{sample(kind)}))[headerSize:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		rec, size, err := readRecord(nil, reseal(payload))
		if err != nil {
			return
		}
		require.Equal(t, headerSize+len(payload), size)
		sealed := appendMark(nil, rec.kind, rec.at, rec.number)
		if rec.kind == recordCall {
			sealed = AppendCall(nil, rec.at, effect.AppendAll(nil, rec.effects))
		}
		again, _, err := readRecord(nil, sealed)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(rec), fmt.Sprint(again)) // as text: NaN is not equal to itself
	})
}

// The records of a run rebuild its state in an engine with another seed and other shards.
func TestReplayRebuildsState(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	journal := new(Memory)
	live := engine.New(engine.Options{Journal: journal})
	tx := live.NewTx()
	now := int64(1767225600000)
	call := func(e *engine.Engine, tx *engine.Tx, key string, cost int64) (answers []limit.Decision) {
		k := e.Key([]byte(key))
		tx.Begin(now, 0, []engine.Key{k}, true)
		defer tx.End()
		var d limit.Decision
		var err error
		switch key[0] {
		case 's':
			d, err = tx.Slide(k, []limit.Window{{Limit: 5, Length: 1000}}, cost, nil)
		case 't':
			bucket := limit.Bucket{Capacity: 5, Refill: 2, Period: 777}
			d, err = tx.Decide(&engine.Limit{Key: k, Rule: rule.Rule{Kind: rule.Token, Token: bucket}, Cost: cost})
		default:
			fixed := limit.Fixed{Limit: 5, Window: limit.Every(1000)}
			d, err = tx.Decide(&engine.Limit{Key: k, Rule: rule.Rule{Kind: rule.Fixed, Fixed: fixed}, Cost: cost})
		}
		require.NoError(t, err)
		return append(answers, d)
	}
	keys := []string{"s1", "s2", "t1", "t2", "f1", "f2"}
	for range 2000 {
		now += r.Int64N(200)
		call(live, tx, keys[r.IntN(len(keys))], r.Int64N(4))
	}

	replayed := engine.New(engine.Options{Seed: [2]uint64{9, 9}, Shards: 2})
	require.NoError(t, journal.Replay(replayed))
	replayedTx := replayed.NewTx()
	for _, key := range keys {
		assert.Equal(t, call(live, tx, key, 0), call(replayed, replayedTx, key, 0), key)
	}
}
