package persistence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"time"

	"rlserver/engine"
)

// readOnly is a file system in which recovery changes nothing: a torn tail is found but not cut
// off.
type readOnly struct{ fileSystem }

func (readOnly) truncate(string, int64) error { return nil }
func (readOnly) remove(string) error          { return nil }
func (readOnly) syncDir() error               { return nil }

func ignoreBytes(int) {}

// Progress receives the progress of long operations. An operation has stages, one after the other,
// of a known number of bytes each, which may grow. Nothing is printed before End.
type Progress interface {
	Begin(stage string, bytes int64)
	Add(bytes int)
	End()
}

// NoProgress is a Progress that ignores everything.
type NoProgress struct{}

// Begin implements Progress.
func (NoProgress) Begin(string, int64) {}

// Add implements Progress.
func (NoProgress) Add(int) {}

// End implements Progress.
func (NoProgress) End() {}

// maxReads is how often a directory is read that changes while it is read.
const maxReads = 5

// Check reads a data directory and writes what it finds to out, one line for each file. The error
// says why the server would not start on it; a torn tail, which a start cuts off, is not an error.
// Nothing is changed. A server may be using the directory: if something looks torn or missing, and
// files have been created, removed or extended in the meantime, it is read again.
func Check(dir string, out io.Writer, p Progress) error {
	return checkLive(readOnly{directory(dir)}, out, p)
}

func checkLive(fs fileSystem, out io.Writer, p Progress) error {
	for look := 1; ; look++ {
		before, err := sizes(fs)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		whole, found := check(fs, &text, p)
		if after, err := sizes(fs); whole || look == maxReads || err == nil && maps.Equal(before, after) {
			_, err := text.WriteTo(out)
			return cmp.Or(found, err)
		}
	}
}

// sizes returns the sizes of all files in a directory, by name.
func sizes(fs fileSystem) (map[string]int64, error) {
	names, err := fs.list()
	bytes := make(map[string]int64, len(names))
	for _, name := range names {
		file, err := fs.open(name)
		if err != nil {
			continue // it has been removed
		}
		bytes[name], _ = file.size()
		file.Close()
	}
	return bytes, err
}

// check is Check for a directory that does not change. whole is false if something looks torn or
// missing.
func check(fs fileSystem, out io.Writer, p Progress) (whole bool, err error) {
	f, err := listFiles(fs)
	if err != nil {
		return false, err
	}
	p.Begin("checking", sizeOf(fs, f))
	for kind, list := range f.inOrder() {
		for i, n := range list {
			report, err := checkFile(fs, kind, n, p.Add)
			if last := kind == logFile && i == len(list)-1; last && unbegun(err) {
				report, err = "incomplete header, a start removes it", nil
			}
			if err != nil {
				report += "; then " + err.Error()
			}
			fmt.Fprintf(out, "%s: %s\n", fileName(kind, n), report)
		}
	}
	p.End()
	for _, name := range f.unfinished {
		fmt.Fprintf(out, "%s: incomplete, a start removes it\n", name)
	}
	r, err := dryRun(fs, f, p)
	if err != nil {
		return false, fmt.Errorf("a start on this directory would fail: %w", err)
	}
	fmt.Fprintf(out, "a start on this directory reads %d records%s%s\n", r.Records, skippedText(r.Recovery),
		tornText(r.Torn))
	return r.Torn == nil, nil
}

// unbegun reports whether an error is that of a file that ends within its header.
func unbegun(err error) bool {
	broken := (*damage)(nil)
	return errors.As(err, &broken) && broken.offset == 0 && errors.Is(err, ErrShort)
}

// inOrder returns the files of each kind, in the order in which they are read.
func (f *files) inOrder() iter.Seq2[fileKind, []uint64] {
	return func(yield func(fileKind, []uint64) bool) {
		_ = yield(snapshotFile, f.snapshots) && yield(logFile, f.segments)
	}
}

func skippedText(r Recovery) string {
	if r.Skipped == nil {
		return ""
	}
	return ", skipping the newest snapshot, which is damaged: older files contain all of it"
}

func tornText(t *Torn) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(", and cuts off the last %d bytes of %s, written after %s", t.Bytes, t.Segment,
		timeText(t.Since))
}

func timeText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// maxDatabases is how many databases a server can be configured with.
const maxDatabases = 1 << 16

// dryRun loads a directory as a start would, with as many databases as it needs.
func dryRun(fs fileSystem, f files, p Progress) (recovery, error) {
	for databases := 16; ; {
		p.Begin("loading", sizeOf(fs, f))
		r := recovery{fs: fs, e: engine.New(engine.Options{Databases: databases, Shards: 1}), read: p.Add}
		err := r.load(f)
		p.End()
		few := (*databaseError)(nil)
		if !errors.As(err, &few) {
			return r, err
		}
		databases = min(max(2*databases, few.db+1), maxDatabases)
	}
}

// checkFile reads a file up to its end or its first damage.
func checkFile(fs fileSystem, kind fileKind, n uint64, read func(int)) (report string, err error) {
	d, err := openData(fs, kind, n, read)
	if err != nil {
		return "no records", err
	}
	defer d.close()
	records, last := 0, d.header.created
	for {
		rec, err := d.next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return fmt.Sprintf("%d records until %s", records, timeText(last)), err
		}
		if rec.kind == recordCall {
			records++
		}
		last = max(last, rec.at)
	}
}
