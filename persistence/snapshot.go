package persistence

import (
	"fmt"

	"rlserver/engine"
)

// snapshotSync is the number of bytes between syncs: one sync at the end would delay those of the
// log.
const snapshotSync = 8 << 20

// snapshotOutput is the file of a snapshot, which gets its final name when it is complete.
type snapshotOutput struct {
	fs    fileSystem
	name  string
	file  outFile
	size  int64 // bytes in the file
	clean int64 // bytes of the file that are synced
}

func createSnapshot(fs fileSystem, sequence uint64, now int64) (*snapshotOutput, error) {
	o := &snapshotOutput{fs: fs, name: fileName(snapshotFile, sequence)}
	var err error
	if o.file, err = fs.create(o.name + temporary); err != nil {
		return nil, err
	}
	header := fileHeader{version: formatVersion, kind: snapshotFile, sequence: sequence, created: now}
	if _, err = o.Write(header.encode()); err != nil {
		return nil, o.complete(err)
	}
	return o, nil
}

// Write writes bytes to the file.
func (o *snapshotOutput) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	o.size += int64(n)
	if err == nil && o.size-o.clean >= snapshotSync {
		o.clean = o.size
		err = o.file.Sync()
	}
	return n, err
}

// complete syncs the file and gives it its final name or, after err of what has written it or an
// error of its own, removes it.
func (o *snapshotOutput) complete(err error) error {
	if err == nil {
		err = o.file.Sync()
	}
	if failed := o.file.Close(); err == nil {
		err = failed
	}
	if err == nil {
		err = o.fs.rename(o.name+temporary, o.name)
	}
	if err != nil {
		o.fs.remove(o.name + temporary)
		return err
	}
	return o.fs.syncDir()
}

// writeSnapshot writes the state of an engine at one point in time to a file. cut is called at that
// time and returns the number of the segment that follows; ready returns when the log has reached
// that segment.
func writeSnapshot(fs fileSystem, e *engine.Engine, now func() int64, cut func() uint64,
	ready func(sequence uint64) error,
	progress func(done, total int64) error) (sequence uint64, size int64, err error) {
	s := e.Snapshot(func() { sequence = cut() })
	defer s.Close()
	at := now()
	o, err := createSnapshot(fs, sequence, at)
	if err != nil {
		return 0, 0, fmt.Errorf("snapshot %s cannot be created: %w", fileName(snapshotFile, sequence), err)
	}
	if err = WriteState(o, s, at, func() error { return progress(s.Keys()) }); err == nil {
		err = ready(sequence)
	}
	if err = o.complete(err); err != nil {
		return 0, 0, fmt.Errorf("snapshot %s has failed: %w", o.name, err)
	}
	return sequence, o.size, nil
}
