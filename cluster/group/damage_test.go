package group

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logFile returns the file of a log, and where each of its writes begins and ends.
func logFile(t *testing.T, writes int) (file []byte, ends []int) {
	dir := t.TempDir()
	log, err := wal.Open(dir, wal.WithSegmentSize(16<<10))
	require.NoError(t, err)
	name := ""
	read := func() []byte {
		if name == "" {
			names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
			require.NoError(t, err)
			require.Len(t, names, 1)
			name = names[0]
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		return b
	}
	ends = []int{0}
	index := uint64(0)
	for range writes {
		var entries []*raft.Log
		for range 1 + rand.IntN(3) {
			index++
			data := make([]byte, 1+rand.IntN(40))
			for i := range data { // with zeros, and what looks like a frame
				data[i] = byte(rand.IntN(4)) * byte(rand.IntN(2))
			}
			entries = append(entries, &raft.Log{Index: index, Term: 1, Data: data})
		}
		require.NoError(t, log.StoreLogs(entries))
		file = read()
		end := len(bytes.TrimRight(file, "\x00"))
		ends = append(ends, (end+frameHeader-1)/frameHeader*frameHeader)
	}
	require.NoError(t, log.Close())
	return file, ends
}

func damageOf(t *testing.T, b []byte) (end int, damaged bool) {
	found, err := readWrites(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return int(found.end), found.damaged
}

// reaches reports whether a byte belongs to the length of a frame from which frames now follow each
// other into the last write: then all up to there looks like one write that was not completed.
func reaches(b []byte, ends []int, at int) bool {
	next, last := at/frameHeader*frameHeader, ends[len(ends)-2]
	if at-next < 4 {
		return false
	}
	for next <= last {
		frame, size, ok := frameOf(b[next:])
		if !ok || frame == frameCommit {
			return false
		}
		next += size
	}
	return true
}

func TestDamageOfAWriteThatOthersFollow(t *testing.T) {
	file, ends := logFile(t, 12)
	last := ends[len(ends)-2]
	at, damaged := damageOf(t, file)
	assert.False(t, damaged)
	assert.EqualValues(t, ends[len(ends)-1], at)
	for at := range last {
		b := bytes.Clone(file)
		b[at] ^= byte(1 + rand.IntN(255))
		if _, damaged := damageOf(t, b); !damaged && !reaches(b, ends, at) {
			t.Errorf("byte %d of %d is damaged, which is not noticed; the writes end at %v", at, last, ends)
		}
	}
	for range 1000 {
		b := bytes.Clone(file)
		from := rand.IntN(last)
		clear(b[from : from+rand.IntN(last-from+1)])
		if bytes.Equal(b, file) {
			continue
		}
		if _, damaged := damageOf(t, b); !damaged {
			t.Errorf("bytes from %d of %d are zero, which is not noticed; the writes end at %v", from, last, ends)
		}
	}
}

func TestATornWriteIsNoDamage(t *testing.T) {
	file, ends := logFile(t, 12)
	last, end := ends[len(ends)-2], ends[len(ends)-1]
	check := func(b []byte, what string) {
		if at, damaged := damageOf(t, b); damaged || at < last {
			t.Errorf("a torn write (%s) from %d to %d counts as damage at %d", what, last, end, at)
		}
	}
	for size := range file {
		if size >= last {
			check(file[:size], "cut")
		}
	}
	for range 1000 {
		b := bytes.Clone(file)
		for at := last; at < end; at += frameHeader {
			if rand.IntN(3) == 0 {
				clear(b[at : at+frameHeader])
			}
		}
		check(b, "parts")
	}
	// what a longer write has left behind that was torn, and overwritten by the present last one
	for range 1000 {
		b := bytes.Clone(file)
		for at := end; at < end+200; at++ {
			b[at] = byte(rand.IntN(4)) * byte(rand.IntN(2))
		}
		check(b, "an older one")
	}
}

// A client may send what looks like a complete write.
func TestAClientCannotMakeATornWriteLookDamaged(t *testing.T) {
	file, ends := logFile(t, 5)
	sent := file[ends[1]:ends[3]]
	payload := append(bytes.Repeat([]byte{1}, 16), sent...)
	torn := binary.LittleEndian.AppendUint32([]byte{frameEntry, 0, 0, 0}, uint32(len(payload)+100))
	copy(file[ends[5]:], append(torn, payload...))
	_, damaged := damageOf(t, file)
	assert.False(t, damaged)
}

// The files before the last one are complete: any byte of them that changes is damage.
func TestDamageOfASealedFile(t *testing.T) {
	dir := t.TempDir()
	log, err := wal.Open(dir, wal.WithSegmentSize(2<<10))
	require.NoError(t, err)
	var names []string
	for index := uint64(1); len(names) < 2; index++ {
		require.NoError(t, log.StoreLogs([]*raft.Log{{Index: index, Term: 1, Data: make([]byte, 100)}}))
		names, _, err = logFiles(dir)
		require.NoError(t, err)
	}
	require.NoError(t, log.Close())
	require.NoError(t, checkLog(dir))
	file, err := os.ReadFile(names[0])
	require.NoError(t, err)
	found, err := readWrites(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	for at := range found.end {
		b := bytes.Clone(file)
		b[at] ^= byte(1 + rand.IntN(255))
		require.NoError(t, os.WriteFile(names[0], b, 0o600))
		assert.ErrorContains(t, checkLog(dir), "damaged", at)
		require.NoError(t, os.Truncate(names[0], at))
		assert.ErrorContains(t, checkLog(dir), "damaged", at)
	}
}

func TestTheLogInAFolderOfAnyNameIsChecked(t *testing.T) {
	file, ends := logFile(t, 3)
	file[ends[1]-1] ^= 1
	for _, name := range []string{"a[1]*?", "["} {
		dir := filepath.Join(t.TempDir(), name)
		assert.NoError(t, checkLog(dir), "there is none yet")
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "1.wal"), file, 0o600))
		assert.ErrorContains(t, checkLog(dir), "damaged")
	}
}

func TestADamagedLogIsRefused(t *testing.T) {
	tr := newTrio(t)
	tr.startAll()
	leader, r := tr.leading()
	for range 10 {
		_, err := admit(r, "k", 100)
		require.NoError(t, err)
	}
	dir := leader.group.options.Dir
	leader.stop()
	names, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	require.NoError(t, err)
	slices.Sort(names)
	name := names[len(names)-1]
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	b[segmentHeader+frameHeader+20] ^= 1
	require.NoError(t, os.WriteFile(name, b, 0o600))
	_, err = Open(leader.options(0))
	assert.ErrorContains(t, err, name)
	assert.ErrorContains(t, err, "damaged")
}
