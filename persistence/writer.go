package persistence

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"time"

	"rlserver/engine/effect"
	"rlserver/internal/storage"
)

// retryInterval is the time between retries of a write that found the disk full.
const retryInterval = 250 * time.Millisecond

// run is the writer goroutine. It sleeps while there is nothing to write or to sync.
func (l *log) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ending := false; !ending; {
		select {
		case <-l.quit:
			ending = true
		case <-l.soon:
			timer.Reset(writeDelay)
			continue
		case <-l.wake:
			l.gather()
		case <-timer.C:
		}
		if l.ended {
			continue
		}
		if early := l.untilRetry(); early > 0 && !ending {
			timer.Reset(early)
			continue
		}
		err := l.err()
		if err == nil {
			err = l.writeOut(ending)
		}
		if err == nil && ending {
			err = l.file.Close()
		}
		switch full := (*diskFullError)(nil); {
		case errors.As(err, &full) && ending:
			if unsynced := l.sync(); unsynced != nil {
				err = fmt.Errorf("%w; then %w", err, unsynced)
			}
		case full != nil:
			if err = l.wait(full); err == nil {
				timer.Reset(retryInterval)
			}
		case err == nil:
			l.resume()
			if l.clean < l.offset && storage.SyncMode(l.mode.Load()) == storage.SyncEverySecond {
				timer.Reset(syncInterval - time.Since(l.lastSync))
			}
		}
		if err != nil {
			l.fail(err)
		}
	}
}

// gather lets calls that are about to append share the sync. While several wait, it takes half the
// time of a sync: a sync costs as much as some hundred calls.
func (l *log) gather() {
	runtime.Gosched()
	l.mu.Lock()
	several := len(l.waiting) >= minGathered
	l.mu.Unlock()
	if several {
		time.Sleep(min(l.took/2, maxGather))
	}
}

// untilRetry returns the time until the next retry after a full disk. It is not positive if no
// retry is pending.
func (l *log) untilRetry() time.Duration {
	if t := l.trouble.Load(); t == nil || t.final {
		return 0
	}
	return retryInterval - time.Since(l.tried)
}

// diskFullError is a write that failed because the disk is full. What it wrote of a record has been
// cut off, so that the segment ends with a whole record and the write can be retried.
type diskFullError struct{ error }

func (e *diskFullError) Unwrap() error { return e.error }

// wait records that the disk is full, and syncs what was written if that is due.
func (l *log) wait(full *diskFullError) error {
	l.tried = time.Now()
	first := l.trouble.Load() == nil
	l.mu.Lock()
	l.setOldest(l.tried) // the disk has answered
	if first {
		l.trouble.Store(&trouble{err: full, since: l.tried})
		l.notify()
	}
	l.mu.Unlock()
	if first {
		l.observer.logStalled(full)
	}
	if l.due() {
		return l.sync()
	}
	return nil
}

// resume records that a full disk has space again.
func (l *log) resume() {
	t := l.trouble.Load()
	if t == nil || t.final {
		return
	}
	l.mu.Lock()
	if t = l.trouble.Load(); !t.final {
		l.trouble.Store(nil)
	}
	l.notify()
	l.mu.Unlock()
	if !t.final {
		l.observer.logResumed(time.Since(t.since))
	}
}

// fail closes the log after a final error.
func (l *log) fail(err error) {
	l.ended = true
	l.mu.Lock()
	lost := append(l.batch[l.at:], l.pending...)
	if changes, records := count(lost); records > 0 {
		err = fmt.Errorf("%w; not written: %d changes in %d records of %d bytes", err, changes, records, len(lost))
	}
	l.trouble.Store(&trouble{err: err, final: true})
	l.pending, l.cuts, l.batch, l.taken, l.at = nil, nil, nil, nil, 0
	l.notify()
	l.mu.Unlock()
	l.file.Close()
	l.observer.logFailed(err)
}

// count counts records and the changes in them.
func count(b []byte) (changes, records int) {
	var effects []effect.Effect
	for len(b) > 0 {
		rec, size, err := readRecord(effects[:0], b)
		if err != nil {
			break
		}
		effects, b = rec.effects, b[size:]
		changes += len(rec.effects)
		records++
	}
	return changes, records
}

// writeOut writes the appended records, and syncs if the sync mode requires it.
func (l *log) writeOut(ending bool) error {
	err := l.writeBatch() // records that did not fit on the disk the last time
	if err == nil {
		l.take()
		err = l.writeBatch()
	}
	switch {
	case err != nil:
		return err
	case ending:
		return l.finish()
	case l.due():
		return l.sync()
	}
	l.stored(storage.SyncMode(l.mode.Load()) == storage.SyncNever)
	return nil
}

// stored wakes the calls that wait for what was just written. all means that the sync mode requires
// no more for it.
func (l *log) stored(all bool) {
	var late time.Duration
	l.mu.Lock()
	if all {
		var oldest time.Time
		switch {
		case l.at < len(l.batch):
			oldest = l.since
		case len(l.pending) > 0:
			oldest = l.first
		}
		if !oldest.IsZero() && oldest.Before(l.tried) {
			oldest = l.tried // a full disk has answered
		}
		late = l.setOldest(oldest)
	}
	l.notify()
	l.mu.Unlock()
	if late > 0 {
		l.observer.logInTime(late)
	}
}

// writeBatch writes the batch. After an error the next call continues where it stopped.
func (l *log) writeBatch() error {
	for l.at < len(l.batch) || len(l.taken) > 0 {
		end := len(l.batch)
		if len(l.taken) > 0 {
			end = l.taken[0]
		}
		if err := l.write(end); err != nil {
			return err
		}
		if len(l.taken) > 0 {
			if err := l.rotate(); err != nil {
				return err
			}
			l.taken = l.taken[1:]
		}
	}
	l.giveBack()
	return nil
}

