package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/storage"
)

// unpacked returns the records of a snapshot.
func unpacked(t testing.TB, content []byte) []byte {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	require.NoError(t, err)
	defer z.Close()
	records, err := z.DecodeAll(content[fileHeaderSize:], nil)
	require.NoError(t, err)
	return records
}

// packed is the inverse of unpacked, with the header of content.
func packed(t testing.TB, content, records []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(maxWindow/8))
	require.NoError(t, err)
	return z.EncodeAll(records, slices.Clone(content[:min(len(content), fileHeaderSize)]))
}

// flip returns a copy of b with a changed byte.
func flip(b []byte, at int64) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x10
	return b
}

// ofKind returns the names of the files of a kind, in order.
func (d *dataset) ofKind(kind fileKind) (names []string) {
	for name := range d.files {
		if k, _, _ := parseName(name); k == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tools runs a start, a check and a repair on a damaged directory, in this order.
type tools struct {
	t      *testing.T
	dir    string
	before map[string][]byte
	start  error
	output string // by the repair
}

func useTools(t *testing.T, d *dataset) *tools {
	x := &tools{t: t, dir: d.put(t), before: d.files}
	_, _, x.start = loaded(t, x.dir, 3)
	require.Error(t, x.start)
	var out bytes.Buffer
	err := Check(x.dir, &out, NoProgress{})
	require.Error(t, err)
	require.Contains(t, err.Error(), "a start on this directory would fail: ")
	require.Equal(t, d.files, readAll(t, x.dir), "neither a start that fails nor a check changes anything")
	return x
}

// requireSays checks that the start, the check and the repair report the same damage.
func (x *tools) requireSays(words string) {
	x.t.Helper()
	require.ErrorContains(x.t, x.start, words)
	require.ErrorContains(x.t, Check(x.dir, new(bytes.Buffer), NoProgress{}), words)
	var out bytes.Buffer
	require.NoError(x.t, Repair(x.dir, &out, NoProgress{}))
	x.output = out.String()
	require.Contains(x.t, x.output, "found: "+words)
	require.Equal(x.t, 1, strings.Count(x.output, "found: "+words), "reported once")
}

// requireRepaired checks that copies of the files are kept and that a start and a check succeed,
// and returns the state.
func (x *tools) requireRepaired() (state string) {
	x.t.Helper()
	copies, err := filepath.Glob(filepath.Join(x.dir, "before-repair-*"))
	require.NoError(x.t, err)
	require.Len(x.t, copies, 1)
	require.Contains(x.t, x.output, copies[0])
	require.Equal(x.t, x.before, readAll(x.t, copies[0]))
	require.NoError(x.t, Check(x.dir, new(bytes.Buffer), NoProgress{}))
	e, r, err := loaded(x.t, x.dir, 3)
	require.NoError(x.t, err)
	require.Nil(x.t, r.Torn)
	return stateOf(e)
}

// Each part of a record and of the header is damaged, in each file.
func TestDamageStopsTheStart(t *testing.T) {
	whole := newDataset(t)
	segments := whole.ofKind(logFile)
	require.Len(t, segments, 3)
	for i, name := range segments {
		at := whole.offsets[name][1]
		for part, damaged := range map[string]int64{
			"length": at + 1, "high length": at + 7, "checksum": at + 8, "payload": at + headerSize + 3,
		} {
			t.Run(name+" "+part, func(t *testing.T) {
				d := whole.with(name, flip(whole.files[name], damaged))
				x := useTools(t, d)
				require.ErrorContains(t, x.start, fmt.Sprintf(`"rlserver check %s"`, x.dir))
				require.ErrorContains(t, x.start, fmt.Sprintf(`"rlserver repair %s"`, x.dir))
				x.requireSays(fmt.Sprintf("%s, offset %d: ", name, at))
				require.Equal(t, whole.stateBefore(name, 1), x.requireRepaired())
				require.Contains(t, x.output, fmt.Sprintf("%s: cut at offset %d\n", name, at))
				for _, later := range segments[i+1:] {
					require.Contains(t, x.output, later+": removed\n")
				}
			})
		}
		for part, damaged := range map[string]int64{
			"magic": 0, "high version": 11, "kind": 12, "sequence": 16, "created": 25, "salt": 34,
			"header checksum": 40,
		} {
			t.Run(name+" "+part, func(t *testing.T) {
				x := useTools(t, whole.with(name, flip(whole.files[name], damaged)))
				x.requireSays(name + ", offset 0: file header: ")
				require.Equal(t, whole.last(), x.requireRepaired(), "the records after a damaged header are kept")
			})
		}
	}
}

func TestDamagedSnapshotStopsTheStart(t *testing.T) {
	whole := newDataset(t)
	name := whole.ofKind(snapshotFile)[0]
	content := whole.files[name]
	records := unpacked(t, content)
	second := int64(binary.LittleEndian.Uint64(records)) + headerSize
	for part, damaged := range map[string]int64{
		"length": second, "high length": second + 7, "checksum": second + 8, "payload": second + headerSize + 3,
	} {
		t.Run(part, func(t *testing.T) {
			x := useTools(t, whole.with(name, packed(t, content, flip(records, damaged))))
			x.requireSays(fmt.Sprintf("%s, offset %d: ", name, second))
			state := x.requireRepaired()
			require.Contains(t, x.output, name+": rewritten with the 1 records before the damage\n")
			require.NotEmpty(t, state)
			require.Contains(t, whole.states[0], state, "the first key, and no other")
		})
	}
	for part, damaged := range map[string]int64{
		"magic": 0, "kind": 12, "sequence": 16, "created": 25, "header checksum": 40,
	} {
		t.Run(part, func(t *testing.T) {
			x := useTools(t, whole.with(name, flip(content, damaged)))
			x.requireSays(name + ", offset 0: file header: ")
			require.Equal(t, whole.last(), x.requireRepaired())
		})
	}
	t.Run("without its end", func(t *testing.T) {
		x := useTools(t, whole.with(name, packed(t, content, records[:second])))
		x.requireSays(fmt.Sprintf("%s, offset %d: %v", name, second, ErrShort))
		x.requireRepaired()
	})
	t.Run("with more than its end", func(t *testing.T) {
		more := packed(t, content, append(slices.Clone(records), records[:second]...))
		x := useTools(t, whole.with(name, more))
		x.requireSays(fmt.Sprintf("%s, offset %d: records after the end", name, len(records)))
		require.Equal(t, whole.states[0], x.requireRepaired(),
			"the log is not read after a damaged snapshot")
	})
	for _, size := range []int{0, 1, fileHeaderSize - 1, fileHeaderSize, len(content) / 2, len(content) - 1} {
		t.Run(fmt.Sprint("of ", size, " bytes"), func(t *testing.T) {
			x := useTools(t, whole.with(name, content[:size]))
			x.requireSays(name + ", offset ")
			x.requireRepaired()
		})
	}
}

// with returns the same directory with another content of a file; nil removes it.
func (d *dataset) with(name string, content []byte) *dataset {
	files := maps.Clone(d.files)
	if files[name] = content; content == nil {
		delete(files, name)
	}
	return &dataset{files, d.states, d.offsets}
}

func TestMissingSegmentStopsTheStart(t *testing.T) {
	whole := newDataset(t)
	segments := whole.ofKind(logFile)
	for i, name := range segments[:2] {
		x := useTools(t, whole.with(name, nil))
		x.requireSays(fmt.Sprintf("%s is missing, and %s cannot be read without it", name, segments[i+1]))
		require.Equal(t, whole.stateBefore(name, 0), x.requireRepaired())
		require.NotContains(t, x.output, segments[0]+": removed")
		require.Contains(t, x.output, segments[2]+": removed")
	}
}

// A torn tail is cut off, as it was never acknowledged. The end of a log is cut at every byte, or
// zeroed or garbled from there on.
func TestTornTailIsCutOff(t *testing.T) {
	whole := newDataset(t)
	name := slices.Max(whole.ofKind(logFile))
	content, offsets := whole.files[name], whole.offsets[name]
	last := int(offsets[len(offsets)-1])
	rec, size, err := readRecord(nil, content[last:])
	require.NoError(t, err)
	end := last + size // of the last call; a mark follows
	prior, _, err := readRecord(nil, content[offsets[len(offsets)-2]:])
	require.NoError(t, err)
	for k := range some(size - 1) {
		cut := last + k
		zeroed, garbled := slices.Clone(content[:end]), slices.Clone(content[:end])
		clear(zeroed[cut:])
		for i := range garbled[cut:] {
			garbled[cut+i] ^= 0x5a
		}
		for how, tail := range map[string][]byte{"cut": content[:cut], "zeroed": zeroed, "garbled": garbled} {
			if bytes.Equal(tail, content[:end]) {
				continue // these bytes were zeros before
			}
			dir := whole.with(name, tail).put(t)
			require.NoError(t, Check(dir, new(bytes.Buffer), NoProgress{}))
			e, r, err := loaded(t, dir, 3)
			require.NoError(t, err, "%s at %d", how, cut)
			begin := int(r.Torn.Offset)
			require.LessOrEqual(t, begin, last)
			require.Equal(t,
				&Torn{Segment: name, Offset: int64(begin), Bytes: int64(len(tail) - begin), Since: prior.at}, r.Torn,
				"%s at %d", how, cut)
			require.Equal(t, whole.states[len(whole.states)-2], stateOf(e))
			require.Equal(t, content[:begin], readAll(t, dir)[name], "the tail is cut off")
			e, r, err = loaded(t, dir, 3)
			require.NoError(t, err)
			require.Nil(t, r.Torn)
			require.Equal(t, whole.states[len(whole.states)-2], stateOf(e))
		}
	}
	require.Greater(t, rec.at, prior.at)

	t.Run("not if the tail was synced", func(t *testing.T) {
		x := useTools(t, whole.with(name, flip(content, int64(last+headerSize))))
		x.requireSays(fmt.Sprintf("%s, offset %d: ", name, last))
		require.Equal(t, whole.states[len(whole.states)-2], x.requireRepaired())
	})
	t.Run("a client cannot forge a mark", func(t *testing.T) {
		forged := slices.Clone(content[:last+3])
		for n := range int64(4000) {
			forged = appendMark(forged, recordSynced, testEpoch, n)
		}
		_, r, err := loaded(t, whole.with(name, forged).put(t), 3)
		require.NoError(t, err)
		require.NotNil(t, r.Torn)
	})
}

// A crash can leave a last segment with an incomplete header.
func TestSegmentWithoutHeaderIsRemoved(t *testing.T) {
	whole := newDataset(t)
	last := slices.Max(whole.ofKind(logFile))
	_, number, _ := parseName(last)
	name := fileName(logFile, number+1)
	for size := range fileHeaderSize {
		dir, output := whole.with(name, append([]byte{}, whole.files[last][:size]...)).put(t), new(bytes.Buffer)
		require.NoError(t, Check(dir, output, NoProgress{}))
		require.Contains(t, output.String(), name+": incomplete header, a start removes it\n")
		e, r, err := loaded(t, dir, 3)
		require.NoError(t, err)
		require.Nil(t, r.Torn, "it had no records")
		require.Equal(t, whole.last(), stateOf(e))
		require.NoFileExists(t, filepath.Join(dir, name))
	}
}

// A damaged snapshot is skipped if older files contain all of it.
func TestDamagedSnapshotIsSkipped(t *testing.T) {
	older := newDataset(t)
	from := older.ofKind(snapshotFile)[0]
	dir := older.put(t)
	w := newDataWorld(t, dir)
	require.True(t, w.start(storage.SyncAlways))
	files := older.files
	require.NoError(t, w.store.Snapshot())
	w.apply(callsOfAllKinds()[0]...)
	state := stateOf(w.e)
	w.stop()
	for name, content := range readAll(t, dir) {
		files[name] = content
	}
	both := &dataset{files: files}
	snapshots := both.ofKind(snapshotFile)
	require.Len(t, snapshots, 2)
	damaged := both.with(snapshots[1], flip(files[snapshots[1]], fileHeaderSize+20))
	// The segment that the start above began was empty, and was removed with the older files.
	_, newest, _ := parseName(snapshots[1])
	missing := fileName(logFile, newest-1)
	damaged.files[missing] = fileHeader{version: formatVersion, kind: logFile, sequence: newest - 1}.encode()
	dir = damaged.put(t)
	var out bytes.Buffer
	require.NoError(t, Check(dir, &out, NoProgress{}))
	require.Contains(t, out.String(), "skipping the newest snapshot")
	out.Reset()
	require.NoError(t, Repair(dir, &out, NoProgress{}))
	require.Contains(t, out.String(), "nothing was changed")
	require.Equal(t, damaged.files, readAll(t, dir))
	e, r, err := loaded(t, dir, 3)
	require.NoError(t, err)
	require.ErrorContains(t, r.Skipped, snapshots[1])
	require.Equal(t, from, r.Snapshot)
	require.Equal(t, state, stateOf(e))

	x := useTools(t, damaged.with(missing, nil))
	x.requireSays(snapshots[1] + ", offset ")
	x.requireRepaired()
}

// Files of a newer format are not changed.
func TestNewerFormatIsRefused(t *testing.T) {
	whole := newDataset(t)
	for name, content := range whole.files {
		for how, header := range map[string]func(h []byte){
			"with the same checksum": func(h []byte) {
				binary.LittleEndian.PutUint32(h[40:], crc32.Checksum(h[:40], castagnoli))
			},
			"with another checksum": func([]byte) {},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				newer := slices.Clone(content)
				binary.LittleEndian.PutUint32(newer[8:], formatVersion+41)
				header(newer)
				d := whole.with(name, newer)
				dir := d.put(t)
				words := name + " is of format version 50, and this server reads versions up to 9: " +
					"start a newer rlserver on this directory"
				_, _, err := loaded(t, dir, 3)
				require.EqualError(t, err, words)
				require.ErrorContains(t, Check(dir, new(bytes.Buffer), NoProgress{}), words)
				require.EqualError(t, Repair(dir, new(bytes.Buffer), NoProgress{}), words)
				require.ErrorContains(t, Dump(dir, new(bytes.Buffer), false, NoProgress{}), words)
				require.Equal(t, d.files, readAll(t, dir))
			})
		}
	}
}

