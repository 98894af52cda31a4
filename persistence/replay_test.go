package persistence

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
)

// segmentOf writes the only segment of a directory, and returns the directory.
func segmentOf(t *testing.T, records []byte) (dir string) {
	dir = t.TempDir()
	header := fileHeader{version: formatVersion, kind: logFile, sequence: 1, created: testEpoch}
	content := append(header.encode(), records...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, fileName(logFile, 1)), content, 0o600))
	return dir
}

func setTo(name string, value int) effect.Effect {
	return effect.Effect{Kind: effect.String, Key: key(name), Value: fmt.Append(nil, value)}
}

// Records of any size, small ones and those with more effects than a batch, are applied in order.
func TestRecordsAreAppliedInOrder(t *testing.T) {
	const records = 3000
	var log []byte
	for i := range records {
		effects := []effect.Effect{setTo("k", i), setTo(fmt.Sprint(i%7), i)}
		if i%500 == 250 {
			for j := range 3 * batchEffects {
				effects = append(effects, setTo(fmt.Sprint("many", j), i))
			}
			effects = append(effects, effect.Effect{Kind: effect.Rename, Key: key("many0"), To: key("renamed")})
		}
		if i%700 == 0 { // fills a batch by its bytes
			effects = append(effects, effect.Effect{
				Kind: effect.String, Key: key("large"), Value: make([]byte, keptBytes+i),
			})
		}
		log = AppendCall(log, testEpoch+int64(i), effect.AppendAll(nil, effects))
	}
	e, r, err := loaded(t, segmentOf(t, log), 3)
	require.NoError(t, err)
	assert.EqualValues(t, records, r.Records)
	assert.EqualValues(t, testEpoch+records-1, r.Last)
	keys, _ := e.Size(0)
	assert.Equal(t, 1+7+3*batchEffects+1, keys) // k, i%7, many1 to renamed, large
	tx := e.NewTx()
	for name, want := range map[string]int{
		"k": records - 1, "0": 2996, "1": 2997, "many1": 2750, "renamed": 2750,
	} {
		k := e.Key([]byte(name))
		tx.Begin(testEpoch, 0, []effect.Key{k}, false)
		value, _, _ := tx.Get(k)
		assert.Equal(t, fmt.Sprint(want), string(value), name)
		tx.End()
	}
}

// A record that does not fit is reported at its place, even if later ones, which are read before it
// is applied, are damaged, and nothing is cut off.
func TestTheFirstFaultIsReported(t *testing.T) {
	for _, later := range []int{0, 10, 5 * maxBatches * batchEffects} {
		var log []byte
		for i := range 1000 {
			log = AppendCall(log, testEpoch, effect.AppendAll(nil, []effect.Effect{setTo("k", i)}))
		}
		at := fileHeaderSize + len(log)
		log = AppendCall(log, testEpoch, effect.AppendAll(nil, []effect.Effect{
			setTo("k", 0), {Kind: effect.HashDelete, Key: key("missing"), Field: []byte("f")},
		}))
		for i := range later {
			log = AppendCall(log, testEpoch, effect.AppendAll(nil, []effect.Effect{setTo("k", i)}))
		}
		dir := segmentOf(t, append(log, "torn"...))
		before := readAll(t, dir)
		_, _, err := loaded(t, dir, 3)
		assert.ErrorContains(t, err, fmt.Sprintf("%s, offset %d: ", fileName(logFile, 1), at), later)
		assert.ErrorContains(t, err, "does not fit", later)
		assert.Equal(t, before, readAll(t, dir))
	}
}

// Of several effects that do not fit, which different goroutines meet, the first is reported, also
// before and after calls that change several keys.
func TestTheFirstOfSeveralFaultsIsReported(t *testing.T) {
	const records = 5 * batchEffects
	for range 10 {
		at, rename := rand.IntN(records-200), rand.IntN(records)
		bad := []int{at, at + 1 + rand.IntN(100), at + 1 + rand.IntN(100), records - 1}
		var log []byte
		offset := 0
		for i := range records {
			if i == at {
				offset = fileHeaderSize + len(log)
			}
			f := setTo(fmt.Sprint(i), i)
			switch {
			case slices.Contains(bad, i):
				f = effect.Effect{Kind: effect.HashDelete, Key: key(fmt.Sprint("missing", i)), Field: []byte("f")}
			case i == rename && i > 0 && !slices.Contains(bad, i-1):
				f = effect.Effect{Kind: effect.Rename, Key: key(fmt.Sprint(i - 1)), To: key("renamed")}
			}
			log = AppendCall(log, testEpoch, effect.AppendAll(nil, []effect.Effect{f}))
		}
		_, _, err := loaded(t, segmentOf(t, log), 3)
		require.ErrorContains(t, err, fmt.Sprintf("%s, offset %d: ", fileName(logFile, 1), offset))
		require.ErrorContains(t, err, fmt.Sprintf(`"missing%d" does not fit`, at))
	}
}

// A log of changes to single keys, and in between to several or to all, gives the same state
// whichever goroutines apply it.
func TestReplayGivesTheSameState(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	name := func() engine.Key { return key(fmt.Sprint(r.IntN(100))) }
	several := []effect.Kind{
		effect.Rename, effect.Rename, effect.Copy, effect.Copy, effect.Move, effect.Move, effect.Swap, effect.Flush,
	}
	want := engine.New(engine.Options{Databases: 3})
	var log []byte
	for i := 0; i < 30*batchEffects; i++ {
		f := setTo(fmt.Sprint(r.IntN(100)), i)
		switch n := r.IntN(15 * batchEffects); { // half of the batches have one of several
		case n < len(several):
			f = effect.Effect{Kind: several[n], Key: name(), To: name(), ToDB: r.IntN(3)}
		case n < 3*batchEffects:
			f = effect.Effect{Kind: effect.Delete, Key: name()}
		}
		f.DB = r.IntN(3)
		if err := want.Apply(testEpoch, []effect.Effect{f}); err == nil {
			log = AppendCall(log, testEpoch, effect.AppendAll(nil, []effect.Effect{f}))
		}
	}
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		e, _, err := loaded(t, segmentOf(t, log), 3)
		require.NoError(t, err)
		require.Equal(t, stateOf(want), stateOf(e), procs)
	}
}

// Calls that take all locks, such as changes of overrides, take them once for a whole batch: what
// taking them allocates shows how often.
func TestABatchTakesAllLocksOnce(t *testing.T) {
	const records = 10 * batchEffects
	var log []byte
	for range records {
		log = AppendCall(log, testEpoch, effect.AppendAll(nil, []effect.Effect{{Kind: effect.Swap, ToDB: 1}}))
	}
	dir := segmentOf(t, log)
	assert.Less(t, testing.AllocsPerRun(1, func() {
		_, _, err := loaded(t, dir, 2)
		require.NoError(t, err)
	}), records/2.0)
}
