package group

import "github.com/hashicorp/raft-wal/types"

// SetSync sets whether the log is synced from now on, in place of Options.Sync.
func (g *Group) SetSync(on bool) { g.sync.Store(on) }

// maySync is a file system whose files are synced while syncs returns true, and when they are
// closed. Terms and votes are in a file of their own, which is synced always.
type maySync struct {
	types.VFS
	syncs func() bool
	// created is called with the error of creating a file: package wal only logs it, and its log
	// takes no entries any more
	created func(error)
}

func (v maySync) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	if v.created(err); err != nil {
		return nil, err
	}
	return &maySyncFile{WritableFile: f, syncs: v.syncs}, nil
}

func (v maySync) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	return &maySyncFile{WritableFile: f, syncs: v.syncs}, err
}

// maySyncFile is used by one goroutine at a time.
type maySyncFile struct {
	types.WritableFile
	syncs func() bool
	owes  bool // a sync was left out
}

func (f *maySyncFile) Sync() error {
	if f.owes = !f.syncs(); f.owes {
		return nil
	}
	return f.WritableFile.Sync()
}

func (f *maySyncFile) Close() error {
	if f.owes {
		if err := f.WritableFile.Sync(); err != nil {
			f.WritableFile.Close()
			return err
		}
	}
	return f.WritableFile.Close()
}
