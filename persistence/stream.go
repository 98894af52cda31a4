package persistence

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/internal/largecopy"
)

// AppendCall appends the effects of a call at a time, Unix ms, as one record. The effects are those
// that engine.Journal gets.
func AppendCall(dst []byte, at int64, effects []byte) []byte {
	return largecopy.Append(appendHead(dst, at, effects), effects)
}

// longestHead is the largest size of what precedes the effects of a call in its record, in bytes.
const longestHead = headerSize + 1 + binary.MaxVarintLen64

// appendHead appends what precedes the effects of a call in its record.
func appendHead(dst []byte, at int64, effects []byte) []byte {
	dst, start := beginRecord(dst, recordCall, at)
	return endRecord(dst, start, effects)
}

// longestCall is the size of the largest record, in bytes, that SizeOfCall returns.
const longestCall = 1 << 30

// SizeOfCall returns the size of a record of which b is the beginning; 0 if b does not say.
func SizeOfCall(b []byte) int {
	if len(b) < headerSize {
		return 0
	}
	if length := binary.LittleEndian.Uint64(b); length <= longestCall-headerSize {
		return headerSize + int(length)
	}
	return 0
}

// maxPiece is how many effects of a call are in memory at a time: an effect takes much more there
// than in the record.
const maxPiece = 256

// CallReader decodes records of calls, and has their effects applied. Those of small calls are
// applied several calls at a time, which is faster, see engine.Tx.Prefetch; those of a large call
// in pieces, so that a call with a million effects takes little memory. It reuses its memory.
type CallReader struct {
	effects []effect.Effect // those that are not applied yet; they alias the records
	at      int64           // the latest time of their calls, Unix ms
}

// Apply applies effects as engine.Apply does, which copies what it keeps.
type Apply func(at int64, effects []effect.Effect) error

// Read decodes the record of a call at the beginning of b, and returns its size in bytes. The
// effects are applied now, or later when there are more; the last ones by Flush, until when b must
// not change. A nil apply skips them. The error is ErrShort if b ends too early.
//
// After any other error, of Read or Flush, a part of the calls is applied: pieces before the one
// with the error are, and what follows it is not, nor are calls that were not applied yet. So the
// state is not to be used any more.
func (c *CallReader) Read(b []byte, apply Apply) (size int, err error) {
	rec, r, size, err := openRecord(b)
	switch {
	case err != nil:
		return 0, err
	case rec.kind != recordCall:
		return 0, fmt.Errorf("record of kind %d, want %d", rec.kind, recordCall)
	case apply == nil:
		return size, errorIn(&r, size)
	}
	if len(c.effects) == 0 {
		c.at = rec.at
	}
	c.at = max(c.at, rec.at)
	for len(r.Rest) > 0 && r.Err == nil && err == nil {
		c.effects = r.Append(c.effects)
		if len(c.effects) == maxPiece && r.Err == nil {
			err = c.Flush(apply)
		}
	}
	if r.Err != nil {
		c.effects = c.effects[:0]
		return size, errorIn(&r, size)
	}
	if err == nil && len(c.effects) >= engine.MaxPrefetched {
		err = c.Flush(apply)
	}
	return size, err
}

// Flush applies the effects that are not applied yet.
func (c *CallReader) Flush(apply Apply) (err error) {
	if len(c.effects) > 0 {
		err = apply(c.at, c.effects)
	}
	clear(c.effects)
	c.effects = c.effects[:0]
	return err
}

const (
	snapshotPiece = 64 << 10               // bytes of records that are compressed together
	groupPiece    = 2 << 10                // bytes of effects from which on a record is complete
	snapshotWork  = 200 * time.Microsecond // of work before a rest, in which calls run
	snapshotRest  = 4                      // how many times as long as the work a rest is
	longestRest   = 100 * time.Millisecond
)

// RestAfter returns for how long to rest after a time of work on a snapshot, so that calls run
// meanwhile for four fifths of the time; 0: not yet. A longer time of work was spent waiting for
// the disk or a lock.
func RestAfter(worked time.Duration) time.Duration {
	if worked < snapshotWork {
		return 0
	}
	return min(snapshotRest*worked, longestRest)
}

// stateWriter writes a compressed stream of records, which ends with their number.
type stateWriter struct {
	packed  *zstd.Encoder
	at      int64  // the time of the next records, Unix ms
	buf     []byte // records that wait to be compressed
	begin   int    // of the record in buf that is not complete
	open    bool   // there is one
	records int64
	err     error // of the first write that has failed
}

func newStateWriter(dst io.Writer, at int64) (*stateWriter, error) {
	packed, err := zstd.NewWriter(dst, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(maxWindow/8))
	return &stateWriter{packed: packed, at: at}, err
}

// add adds effects to the record that is not complete: one of many keys is read much faster than as
// many records.
func (w *stateWriter) add(effects []byte) {
	if len(effects) >= snapshotPiece { // it is not copied
		w.complete()
		w.buf = appendHead(w.buf, w.at, effects)
		w.records++
		w.compress()
		w.write(effects)
		return
	}
	if !w.open {
		w.buf, w.begin = beginRecord(w.buf, recordCall, w.at)
		w.open = true
	}
	if w.buf = largecopy.Append(w.buf, effects); len(w.buf)-w.begin >= groupPiece {
		w.complete()
	}
}

// complete completes the record that is not.
func (w *stateWriter) complete() {
	if w.open {
		w.buf, w.open = endRecord(w.buf, w.begin, nil), false
		w.records++
	}
}

// flush compresses the records that were added if they are a piece.
func (w *stateWriter) flush() error {
	if len(w.buf) >= snapshotPiece {
		w.complete()
		w.compress()
	}
	return w.err
}

// compress writes the buffer, which is empty then.
func (w *stateWriter) compress() {
	w.write(w.buf)
	w.buf = w.buf[:0]
}

func (w *stateWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.packed.Write(b)
	}
}

// end ends the stream, after err of what has written it.
func (w *stateWriter) end(err error) error {
	w.complete()
	if w.err = cmp.Or(err, w.err); w.err != nil {
		return w.err
	}
	w.write(appendMark(w.buf, recordEnd, w.at, w.records))
	return cmp.Or(w.err, w.packed.Close())
}

// WriteState writes all keys and policies of a snapshot as a compressed stream of records, which
// ends with their number. The records have the time at, Unix ms. It works a fifth of the time, and
// leaves the rest to calls. check is called after each piece of work, and its error ends it.
func WriteState(dst io.Writer, s *engine.Snapshot, at int64, check func() error) error {
	w, err := newStateWriter(dst, at)
	if err != nil {
		return err
	}
	start := time.Now()
	for more := true; more && err == nil; {
		more = s.StepEncoded(w.add)
		if err = w.flush(); err == nil {
			err = check()
		}
		if rest := RestAfter(time.Since(start)); rest > 0 && err == nil {
			time.Sleep(rest)
			start = time.Now()
		}
	}
	return w.end(err)
}

// ReadState applies the stream that WriteState has written to an empty engine. Errors use name for
// the stream.
func ReadState(name string, src io.Reader, e *engine.Engine) error {
	unpacked, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer unpacked.Close()
	r := recovery{e: e}
	return r.replayState(newScanner(name, unpacked, 0, maxRecord[snapshotFile]))
}