// due reports whether it is time to sync.
func (l *log) due() bool {
	switch storage.SyncMode(l.mode.Load()) {
	case storage.SyncAlways:
		return true
	case storage.SyncEverySecond:
		return time.Since(l.lastSync) >= syncInterval || l.isLate()
	}
	return false
}

// take moves the appended records to the batch. A segment that is large enough ends with it.
func (l *log) take() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offset+int64(len(l.pending)) >= l.limit && len(l.cuts) == 0 {
		l.cutHere()
	}
	l.batch, l.taken, l.at, l.since = l.pending, l.cuts, 0, l.first
	l.pending, l.cuts = l.spare, nil
	l.spare = nil
}

// giveBack returns the buffer of the written batch, so that calls can append to it.
func (l *log) giveBack() {
	batch := l.batch
	l.batch, l.taken, l.at = nil, nil, 0
	if cap(batch) == 0 || cap(batch) > keptBuffer {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = batch[:0]
}

// write writes the records of the batch up to offset end to the segment, after a mark if more of
// the segment has become durable.
func (l *log) write(end int) error {
	if l.at == end {
		return nil
	}
	if err := l.mark(); err != nil {
		return err
	}
	n, err := l.writeRecords(l.batch[l.at:end])
	l.at += n
	l.written.Add(uint64(n))
	return err
}

// mark writes how much of the segment is durable, unless the last mark has the same number.
func (l *log) mark() error {
	if l.clean == l.marked {
		return nil
	}
	_, err := l.writeRecords(appendMark(nil, recordSynced, l.clock(), l.salt+l.clean))
	if err == nil {
		l.marked = l.clean
	}
	return err
}

// writeRecords writes records, and returns how many bytes of them are in the segment. These are
// whole records.
func (l *log) writeRecords(records []byte) (n int, err error) {
	n, err = l.writePieces(records)
	if err != nil {
		n = wholeRecords(records[:n])
		if isDiskFull(err) {
			err = cmp.Or[error](l.file.cut(l.offset+int64(n)), &diskFullError{err})
		}
	}
	l.offset += int64(n)
	l.size.Add(int64(n))
	return n, err
}

// A write of many MB would occupy a processor for tens of milliseconds. So it is cut into pieces,
// and between two of them other goroutines run.
const (
	writePiece = 1 << 20               // bytes
	writePause = 20 * time.Microsecond // it may become a millisecond if the processor is idle
)

// writePieces writes to the segment, and returns how many bytes it has written.
func (l *log) writePieces(p []byte) (n int, err error) {
	for {
		m, err := l.file.Write(p[n:min(len(p), n+writePiece)])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
		time.Sleep(writePause)
	}
}

// wholeRecords returns the length of the whole records at the beginning of b.
func wholeRecords(b []byte) (n int) {
	for len(b)-n >= headerSize {
		size := binary.LittleEndian.Uint64(b[n:])
		if size > uint64(len(b)-n-headerSize) {
			break
		}
		n += headerSize + int(size)
	}
	return n
}

// isDiskFull reports whether an error says that the disk is full or a quota is used up.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// sync makes the written records durable, and wakes the calls that wait for them.
func (l *log) sync() error {
	if l.clean < l.offset {
		start := time.Now()
		if err := l.file.Sync(); err != nil {
			return err
		}
		l.lastSync = start
		took := time.Since(start)
		if took > time.Second {
			l.delayed.Add(1)
		}
		l.observer.logSynced(took)
		l.clean, l.took = l.offset, took
	}
	l.mu.Lock()
	l.synced.Store(l.written.Load())
	l.mu.Unlock()
	l.stored(true)
	return nil
}

// finish syncs the written records, and marks the end as durable, so that damage to a finished log
// is never mistaken for a torn tail.
func (l *log) finish() error {
	err := l.sync()
	if err == nil {
		err = l.mark()
	}
	if err == nil {
		err = l.sync()
	}
	return err
}

// rotate syncs and closes the segment, in every sync mode, and begins the next. So only the last
// segment can have a torn tail.
func (l *log) rotate() error {
	if err := l.sync(); err != nil {
		return err
	}
	before := l.file
	if err := l.begin(l.segment + 1); err != nil {
		return err
	}
	return before.Close()
}

// newSalt returns a random number. All numbers in its range take 9 bytes in a mark, so that file
// sizes are reproducible.
func newSalt() int64 { return 1<<61 + rand.Int64N(1<<61) }

// begin creates a segment. If it fails it leaves no file behind.
func (l *log) begin(sequence uint64) error {
	name, salt := fileName(logFile, sequence), newSalt()
	file, err := l.fs.create(name)
	if err == nil {
		err = l.writeHeader(file, fileHeader{formatVersion, logFile, sequence, l.clock(), salt})
		if err != nil {
			file.Close()
			if left := l.fs.remove(name); left != nil {
				err = fmt.Errorf("%w, and its incomplete file cannot be removed: %w", err, left)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("segment %s cannot be created: %w", name, err)
		if isDiskFull(err) {
			err = &diskFullError{err}
		}
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file, l.salt, l.segment = file, salt, sequence
	l.offset, l.clean, l.marked = fileHeaderSize, fileHeaderSize, fileHeaderSize
	l.size.Add(fileHeaderSize)
	l.notify()
	return nil
}

// writeHeader writes the header of a segment and syncs it.
func (l *log) writeHeader(file outFile, h fileHeader) error {
	_, err := file.Write(h.encode())
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = l.fs.syncDir()
	}
	return err
}
