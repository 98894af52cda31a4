package group

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

const (
	logFolder       = "log"   // in a group's folder
	segmentSize     = 8 << 20 // bytes that a segment of the log is created with
	cachedEntries   = 64      // the last entries, kept in memory for followers
	keptSnapshots   = 1
	defaultTrailing = 256 // kept behind a snapshot for followers that are not far behind
)

// files are the stores of a group in its folder: log, terms and votes, snapshots.
type files struct {
	log       *wal.WAL
	cache     raft.LogStore
	snapshots *raft.FileSnapshotStore
}

// openFiles opens the files of a group. stored is called when entries were stored, or could not be,
// and hangs if that takes longer than Options.Patience.
func (g *Group) openFiles(log hclog.Logger, stored func(time.Duration, error), hangs func()) (f files, err error) {
	dir := g.options.Dir
	folder := filepath.Join(dir, logFolder)
	disk := types.VFS(fs.New())
	if g.options.Disk != nil {
		disk = g.options.Disk(disk)
	}
	if err = os.MkdirAll(folder, 0o750); err != nil {
		return f, err
	}
	meta := new(metadb.BoltMetaDB)
	f.log, err = openLog(func() (*wal.WAL, error) {
		return wal.Open(folder, wal.WithLogger(log), wal.WithMetaStore(meta), wal.WithSegmentSize(segmentSize),
			wal.WithSegmentFiler(segment.NewFiler(folder, maySync{disk, g.sync.Load, g.leadership.setFile})))
	})
	if err != nil {
		meta.Close() // or the next attempt would wait for its lock
		return f, fmt.Errorf("the log in %s cannot be opened: %w", folder, err)
	}
	f.cache, err = raft.NewLogCache(cachedEntries, notedStore{f.log, g.time, stored, hangs, g.patience()})
	if err == nil {
		f.snapshots, err = raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, log)
	}
	if err == nil {
		err = f.raiseTerm()
	}
	if err != nil {
		f.log.Close()
	}
	return f, err
}

// openLog opens a log. Raft-wal panics at some damaged files.
func openLog(open func() (*wal.WAL, error)) (log *wal.WAL, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a file is damaged: %v. Remove the folder of the group, and the node gets it from the "+
				"others", fault)
		}
	}()
	return open()
}

// raiseTerm sets the term to that of the snapshot, if it is lower: the folder then has a snapshot
// from a backup and no log. Entries of a lower term must not follow those of the snapshot.
func (f *files) raiseTerm() error {
	list, err := f.snapshots.List()
	if err != nil || len(list) == 0 {
		return err
	}
	term, err := f.log.GetUint64(currentTerm)
	if err != nil || term >= list[0].Term {
		return err
	}
	return f.log.SetUint64(currentTerm, list[0].Term)
}

// currentTerm is where raft keeps its term.
var currentTerm = []byte("CurrentTerm")

// notedStore reports how long entries took to be stored, and whether they were. It is below the
// cache, which hides the system's error.
type notedStore struct {
	*wal.WAL
	time   *timeline
	stored func(time.Duration, error)
	hangs  func() // called if it takes longer than patience

	patience time.Duration
}

func (s notedStore) StoreLogs(entries []*raft.Log) error {
	if len(entries) > 0 {
		s.time.arrive(entries[0].Index, entries[len(entries)-1].Index)
	}
	start := time.Now()
	defer time.AfterFunc(s.patience, s.hangs).Stop()
	err := s.WAL.StoreLogs(entries)
	s.stored(time.Since(start), err)
	return err
}

// Layer is where a group's connections to other nodes come from; *mux.Layer is one.
type Layer interface {
	net.Listener
	Dial(node string, instance uint64, timeout time.Duration) (net.Conn, error)
}

// stream adapts a Layer: raft's addresses are the identities of replicas.
type stream struct {
	Layer
	own   ReplicaID
	ended chan<- struct{} // see watched
}

func (s stream) Accept() (net.Conn, error) {
	c, err := s.Layer.Accept()
	if err != nil {
		return nil, err
	}
	return watched{c, s.ended}, nil
}

// outgoing is a stream for calls of this replica alone.
type outgoing struct {
	stream
	closed chan struct{}
}

func (o outgoing) Accept() (net.Conn, error) {
	<-o.closed
	return nil, net.ErrClosed
}

func (o outgoing) Close() error {
	close(o.closed)
	return nil
}

// Network implements net.Addr.
func (id ReplicaID) Network() string { return "replica" }

func (s stream) Addr() net.Addr { return s.own }

func (s stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, err := ParseReplicaID(string(to))
	if err != nil {
		return nil, err
	}
	return s.Layer.Dial(id.Node, id.Instance, timeout)
}

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
