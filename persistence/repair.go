package persistence

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rlserver/engine"
	"rlserver/engine/effect"
)

// Repair makes a data directory readable again: it cuts the log where it is damaged, and keeps the
// keys of a damaged snapshot before the damage. What comes after is lost, except in the copy of all
// files that is made first, in a folder of the directory, whose name is written to out. The
// directory must not be in use. If files have a newer format version, it returns an error and
// changes nothing.
func Repair(dir string, out io.Writer, p Progress) error {
	d := directory(dir)
	lock, err := d.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	for copied := ""; ; {
		f, err := listFiles(d)
		if err != nil {
			return err
		}
		r, err := dryRun(readOnly{d}, f, p)
		if err == nil {
			fmt.Fprintf(out, "a start on this directory reads %d records%s%s\n", r.Records, skippedText(r.Recovery),
				tornText(r.Torn))
			if copied == "" {
				fmt.Fprintln(out, "there is nothing to repair: nothing was changed")
			}
			return nil
		}
		if newer := (*newerError)(nil); errors.As(err, &newer) {
			return err
		}
		fmt.Fprintf(out, "found: %v\n", err)
		if copied == "" {
			var failed error
			if copied, failed = keepCopy(d, f, p); failed != nil {
				return fmt.Errorf("no copy could be made, so nothing was changed: %w", failed)
			}
			fmt.Fprintf(out, "copies of all files are in %s\n", copied)
		}
		if err := repairStep(d, f, err, out); err != nil {
			return err
		}
	}
}

// keepCopy copies all data files to a folder in their directory.
func keepCopy(d directory, f files, p Progress) (folder string, err error) {
	names, err := d.list()
	if err != nil {
		return "", err
	}
	folder = d.path("before-repair-" + time.Now().UTC().Format("20060102T150405.000Z"))
	if err := os.Mkdir(folder, 0o750); err != nil {
		return "", err
	}
	p.Begin("copying", sizeOf(d, f))
	defer p.End()
	for _, name := range names {
		if name == lockName {
			continue
		}
		if err := copyFile(filepath.Join(folder, name), d.path(name), p.Add); err != nil {
			// half a copy is useless and takes space
			return "", errors.Join(err, os.RemoveAll(folder))
		}
	}
	return folder, errors.Join(directory(folder).syncDir(), d.syncDir())
}

func copyFile(to, from string, copied func(int)) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, counted{src, copied})
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}

// repairStep removes the reason why a start failed. Each step leaves less to read, so the repair
// terminates.
func repairStep(d directory, f files, why error, out io.Writer) error {
	var broken *damage
	var gap *gapError
	var head headerError
	switch {
	case errors.As(why, &gap):
		return removeFrom(d, f, gap.missing, out)
	case !errors.As(why, &broken):
		return why
	}
	kind, n, _ := parseName(broken.name)
	switch {
	case errors.As(why, &head):
		return renewHeader(d, kind, n, out)
	case kind == snapshotFile:
		if err := removeFrom(d, f, n, out); err != nil {
			return err
		}
		return salvage(d, n, out)
	case broken.offset == 0: // it has no header, or the header of another file
		return removeFrom(d, f, n, out)
	}
	if err := removeFrom(d, f, n+1, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: cut at offset %d\n", broken.name, broken.offset)
	return d.truncate(broken.name, broken.offset)
}

// renewHeader rewrites the header of a file, because what follows may be undamaged. If it is not,
// the next step finds that.
func renewHeader(d directory, kind fileKind, n uint64, out io.Writer) error {
	name := fileName(kind, n)
	file, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, fileHeaderSize)
	_, err = io.ReadFull(file, b)
	if err == nil {
		h, _ := decodeHeader(name, b)
		h.version, h.kind, h.sequence = formatVersion, kind, n
		_, err = file.WriteAt(h.encode(), 0)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		fmt.Fprintf(out, "%s: header rewritten\n", name)
	}
	return err
}

// removeFrom removes the segments from number n on.
func removeFrom(d directory, f files, n uint64, out io.Writer) error {
	for _, segment := range f.segments {
		if segment < n {
			continue
		}
		name := fileName(logFile, segment)
		if err := d.remove(name); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: removed\n", name)
	}
	return d.syncDir()
}

// salvage rewrites a snapshot with the records before its damage.
func salvage(d directory, n uint64, out io.Writer) error {
	name := fileName(snapshotFile, n)
	if err := d.remove(name + temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	o, err := createSnapshot(d, n, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	w, err := newStateWriter(o, time.Now().UnixMilli())
	if err != nil {
		return o.complete(err)
	}
	e := engine.New(engine.Options{Databases: maxDatabases, Shards: 1})
	var failed error
	if src, err := openData(d, snapshotFile, n, ignoreBytes); err == nil {
		defer src.close()
		for failed == nil {
			rec, err := src.next()
			if err != nil || rec.kind != recordCall || e.Apply(rec.at, rec.effects) != nil {
				break
			}
			w.at = rec.at
			w.add(effect.AppendAll(nil, rec.effects))
			w.complete()
			failed = w.flush()
		}
	}
	if err := o.complete(w.end(failed)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: rewritten with the %d records before the damage\n", name, w.records)
	return nil
}
