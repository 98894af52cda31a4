package persistence

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/internal/storage"
)

// newDataWorld returns a world whose data is in a real directory, as the tools need it.
func newDataWorld(t testing.TB, dir string) *world {
	w := newWorld(t, nil, testEpoch)
	w.o.Dir, w.o.fs = dir, nil
	return w
}

// apply makes a call with the given effects, and waits until it is acknowledged.
func (w *world) apply(effects ...effect.Effect) {
	w.t.Helper()
	at := w.now.Add(10)
	require.NoError(w.t, w.e.Apply(at, effects))
	w.states = append(w.states, stateOf(w.e))
	require.NoError(w.t, w.store.Wait(w.store.Append(at, effect.AppendAll(nil, effects))))
}

// stop closes the store.
func (w *world) stop() {
	w.t.Helper()
	require.NoError(w.t, w.store.Close())
}

func key(name string) engine.Key { return engine.Key{Name: []byte(name)} }

// callsOfAllKinds returns calls for an empty engine that have every kind of effect and leave a key
// of every type in three databases.
func callsOfAllKinds() [][]effect.Effect {
	binary := string([]byte{0, 255, '\r', '\n'}) + " key"
	hit := func(name string, lo int, seq uint64, n int64) effect.Effect {
		return effect.Effect{
			Kind:     effect.AddHits,
			Key:      key(name),
			Lo:       lo,
			Hits:     effect.Hits{At: testEpoch + int64(seq), Seq: seq, N: n},
			ExpireAt: testEpoch + hour,
		}
	}
	member := func(name, field string, score float64) effect.Effect {
		return effect.Effect{Kind: effect.Add, Key: key(name), Field: []byte(field), Score: score}
	}
	field := func(name, field, value string) effect.Effect {
		return effect.Effect{Kind: effect.HashSet, Key: key(name), Field: []byte(field), Value: []byte(value)}
	}
	text := func(db int, name, value string) effect.Effect {
		return effect.Effect{Kind: effect.String, DB: db, Key: key(name), Value: []byte(value)}
	}
	reserve := func(name, call string, forgets int, form object.Form, amount int64) effect.Effect {
		return effect.Effect{
			Kind: effect.Reserve, Key: key(name), Field: []byte(call), Lo: forgets, Hi: int(form),
			Hold: effect.Hold{Amount: amount, Until: testEpoch + 1000 + amount}, ExpireAt: testEpoch + hour,
		}
	}
	return [][]effect.Effect{
		{
			text(0, "text", "Hello, world"),
			{Kind: effect.Insert, Key: key("list"), Field: []byte("list"), Value: []byte("\x01a\x00\x02bc"), Hi: 3},
			{Kind: effect.Insert, Key: key("members"), Field: []byte("set"), Value: []byte("\x01a\x021 "), Hi: 2},
			reserve("rate", "call 1", 0, object.FormToken, 5), reserve("rate", "call 2", 1, object.FormToken, 7),
			{Kind: effect.Terms, Key: key("rate"), Value: []byte("TOKEN 10 1 1s")},
			reserve("unused", "call", 0, 0, 1),
			reserve("slide", "call", 0, 0, 1),
			{Kind: effect.Terms, Key: key("slide"), Value: []byte("SLIDE 10 1h,SLIDE 20 1d")},
			{
				Kind: effect.Runs, Key: key("record"),
				Value: effect.AppendRun(effect.AppendRun(nil, 0, effect.Hits{At: testEpoch, N: 1}),
					testEpoch, effect.Hits{At: testEpoch + 7, Seq: 3, N: 20}),
			},
			reserve("counted", "settled", 0, object.FormCounter, 0), reserve("counted", "open", 0, 0, 1),
			{Kind: effect.Forget, Key: key("counted"), Lo: 1},
		},
		{
			{Kind: effect.Splice, Key: key("text"), Lo: 7, Value: []byte("limits")},
			{Kind: effect.Splice, Key: key("spliced"), Lo: 3, Value: []byte("x")},
		},
		{{Kind: effect.String, Key: key("session"), Value: []byte{}, ExpireAt: testEpoch + hour}},
		{text(0, binary, "\x80\x81")},
		{field("hash", "one", "1"), field("hash", "two", "2 \"quoted\""), field("hash", "three", "")},
		{{Kind: effect.HashDelete, Key: key("hash"), Field: []byte("one")},
			{
				Kind:     effect.Counter,
				Key:      key("counter"),
				Counts:   limit.Counts{Start: testEpoch, Length: hour, Current: 3, Previous: 9},
				ExpireAt: testEpoch + 2*hour,
			}},
		{{Kind: effect.Expire, Key: key("hash"), ExpireAt: testEpoch + 2*hour}},
		{
			member("set", "a", -1.5),
			member("set", "b", math.Inf(1)),
			member("set", "c", 1e300),
			member("set", "d", 0.1),
			member("set", "e=f", 7),
		},
		{
			{Kind: effect.Remove, Key: key("set"), Field: []byte("a")},
			{Kind: effect.RemoveSpan, Key: key("set"), Lo: 0, Hi: 1},
		},
		{hit("slide", 0, 0, 5)}, {hit("slide", 0, 1, 1)}, {hit("slide", 2, 2, 3)},
		{
			{
				Kind:     effect.Tokens,
				Key:      key("bucket"),
				Tokens:   limit.Tokens{Missing: 4, Earned: 17, Since: testEpoch},
				ExpireAt: testEpoch + hour,
			},
		},
		{
			{
				Kind:     effect.Count,
				Key:      key("window"),
				Count:    limit.Count{Start: testEpoch - 1000, Used: 3},
				ExpireAt: testEpoch + hour,
			},
		},
		{text(0, "old", "name")}, {{Kind: effect.Rename, Key: key("old"), To: key("new")}},
		{{Kind: effect.Copy, Key: key("slide"), To: key("copied"), ToDB: 2}},
		{{Kind: effect.Move, Key: key("new"), ToDB: 1}},
		{text(0, "gone", "soon")}, {{Kind: effect.Delete, Key: key("gone")}},
		{{Kind: effect.Swap, DB: 1, ToDB: 2}},
		{
			text(2, "here", "and away"),
			{
				Kind:  effect.ZSet,
				Key:   key("stored"),
				Value: []byte("\x01m\x00\x00\x00\x00\x00\x00\xf0\x3f\x01\xff\x00\x00\x00\x00\x00\x00\xf0\x7f"),
			},
		},
		{
			{Kind: effect.Flush, DB: 2},
			{
				Kind:     effect.Bucket,
				Key:      key("rate"),
				Tokens:   limit.Tokens{Missing: 4, Fraction: 1<<63 + 17, Since: testEpoch},
				ExpireAt: testEpoch + hour,
			},
			{
				Kind:     effect.Window,
				Key:      key("quota"),
				Count:    limit.Count{Start: testEpoch - 1000, Length: hour, Used: 3},
				ExpireAt: testEpoch + hour - 1000,
			},
			{Kind: effect.Script, Key: key("a"), Value: []byte("x")},
			{Kind: effect.ScriptDelete, Key: key("a")},
			{Kind: effect.Script, Key: key("b"), Value: []byte("\n"), Lo: 1},
			{
				Kind: effect.Call, Key: key("set"), Field: []byte("r"),
				Hits: effect.Hits{At: testEpoch, Seq: 1, N: 1 << 40},
			},
			{
				Kind: effect.Uncall, Key: key("set"), Field: []byte("r"),
				Hits: effect.Hits{At: testEpoch, Seq: 4, N: 1<<40 - 20},
			},
		},
		{text(2, "last", "word")},
	}
}

