package persistence

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
)

// Policy says when what was appended to the log is synced to the disk: --appendfsync.
type SyncMode int32

const (
	SyncAlways      SyncMode = iota // before a call is acknowledged; calls that wait at the same time share a sync
	SyncEverySecond                 // once a second
	SyncNever                       // when the operating system sees fit
)

const (
	writeDelay   = 20 * time.Millisecond    // how long what was appended may wait to be written together with more, unless a call waits for it
	syncInterval = time.Second - writeDelay // between syncs, so that one begins within a second of each append
	wakeBacklog  = 256 << 10                // bytes appended from which on the writer does not wait for more
	maxBacklog   = 32 << 20                 // and from which on calls wait for the writer, so that a slow disk does not fill the memory
	keptBuffer   = 4 << 20                  // the largest buffer that is kept for the next batch
)

// segmentSize is how large a segment may be before the next is begun.
const segmentSize = 64 << 20

// log is the journal on disk: calls append records to memory, under the locks of their shards; one goroutine writes them to the
// current segment and syncs it.
//
//	Append -> pending -> the writer -> segment N -> sync -> Wait returns
//	                  ^ cuts: from here on segment N+1
//
// A write that finds no room on the disk is tried again until there is room. Any other write that
// fails, and any sync, is final: nobody knows what is on the disk then.
type log struct {
	fs    fileSystem
	clock func() int64
	mode  atomic.Int32
	limit int64 // bytes in a segment

	mu       sync.Mutex
	pending  []byte    // records not yet taken by the writer
	spare    []byte    // an empty buffer for what comes after them
	cuts     []int     // where in pending a new segment begins
	last     uint64    // the number of the last segment there is, or of the last cut
	appended uint64    // bytes since the start
	segment  uint64    // the segment that is being written
	file     outFile   // that segment; only the writer uses it but for stands
	progress sync.Cond // synced or segment has grown, or trouble has changed

	_       [64]byte                // calls that wait read what follows, and need not see the lock go round
	synced  atomic.Uint64           // how many of the bytes appended are on the disk for good; changed under the lock
	written atomic.Uint64           // and how many were handed to the operating system
	trouble atomic.Pointer[trouble] // nil while the log can be written; changed under the lock
	size    atomic.Int64            // bytes in all segments since the last snapshot
	delayed atomic.Int64            // syncs that took longer than a second

	soon     chan struct{} // holds one: there is something to write before long
	wake     chan struct{} // holds one: or at once
	quit     chan struct{}
	done     chan struct{}
	observer observer

	// Of the writer alone.
	batch    []byte    // what it has taken
	taken    []int     // where in it a new segment begins
	at       int       // how much of it is written
	ended    bool      // the log has failed, and that was told
	tried    time.Time // when a write has last found no room
	offset   int64     // bytes in the segment
	clean    int64     // how many of them are synced
	marked   int64     // the last of these figures that stands in the segment
	salt     int64     // of the segment
	lastSync time.Time // when the last sync began
}

// trouble is why a log cannot be written.
type trouble struct {
	err   error
	final bool // nothing is written any more; otherwise there is no room on the disk
	since time.Time
}

// observer is told what becomes of a log, by its writer.
type observer interface {
	logStalled(err error)           // there is no room on the disk: it is tried again
	logResumed(after time.Duration) // what had to wait is written
	logFailed(err error)            // once: the log is given up
}