func TestDatabaseThatIsNotConfiguredIsAnError(t *testing.T) {
	whole := newDataset(t)
	dir := whole.put(t)
	_, _, err := loaded(t, dir, 2)
	require.EqualError(t, err, "the data has keys in database 2: start with --databases 3 or more")
	require.Equal(t, whole.files, readAll(t, dir))
	require.NoError(t, Check(dir, new(bytes.Buffer), NoProgress{}), "a check uses as many databases as it needs")
}

// A file that cannot be read is not damaged, and is not changed.
func TestUnreadableFileIsNotDamage(t *testing.T) {
	s := newScanner("", unreadable{}, 0, 100)
	_, err := s.next()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NotErrorAs(t, err, new(*damage))
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error) {
	return 0, &os.PathError{Op: "read", Path: "x", Err: os.ErrDeadlineExceeded}
}

// Files with other names are ignored.
func TestOtherFilesAreIgnored(t *testing.T) {
	whole := newDataset(t)
	others := whole
	for _, name := range []string{
		"README", "1.log", "00000000001.log", "0000000000.log", "0000000001.log.gz", "appendonly.aof",
	} {
		others = others.with(name, []byte("other"))
	}
	dir := others.put(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0000000099.log"), 0o750))
	e, _, err := loaded(t, dir, 3)
	require.NoError(t, err)
	require.Equal(t, whole.last(), stateOf(e))
	require.Equal(t, others.files, readAll(t, dir))
	var out bytes.Buffer
	require.NoError(t, Check(dir, &out, NoProgress{}))
	assert.Equal(t, 5, strings.Count(out.String(), "\n"), "a line for each file and one for all:\n%s", out.String())
}
