package persistence

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"rlserver/engine"
)

// RepairClock moves the data in a directory back to the present if its latest time is ahead of now,
// in Unix ms: see engine.MoveBack. All files are first copied to a folder, whose name is written to
// out; then one snapshot replaces them. The directory must be readable and not in use. If it is not
// ahead, nothing is changed.
func RepairClock(dir string, now int64, out io.Writer, p Progress) error {
	d := directory(dir)
	lock, err := d.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	f, err := listFiles(d)
	if err != nil {
		return err
	}
	r, err := dryRun(readOnly{d}, f, p)
	if err != nil {
		return fmt.Errorf("%w; run \"rlserver repair %s\" without --clock first", err, dir)
	}
	fmt.Fprintf(out, "the latest time in the data is %s, the system clock shows %s\n", timeText(r.Last), timeText(now))
	if r.Last <= now {
		fmt.Fprintln(out, "the data is not ahead: nothing was changed")
		return nil
	}
	copied, err := keepCopy(d, f, p)
	if err != nil {
		return fmt.Errorf("no copy could be made, so nothing was changed: %w", err)
	}
	fmt.Fprintf(out, "copies of all files are in %s\n", copied)
	ahead := time.Duration(min(r.Last-now, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	fmt.Fprintf(out, "%d keys were moved back by %v\n", r.e.MoveBack(r.Last, now), ahead)
	return replaceAll(d, f, r.e, now, out)
}

// replaceAll replaces all files by a snapshot of an engine.
func replaceAll(d directory, f files, e *engine.Engine, now int64, out io.Writer) error {
	for _, name := range f.unfinished {
		if err := d.remove(name); err != nil {
			return err
		}
	}
	number := f.last() + 1
	ready := func(uint64) error { return nil }
	ignoreProgress := func(int64, int64) error { return nil }
	_, _, err := writeSnapshot(d, e, func() int64 { return now }, func() uint64 { return number }, ready,
		ignoreProgress)
	if err != nil {
		return err
	}
	for kind, list := range f.inOrder() {
		for _, n := range list {
			err = errors.Join(err, d.remove(fileName(kind, n)))
		}
	}
	fmt.Fprintf(out, "%s: replaces all files\n", fileName(snapshotFile, number))
	return errors.Join(err, d.syncDir())
}
