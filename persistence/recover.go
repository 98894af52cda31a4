package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"rlserver/engine"
)

// files are what a directory holds, in the order of their numbers.
type files struct {
	snapshots, segments []uint64
	unfinished          []string // names of files that were never whole
}

func listFiles(fs fileSystem) (f files, err error) {
	names, err := fs.list()
	if err != nil {
		return f, err
	}
	for _, name := range names {
		whole, unfinished := strings.CutSuffix(name, temporary)
		switch kind, sequence, ok := parseName(whole); {
		case !ok:
		case unfinished:
			f.unfinished = append(f.unfinished, name)
		case kind == snapshotFile:
			f.snapshots = append(f.snapshots, sequence)
		default:
			f.segments = append(f.segments, sequence)
		}
	}
	slices.Sort(f.snapshots)
	slices.Sort(f.segments)
	return f, nil
}

// last is the highest number in use.
func (f *files) last() (n uint64) {
	for _, list := range [][]uint64{f.snapshots, f.segments} {
		if len(list) > 0 {
			n = max(n, list[len(list)-1])
		}
	}
	return n
}

// next is the number of the segment that goes on from all there is.
func (f *files) next() (n uint64) {
	n = 1
	if len(f.snapshots) > 0 {
		n = f.snapshots[len(f.snapshots)-1]
	}
	if len(f.segments) > 0 {
		n = max(n, f.segments[len(f.segments)-1]+1)
	}
	return n
}

// from gives the segments that go on from a snapshot, or from nothing (0), as far as there are all. The error names one that is missing.
func (f *files) from(snapshot uint64) (segments []uint64, err error) {
	next := max(snapshot, 1)
	for _, n := range f.segments {
		switch {
		case n < next:
			continue
		case n > next:
			return segments, &gapError{next, n}
		}
		segments = append(segments, n)
		next++
	}
	return segments, nil
}

// gapError is of a log that lacks a segment.
type gapError struct{ missing, after uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("%s is missing, and %s cannot be read without it", fileName(logFile, e.missing), fileName(logFile, e.after))
}

// dataFile is a file that is being read.
type dataFile struct {
	*scanner
	header   fileHeader
	file     inFile
	unpacked *zstd.Decoder // of a snapshot
}

func (d *dataFile) close() {
	if d.unpacked != nil {
		d.unpacked.Close()
	}
	d.file.Close()
}

// maxWindow is how far back the compression of a snapshot may refer: memory that reading one takes.
const maxWindow = 8 << 20

// openData opens a file and reads its header. read is told how many bytes were read, now and later. The error is a *damage or a
// *newerError where the file is to blame; it is closed then.
func openData(fs fileSystem, kind fileKind, sequence uint64, read func(n int)) (*dataFile, error) {
	name := fileName(kind, sequence)
	file, err := fs.open(name)
	if err != nil {
		return nil, err
	}
	d := &dataFile{file: file}
	src := counted{file, read}
	head := make([]byte, fileHeaderSize)
	n, err := io.ReadFull(src, head)
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		d.header, err = decodeHeader(name, head[:n])
		if newer := (*newerError)(nil); err != nil && !errors.As(err, &newer) {
			err = &damage{name, 0, err}
		}
	}
	if err == nil && kind == snapshotFile {
		d.unpacked, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}
	if err != nil {
		d.close()
		return nil, err
	}
	d.scanner = newScanner(name, src, fileHeaderSize, maxRecord[kind])
	if d.unpacked != nil {
		d.scanner = newScanner(name, d.unpacked, 0, maxRecord[kind])
	}
	return d, nil
}

// counted is a reader that tells how much is read.
type counted struct {
	io.Reader
	read func(n int)
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read(n)
	return n, err
}

// Recovery tells what a directory held.
type Recovery struct {
	Snapshot string // the file that was loaded; empty: none
	Skipped  error  // what is wrong with a newer one; nil: nothing
	Segments int    // of the log from there on
	Records  int64  // in all of them
	Last     int64  // Unix ms: the latest time in all records, marks included; 0 without any
	Torn     *Torn  // what was cut off the end of the log; nil: nothing
}