// newLog begins a segment and the goroutine that writes it.
func newLog(fs fileSystem, clock func() int64, sequence uint64, mode SyncMode, limit int64, events observer) (*log, error) {
	l := &log{
		fs: fs, clock: clock, limit: limit, last: sequence, observer: events,
		soon: make(chan struct{}, 1), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.progress.L = &l.mu
	l.mode.Store(int32(mode))
	if err := l.begin(sequence); err != nil {
		return nil, err
	}
	go l.run()
	return l, nil
}

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Append is Append of engine.Journal. When the log has failed it returns a position that is never reached.
func (l *log) Append(now int64, effects []engine.Effect) engine.Position {
	buf := scratch.Get().(*[]byte)
	*buf = appendRecord((*buf)[:0], now, effects) // outside the lock that all calls share
	l.mu.Lock()
	if !l.accepts(len(*buf)) {
		defer l.mu.Unlock()
		return engine.Position(l.appended + 1)
	}
	l.pending = append(l.pending, *buf...)
	l.appended += uint64(len(*buf))
	position, backlog := l.appended, len(l.pending)
	l.mu.Unlock()
	switch {
	case backlog >= wakeBacklog || SyncMode(l.mode.Load()) == SyncAlways:
		signal(l.wake)
	case backlog == len(*buf): // the first since the writer has been here
		signal(l.soon)
	}
	if cap(*buf) <= keptBuffer {
		scratch.Put(buf)
	}
	return engine.Position(position)
}

var errBacklog = fmt.Errorf("the disk is full, and more than %d MB wait to be written", maxBacklog>>20)

// takes tells whether more can be appended: not if the log has failed, which it does when too much
// waits for room on the disk.
func (l *log) accepts(n int) bool {
	t := l.trouble.Load()
	switch {
	case t == nil:
		return true
	case t.final:
		return false
	case l.appended+uint64(n)-l.written.Load() <= maxBacklog:
		return true
	}
	l.giveUp(errBacklog)
	return false
}

// giveUp makes the log fail, if it has not. The lock is held; the writer does the rest.
func (l *log) giveUp(err error) {
	if t := l.trouble.Load(); t != nil && t.final {
		return
	}
	l.trouble.Store(&trouble{err: err, final: true})
	l.progress.Broadcast()
	signal(l.wake)
}

// tell lets the writer know, unless it does.
func signal(it chan struct{}) {
	select {
	case it <- struct{}{}:
	default:
	}
}

// Wait is Wait of engine.Journal: by Always until the position is on the disk, else for no longer than it takes to keep the backlog
// within bounds. The error is why the log cannot be written. What need not wait takes no lock.
func (l *log) Wait(p engine.Position) error {
	position := uint64(p)
	if l.durable(position) && l.trouble.Load() == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.trouble.Load() == nil && !l.durable(position) {
		l.progress.Wait()
	}
	t := l.trouble.Load()
	if t == nil || l.synced.Load() >= position {
		return nil
	}
	if SyncMode(l.mode.Load()) != SyncAlways && position <= l.appended {
		return nil // it was taken, and the policy promises no more than an attempt to write it
	}
	return t.err
}

// durable tells whether a position is as durable as the policy promises.
func (l *log) durable(position uint64) bool {
	if l.synced.Load() >= position {
		return true
	}
	return SyncMode(l.mode.Load()) != SyncAlways && position-min(position, l.written.Load()) < maxBacklog
}

// setSyncMode changes when to sync, from now on.
func (l *log) setSyncMode(mode SyncMode) {
	l.mode.Store(int32(mode))
	signal(l.wake)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.Broadcast() // who waits by the old policy may be through by the new
}

// cut makes a new segment begin with what is appended next, and gives its number. It is called under the locks of all shards.
func (l *log) cut() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutHere()
	signal(l.wake)
	return l.last
}

func (l *log) cutHere() {
	l.last++
	l.cuts = append(l.cuts, len(l.pending))
}

// reached returns when all segments before this one are on the disk for good, and this one is there.
func (l *log) reached(sequence uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.trouble.Load() == nil && l.segment < sequence {
		l.progress.Wait()
	}
	if t := l.trouble.Load(); t != nil {
		return t.err
	}
	return nil
}

// backlog is how many bytes wait to be written.
func (l *log) backlog() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.appended - l.written.Load())
}

// err is what the log failed of, nil if it has not.
func (l *log) err() error {
	if t := l.trouble.Load(); t != nil && t.final {
		return t.err
	}
	return nil
}

// stands tells whether the segment is still in the directory: the error says that it is not.
func (l *log) inPlace() error {
	for {
		l.mu.Lock()
		file := l.file
		l.mu.Unlock()
		err := file.inPlace()
		l.mu.Lock()
		same := l.file == file
		l.mu.Unlock()
		if same {
			return err
		}
	}
}

// close writes and syncs what was appended, and ends the writer. Nothing may be appended any more.
func (l *log) close() error {
	close(l.quit)
	<-l.done
	return l.err()
}