// dataset is a directory after an orderly stop, with its states.
type dataset struct {
	files   map[string][]byte
	states  []string           // at the snapshot, and after each call from there on
	offsets map[string][]int64 // of these calls, in each segment
}

// newDataset creates a directory with a snapshot and three segments.
func newDataset(t testing.TB) *dataset {
	d := &dataset{offsets: map[string][]int64{}}
	dir := t.TempDir()
	w := newDataWorld(t, dir)
	require.True(t, w.start(storage.SyncAlways))
	for i, call := range callsOfAllKinds() {
		w.apply(call...)
		if i == 6 {
			require.NoError(t, w.store.Snapshot())
			d.states = w.states[len(w.states)-1:]
			w.states = nil
		}
	}
	w.stop()
	d.states = append(d.states, w.states...)
	d.files = readAll(t, dir)
	for name, content := range d.files {
		if kind, _, _ := parseName(name); kind == logFile {
			d.offsets[name] = callsIn(t, content)
		}
	}
	return d
}

// callsIn returns the offsets of the calls in a segment.
func callsIn(t testing.TB, content []byte) (offsets []int64) {
	for at := fileHeaderSize; at < len(content); {
		rec, size, err := readRecord(nil, content[at:])
		require.NoError(t, err)
		if rec.kind == recordCall {
			offsets = append(offsets, int64(at))
		}
		at += size
	}
	return offsets
}

// stateBefore returns the state after a start that reads the log up to the i-th call of a segment.
func (d *dataset) stateBefore(segment string, i int) string {
	for name, offsets := range d.offsets {
		if name < segment {
			i += len(offsets)
		}
	}
	return d.states[i]
}

func (d *dataset) last() string { return d.states[len(d.states)-1] }

// put writes the files to a new directory.
func (d *dataset) put(t testing.TB) (dir string) {
	dir = t.TempDir()
	writeAll(t, dir, d.files)
	return dir
}

func writeAll(t testing.TB, dir string, files map[string][]byte) {
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o640))
	}
}

// readAll reads the files of a directory, except the lock.
func readAll(t testing.TB, dir string) map[string][]byte {
	files := map[string][]byte{}
	names, err := directory(dir).list()
	require.NoError(t, err)
	for _, name := range names {
		if name == lockName {
			continue
		}
		files[name], err = os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
	}
	return files
}

// loaded returns the state after a start on a directory.
func loaded(t testing.TB, dir string, databases int) (e *engine.Engine, r Recovery, err error) {
	s, err := Open(newDataWorld(t, dir).o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	e = engine.New(engine.Options{Databases: databases})
	r, err = s.Load(e)
	return e, r, err
}

func TestDatasetHasSnapshotAndThreeSegments(t *testing.T) {
	d := newDataset(t)
	require.Len(t, d.files, 4, fmt.Sprint(d.offsets))
	e, r, err := loaded(t, d.put(t), 3)
	require.NoError(t, err)
	require.Equal(t, 3, r.Segments)
	require.NotEmpty(t, r.Snapshot)
	require.Equal(t, d.last(), stateOf(e))
	for name, offsets := range d.offsets {
		require.GreaterOrEqual(t, len(offsets), 3, name)
	}
}