// Torn is the end of a log that a crash has left half written: nobody had been promised that it would last.
type Torn struct {
	Segment string
	Offset  int64 // where it began, and the segment ends now; 0: the segment is gone
	Bytes   int64
	Since   int64 // Unix ms: the time of the last record before it, or when the segment was begun; 0: unknown
}

// recovery is a load on its way.
type recovery struct {
	Recovery
	fs   fileSystem
	e    *engine.Engine
	read func(n int) // is told how many bytes were read
	call int64       // Unix ms: the time of the last call
}

// load brings an empty engine to the state of a directory: the newest whole snapshot, then the log from there on.
func (r *recovery) load(f files) error {
	snapshot, err := r.loadSnapshot(&f)
	if err != nil {
		return err
	}
	segments, err := f.from(snapshot)
	if err != nil {
		return err
	}
	for i, n := range segments {
		if err := r.loadSegment(n, i == len(segments)-1); err != nil {
			return err
		}
		r.Segments++
	}
	return nil
}

// loadSnapshot loads the newest snapshot that is whole and gives its number, 0 if there are no snapshots. An older one than the newest will do only
// if the log tells all that has happened from one to the other.
func (r *recovery) loadSnapshot(f *files) (sequence uint64, err error) {
	for _, n := range slices.Backward(append([]uint64{0}, f.snapshots...)) {
		if r.Skipped != nil && !f.covers(n, f.snapshots[len(f.snapshots)-1]) {
			return 0, r.Skipped
		}
		if n == 0 {
			return 0, nil
		}
		err := r.replaySnapshot(n)
		if err == nil {
			r.Snapshot = fileName(snapshotFile, n)
			return n, nil
		}
		if broken := (*damage)(nil); !errors.As(err, &broken) {
			return 0, err
		}
		if r.Skipped == nil {
			r.Skipped = err
		}
		r.forget()
	}
	return 0, nil
}

// covers tells whether there are all segments from one snapshot to another.
func (f *files) covers(from, to uint64) bool {
	segments, err := f.from(from)
	return err == nil && len(segments) > 0 && segments[len(segments)-1]+1 >= to
}

// forget empties the engine.
func (r *recovery) forget() {
	flush := make([]engine.Effect, r.e.Databases())
	for db := range flush {
		flush[db] = engine.Effect{Kind: engine.EffectFlush, DB: db}
	}
	for _, p := range r.e.Policies() {
		flush = append(flush, engine.Effect{Kind: engine.EffectPolicyDelete, Key: engine.Key{Name: []byte(p.Name())}})
	}
	if err := r.e.Apply(0, flush); err != nil {
		panic(err) // an engine that cannot be emptied is none
	}
	r.Records, r.Last, r.call = 0, 0, 0
}

func (r *recovery) replaySnapshot(n uint64) error {
	d, err := openData(r.fs, snapshotFile, n, r.read)
	if err != nil {
		return err
	}
	defer d.close()
	before := r.Records
	for {
		offset := d.offset
		rec, err := d.next()
		switch {
		case err == io.EOF:
			return &damage{d.name, offset, ErrShort}
		case err != nil:
			return err
		case rec.kind == recordEnd && rec.number == r.Records-before:
			r.Last = max(r.Last, rec.at) // keys that were gone by then may have had names of hits from the moment before
			return r.end(d)
		}
		if err := r.apply(d.name, offset, rec); err != nil {
			return err
		}
	}
}

// end sees to it that nothing follows the last record of a snapshot, whose checksum over the whole stands there.
func (r *recovery) end(d *dataFile) error {
	offset := d.offset
	if _, err := d.next(); err == io.EOF {
		return nil
	} else if err != nil {
		return err
	}
	return &damage{d.name, offset, errors.New("records after the end")}
}

// databaseError is of keys in a database that there is not.
type databaseError struct{ db int }

func (e *databaseError) Error() string {
	return fmt.Sprintf("the data has keys in database %d: start with --databases %d or more", e.db, e.db+1)
}

