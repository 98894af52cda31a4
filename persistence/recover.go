package persistence

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"rlserver/engine"
	"rlserver/engine/effect"
)

// files are the data files of a directory, in the order of their numbers.
type files struct {
	snapshots, segments []uint64
	unfinished          []string // names of incomplete files
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

// last returns the highest number in use.
func (f *files) last() (n uint64) {
	for _, list := range [][]uint64{f.snapshots, f.segments} {
		if len(list) > 0 {
			n = max(n, list[len(list)-1])
		}
	}
	return n
}

// next returns the number of the segment that follows all files.
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

// from returns the segments that follow a snapshot, or the first segment if snapshot is 0, up to
// the first gap. The error names the missing segment.
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

// gapError reports that a segment of the log is missing.
type gapError struct{ missing, after uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("%s is missing, and %s cannot be read without it", fileName(logFile, e.missing),
		fileName(logFile, e.after))
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

// maxWindow is how far back, in bytes, the compression of a snapshot may refer. It bounds the
// memory for reading one.
const maxWindow = 8 << 20

// openData opens a file and reads its header. read is called with the number of bytes of each read,
// now and later. The error is a *damage or a *newerError if the content is wrong.
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

// counted is a reader that reports how many bytes are read.
type counted struct {
	io.Reader
	read func(n int)
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read(n)
	return n, err
}

// Recovery is what Load found in a directory.
type Recovery struct {
	Snapshot string // the snapshot that was loaded; "": none
	Skipped  error  // the damage of a newer snapshot; nil: no snapshot was skipped
	Segments int    // of the log after it
	Records  int64  // in all files that were read
	Last     int64  // Unix ms: the latest time in all records, marks included; 0 without any
	Torn     *Torn  // the end of the log that was cut off; nil: nothing was
}

// Torn is the end of a log that a crash left half written. It was never acknowledged as durable.
type Torn struct {
	Segment string
	Offset  int64 // where it began, which is the end of the segment now; 0: the segment is removed
	Bytes   int64
	Since   int64 // Unix ms: time of the last record before it, or of the segment; 0: unknown
}

// recovery is a load in progress.
type recovery struct {
	Recovery
	fs   fileSystem
	e    *engine.Engine
	read func(n int) // called with the number of bytes of each read
	call int64       // Unix ms: the time of the last call
}

// load loads a directory into an empty engine: the newest undamaged snapshot, then the log after
// it.
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

// loadSnapshot loads the newest undamaged snapshot and returns its number, 0 if there are no
// snapshots. An older one than the newest is used only if the log has all segments between the two.
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

// covers reports whether all segments between two snapshots exist.
func (f *files) covers(from, to uint64) bool {
	segments, err := f.from(from)
	return err == nil && len(segments) > 0 && segments[len(segments)-1]+1 >= to
}

// forget removes all keys, policies and scripts from the engine.
func (r *recovery) forget() {
	flush := make([]effect.Effect, r.e.Databases())
	for db := range flush {
		flush[db] = effect.Effect{Kind: effect.Flush, DB: db}
	}
	for _, p := range r.e.Policies() {
		flush = append(flush, effect.Effect{Kind: effect.PolicyDelete, Key: engine.Key{Name: []byte(p.Name())}})
	}
	flush = append(flush, effect.Effect{Kind: effect.ScriptDelete}, effect.Effect{Kind: effect.OverrideDelete})
	if err := r.e.Apply(0, flush); err != nil {
		panic(err) // impossible: these effects apply to any engine
	}
	r.Records, r.Last, r.call = 0, 0, 0
}

func (r *recovery) replaySnapshot(n uint64) error {
	d, err := openData(r.fs, snapshotFile, n, r.read)
	if err != nil {
		return err
	}
	defer d.close()
	return r.replayState(d.scanner)
}

// replayState applies the records of a snapshot, whose last one says that it is complete.
func (r *recovery) replayState(in *scanner) error {
	p := r.replay(in)
	err := r.readState(in, p)
	return cmp.Or(p.close(), err) // what could not be applied is before what could not be read
}

func (r *recovery) readState(in *scanner, p *replay) error {
	for before := r.Records; ; {
		offset := in.offset
		rec, err := in.next()
		switch {
		case err == io.EOF:
			return &damage{in.name, offset, ErrShort}
		case err != nil:
			return err
		case rec.kind == recordEnd && rec.number == r.Records-before:
			// keys deleted before the snapshot may have had names of hits from just before it
			r.Last = max(r.Last, rec.at)
			return r.end(in)
		}
		if err := r.apply(p, offset, rec); err != nil {
			return err
		}
	}
}

// end checks that nothing follows the last record of a snapshot. Reading to the end also checks
// zstd's checksum of the whole.
func (r *recovery) end(in *scanner) error {
	offset := in.offset
	if _, err := in.next(); err == io.EOF {
		return nil
	} else if err != nil {
		return err
	}
	return &damage{in.name, offset, errors.New("records after the end")}
}

// databaseError reports keys in a database that the engine does not have.
type databaseError struct{ db int }

func (e *databaseError) Error() string {
	return fmt.Sprintf("the data has keys in database %d: start with --databases %d or more", e.db, e.db+1)
}

// apply has a record applied that was read at an offset of a file. The error may be that of an
// earlier record.
func (r *recovery) apply(p *replay, offset int64, rec record) error {
	if rec.kind != recordCall {
		return &damage{p.from.name, offset, fmt.Errorf("unexpected record of kind %d", rec.kind)}
	}
	for i := range rec.effects {
		if db := max(rec.effects[i].DB, rec.effects[i].ToDB); db >= r.e.Databases() && db < maxDatabases {
			return &databaseError{db}
		}
	}
	if err := p.add(offset, rec); err != nil {
		return err
	}
	r.Records++
	r.call = max(r.call, rec.at)
	r.Last = max(r.Last, r.call)
	return nil
}

// loadSegment loads a segment. The last segment may end within a record. If the process that wrote
// it was killed, its end may be in the page cache only, so it is synced before anything is written
// after it.
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
	p := r.replay(d.scanner)
	err = r.readSegment(d.scanner, p)
	if failed := p.close(); failed != nil {
		return failed
	}
	switch {
	case err == io.EOF && last:
		return r.fs.truncate(d.name, d.offset)
	case err == io.EOF:
		return nil
	case errors.As(err, &broken) && broken.offset == d.offset && last: // it could not be read
		return r.cutTail(broken, d.header.salt, max(d.header.created, r.call))
	}
	return err
}

// readSegment reads a segment to its end, io.EOF, or to another error.
func (r *recovery) readSegment(in *scanner, p *replay) error {
	for {
		offset := in.offset
		rec, err := in.next()
		switch {
		case err != nil:
			return err
		case rec.kind == recordSynced:
			r.Last = max(r.Last, rec.at)
			continue
		}
		if err := r.apply(p, offset, rec); err != nil {
			return err
		}
	}
}

// removeUnbegun removes a last segment without a complete header, which a crash or a full disk can
// leave. No record is written before the header is synced, so nothing is lost.
func (r *recovery) removeUnbegun(broken *damage) error {
	if _, err := tornFrom(r.fs, broken, 0); err != nil {
		return err
	}
	if err := r.fs.remove(broken.name); err != nil {
		return err
	}
	return r.fs.syncDir()
}

// cutTail cuts off a torn end of the log. If that part had been synced, it is damage instead.
func (r *recovery) cutTail(broken *damage, salt, since int64) (err error) {
	if r.Torn, err = tornFrom(r.fs, broken, salt); err != nil {
		return err
	}
	r.Torn.Since = since
	return r.fs.truncate(broken.name, broken.offset)
}

// tornFrom describes the unreadable end of the last segment, if a crash can have left it so.
// Otherwise, for example if that part was synced, it returns the damage as the error.
func tornFrom(fs fileSystem, broken *damage, salt int64) (*Torn, error) {
	tail, err := readFrom(fs, broken.name, broken.offset)
	switch {
	case err != nil:
		return nil, err
	case broken.offset == 0 && len(tail) > fileHeaderSize:
		// no record is written before the header is synced
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

// syncedBeyond reports whether the tail of a segment has a mark according to which more than the
// bytes up to offset were synced. A crash leaves no such mark, in whatever order the unsynced
// sectors reached the disk.
func syncedBeyond(tail []byte, offset, salt int64) bool {
	const longest = 1 + 2*binary.MaxVarintLen64
	for i := 0; i+headerSize < len(tail); i++ {
		if length := binary.LittleEndian.Uint64(tail[i:]); length == 0 || length > longest {
			continue
		}
		if rec, _, err := readRecord(nil, tail[i:]); err == nil && rec.kind == recordSynced &&
			offset < rec.number-salt &&
			rec.number-salt <= offset+int64(i) {
			return true
		}
	}
	return false
}
