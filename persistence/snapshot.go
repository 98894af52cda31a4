package persistence

import (
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"rlserver/engine"
	"rlserver/engine/effect"
)

const (
	snapshotPiece = 64 << 10               // bytes of records that are compressed together
	snapshotWork  = 200 * time.Microsecond // of work before a rest, in which calls run
	snapshotRest  = 4                      // how many times as long as the work a rest is
	longestRest   = 100 * time.Millisecond
	snapshotSync  = 8 << 20 // bytes between syncs: one sync at the end would delay those of the log
)

// snapshotWriter writes records to a file that gets its final name when it is complete.
type snapshotWriter struct {
	fs      fileSystem
	name    string
	now     int64
	file    outFile
	packed  *zstd.Encoder
	buf     []byte // records that wait to be compressed
	records int64
	size    int64 // bytes in the file
	clean   int64 // bytes of the file that are synced
}

func newSnapshotWriter(fs fileSystem, sequence uint64, now int64) (*snapshotWriter, error) {
	w := &snapshotWriter{fs: fs, name: fileName(snapshotFile, sequence), now: now}
	var err error
	if w.file, err = fs.create(w.name + temporary); err != nil {
		return nil, err
	}
	header := fileHeader{version: formatVersion, kind: snapshotFile, sequence: sequence, created: now}
	if _, err = w.Write(header.encode()); err == nil {
		w.packed, err = zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(maxWindow/8))
	}
	if err != nil {
		w.discard()
		return nil, err
	}
	return w, nil
}

// Write writes compressed bytes to the file.
func (w *snapshotWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.size += int64(n)
	if err == nil && w.size-w.clean >= snapshotSync {
		w.clean = w.size
		err = w.file.Sync()
	}
	return n, err
}

// add adds the effects of a call to the next piece.
func (w *snapshotWriter) add(effects []effect.Effect) {
	w.buf = appendRecord(w.buf, w.now, effects)
	w.records++
}

// flush compresses the records that were added.
func (w *snapshotWriter) flush() error {
	_, err := w.packed.Write(w.buf)
	w.buf = w.buf[:0]
	if cap(w.buf) > 4*snapshotPiece {
		w.buf = nil
	}
	return err
}

// finish completes the file, syncs it and gives it its final name.
func (w *snapshotWriter) finish() error {
	w.buf = appendMark(w.buf, recordEnd, w.now, w.records)
	err := w.flush()
	if err == nil {
		err = w.packed.Close()
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err == nil {
		err = w.fs.rename(w.name+temporary, w.name)
	}
	if err == nil {
		err = w.fs.syncDir()
	}
	return err
}

// discard removes an incomplete file.
func (w *snapshotWriter) discard() {
	w.file.Close()
	w.fs.remove(w.name + temporary)
}

// writeSnapshot writes the state of an engine at one point in time to a file. cut is called at that
// time and returns the number of the segment that follows; ready returns when the log has reached
// that segment. It works a fifth of the time, and leaves the rest to calls.
func writeSnapshot(fs fileSystem, e *engine.Engine, now func() int64, cut func() uint64,
	ready func(sequence uint64) error,
	progress func(done, total int64) error) (sequence uint64, size int64, err error) {
	s := e.Snapshot(func() { sequence = cut() })
	defer s.Close()
	w, err := newSnapshotWriter(fs, sequence, now())
	if err != nil {
		return 0, 0, fmt.Errorf("snapshot %s cannot be created: %w", fileName(snapshotFile, sequence), err)
	}
	start := time.Now()
	for more := true; more && err == nil; {
		more = s.Step(w.add)
		if len(w.buf) >= snapshotPiece || !more {
			err = w.flush()
		}
		if err == nil {
			err = progress(s.Keys())
		}
		if worked := time.Since(start); worked >= snapshotWork && err == nil {
			// a longer time was spent waiting for the disk or a lock
			time.Sleep(min(snapshotRest*worked, longestRest))
			start = time.Now()
		}
	}
	if err == nil {
		err = ready(sequence)
	}
	if err == nil {
		err = w.finish()
	}
	if err != nil {
		w.discard()
		return 0, 0, fmt.Errorf("snapshot %s has failed: %w", w.name, err)
	}
	return sequence, w.size, nil
}
