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

// readOnly is a file system that is only looked at: recovery finds torn tails in it and cannot cut them.
type readOnly struct{ fileSystem }

func (readOnly) truncate(string, int64) error { return nil }
func (readOnly) remove(string) error          { return nil }
func (readOnly) syncDir() error               { return nil }

func ignoreBytes(int) {}

// maxReads is how often a directory is read that changes meanwhile.
const maxReads = 5

// Check reads all of a data directory and writes what it finds to out, a line for each file. The error says that the server would not start
// on it; a torn tail, which a start cuts off, is none. Nothing is changed. A server may be using the directory: what looks torn or
// missing is read again if files have come, gone or grown meanwhile.
func Check(dir string, out io.Writer) error { return checkLive(readOnly{directory(dir)}, out) }

func checkLive(fs fileSystem, out io.Writer) error {
	for look := 1; ; look++ {
		before, err := sizes(fs)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		whole, found := check(fs, &text)
		if after, err := sizes(fs); whole || look == maxReads || err == nil && maps.Equal(before, after) {
			_, err := text.WriteTo(out)
			return cmp.Or(found, err)
		}
	}
}

// sizes are those of all files in a directory, by name.
func sizes(fs fileSystem) (map[string]int64, error) {
	names, err := fs.list()
	bytes := make(map[string]int64, len(names))
	for _, name := range names {
		file, err := fs.open(name)
		if err != nil {
			continue // it has gone
		}
		bytes[name], _ = file.size()
		file.Close()
	}
	return bytes, err
}

// check is Check for a directory that nobody changes. It tells whether nothing looks torn or missing.
func check(fs fileSystem, out io.Writer) (whole bool, err error) {
	f, err := listFiles(fs)
	if err != nil {
		return false, err
	}
	for kind, list := range f.inOrder() {
		for i, n := range list {
			said, err := checkFile(fs, kind, n)
			if last := kind == logFile && i == len(list)-1; last && unbegun(err) {
				said, err = "never begun, a start removes it", nil
			}
			if err != nil {
				said += "; then " + err.Error()
			}
			fmt.Fprintf(out, "%s: %s\n", fileName(kind, n), said)
		}
	}
	for _, name := range f.unfinished {
		fmt.Fprintf(out, "%s: never finished, a start removes it\n", name)
	}
	r, err := dryRun(fs, f)
	if err != nil {
		return false, fmt.Errorf("a start on this directory would fail: %w", err)
	}
	fmt.Fprintf(out, "a start on this directory reads %d records%s%s\n", r.Records, skippedText(r.Recovery), tornText(r.Torn))
	return r.Torn == nil, nil
}

// unbegun tells whether an error is that a file ends within its header.
func unbegun(err error) bool {
	broken := (*damage)(nil)
	return errors.As(err, &broken) && broken.offset == 0 && errors.Is(err, ErrShort)
}

// inOrder gives the files of each kind, in the order in which they are read.
func (f *files) inOrder() iter.Seq2[fileKind, []uint64] {
	return func(yield func(fileKind, []uint64) bool) {
		_ = yield(snapshotFile, f.snapshots) && yield(logFile, f.segments)
	}
}

func skippedText(r Recovery) string {
	if r.Skipped == nil {
		return ""
	}
	return ", passing over the newest snapshot, which is damaged: all of it is in older files too"
}

func tornText(t *Torn) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf(", and cuts off the last %d bytes of %s, written after %s", t.Bytes, t.Segment, timeText(t.Since))
}

func timeText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// maxDatabases is how many a server can be told to have.
const maxDatabases = 1 << 16

// dryRun does what a start would, with as many databases as that takes.
func dryRun(fs fileSystem, f files) (recovery, error) {
	for databases := 16; ; {
		r := recovery{fs: fs, e: engine.New(engine.Options{Databases: databases, Shards: 1}), read: ignoreBytes}
		err := r.load(f)
		few := (*databaseError)(nil)
		if !errors.As(err, &few) {
			return r, err
		}
		databases = min(max(2*databases, few.db+1), maxDatabases)
	}
}

// checkFile reads a file to its end or its first damage.
func checkFile(fs fileSystem, kind fileKind, n uint64) (said string, err error) {
	d, err := openData(fs, kind, n, ignoreBytes)
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