// apply replays a record that was read from an offset of a file.
func (r *recovery) apply(name string, offset int64, rec record) error {
	if rec.kind != recordCall {
		return &damage{name, offset, fmt.Errorf("a record of kind %d has no place here", rec.kind)}
	}
	for i := range rec.effects {
		if db := max(rec.effects[i].DB, rec.effects[i].ToDB); db >= r.e.Databases() && db < maxDatabases {
			return &databaseError{db}
		}
	}
	if err := r.e.Apply(rec.at, rec.effects); err != nil {
		return &damage{name, offset, err}
	}
	r.Records++
	r.call = max(r.call, rec.at)
	r.Last = max(r.Last, r.call)
	return nil
}

// loadSegment replays a segment. The last may end within a record; and what is read there may be in the system's memory only, if the
// process that wrote it was killed: it has to be on the disk before anything that goes on from there is.
func (r *recovery) loadSegment(n uint64, last bool) error {
	d, err := openData(r.fs, logFile, n, r.read)
	broken := (*damage)(nil)
	if errors.As(err, &broken) && last {
		return r.removeUnbegun(broken)
	}
	if err != nil {
		return err
	}
	defer d.close()
	since := d.header.created
	for {
		offset := d.offset
		rec, err := d.next()
		switch {
		case err == io.EOF && last:
			return r.fs.truncate(d.name, d.offset)
		case err == io.EOF:
			return nil
		case errors.As(err, &broken) && last:
			return r.cutTail(broken, d.header.salt, max(since, r.call))
		case err != nil:
			return err
		case rec.kind == recordSynced:
			r.Last = max(r.Last, rec.at)
			continue
		}
		if err := r.apply(d.name, offset, rec); err != nil {
			return err
		}
	}
}

// removeUnbegun removes a last segment without a header, which a crash or a full disk has left: nothing
// is written before the header is synced, so nothing is lost with it.
func (r *recovery) removeUnbegun(broken *damage) error {
	if _, err := tornFrom(r.fs, broken, 0); err != nil {
		return err
	}
	if err := r.fs.remove(broken.name); err != nil {
		return err
	}
	return r.fs.syncDir()
}

// cutTail cuts off the end of the log from a record on that is none, unless that had been synced: then it is damage.
func (r *recovery) cutTail(broken *damage, salt, since int64) (err error) {
	if r.Torn, err = tornFrom(r.fs, broken, salt); err != nil {
		return err
	}
	r.Torn.Since = since
	return r.fs.truncate(broken.name, broken.offset)
}

// tornFrom tells what a crash has left at the end of the last segment, from where that cannot be read any more. The error is the damage
// given where no crash leaves such a thing: what was synced is not what is torn.
func tornFrom(fs fileSystem, broken *damage, salt int64) (*Torn, error) {
	tail, err := readFrom(fs, broken.name, broken.offset)
	switch {
	case err != nil:
		return nil, err
	case broken.offset == 0 && len(tail) > fileHeaderSize: // nothing is written before the header is synced
		return nil, broken
	case broken.offset > 0 && syncedBeyond(tail, broken.offset, salt):
		return nil, broken
	}
	return &Torn{Segment: broken.name, Offset: broken.offset, Bytes: int64(len(tail))}, nil
}

// readFrom reads a file from an offset to its end.
func readFrom(fs fileSystem, name string, offset int64) ([]byte, error) {
	file, err := fs.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := io.CopyN(io.Discard, file, offset); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// syncedBeyond looks in the tail of a segment for a mark saying that more of it than up to the offset had been synced. Whatever a crash
// leaves, in whatever order the sectors of what was not synced came to the disk, there is none.
func syncedBeyond(tail []byte, offset, salt int64) bool {
	const longest = 1 + 2*binary.MaxVarintLen64
	for i := 0; i+headerSize < len(tail); i++ {
		if length := binary.LittleEndian.Uint64(tail[i:]); length == 0 || length > longest {
			continue
		}
		if rec, _, err := readRecord(nil, tail[i:]); err == nil && rec.kind == recordSynced && offset < rec.number-salt && rec.number-salt <= offset+int64(i) {
			return true
		}
	}
	return false
}
