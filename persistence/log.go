package persistence

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
	"rlserver/internal/storage"
)

const (
	writeDelay   = 20 * time.Millisecond    // longest delay of a write, unless a call waits for it
	syncInterval = time.Second - writeDelay // a sync begins within a second of each append
	lateAfter    = 2 * time.Second          // age of a change not stored, from which calls wait
	wakeBacklog  = 256 << 10                // bytes from which the writer does not wait for more
	maxBacklog   = 32 << 20                 // bytes from which calls wait for the writer
	keptBuffer   = 4 << 20                  // bytes of the largest buffer that is reused
	minGathered  = 5                        // calls that wait, from which on others are waited for
	maxGather    = time.Millisecond
)

// segmentSize is how many bytes a segment may have before the next is begun.
const segmentSize = 64 << 20

// log is the journal on disk. Calls append records to memory, under the locks of their shards. One
// goroutine writes them to the current segment and syncs it.
//
//	Append -> pending -> the writer -> segment N -> sync -> Wait returns
//	                  ^ cuts: from here on segment N+1
//
// A write that fails because the disk is full is retried until there is space. Any other failure of
// a write, and any failure of a sync, is final, because what is on the disk is unknown then.
type log struct {
	fs    fileSystem
	clock func() int64
	mode  atomic.Int32
	limit int64 // bytes in a segment

	mu       sync.Mutex
	pending  []byte          // records that the writer has not taken
	spare    []byte          // an empty buffer for the records after them
	cuts     []int           // offsets in pending at which a new segment begins
	last     uint64          // number of the last segment, or of the last cut
	appended uint64          // bytes since the start
	segment  uint64          // number of the segment that is being written
	file     outFile         // that segment; used by the writer only, except for inPlace
	begun    sync.Cond       // signals that segment has grown, or trouble has changed
	waiting  []waiter        // calls
	idle     []chan struct{} // of calls that have waited
	first    time.Time       // when the first record in pending was appended
	oldest   time.Time       // when the first change that is not stored was appended; or zero
	late     *time.Timer     // calls hold when oldest is lateAfter ago

	_       [64]byte                // so that waiting calls do not read the cache line of mu
	synced  atomic.Uint64           // appended bytes that are durable; changed under mu
	written atomic.Uint64           // appended bytes that are written to the file
	held    atomic.Uint64           // changes after this wait to be durable; changed under mu
	trouble atomic.Pointer[trouble] // nil while the log can be written; changed under mu
	size    atomic.Int64            // bytes in all segments since the last snapshot
	delayed atomic.Int64            // syncs that took longer than a second

	soon     chan struct{} // capacity 1: there is something to write
	wake     chan struct{} // capacity 1: write and sync without delay
	quit     chan struct{}
	done     chan struct{}
	observer observer

	// The fields below are used by the writer only.
	batch    []byte        // records taken from pending
	taken    []int         // cuts within batch
	since    time.Time     // when the first record in batch was appended
	at       int           // bytes of batch that are written
	ended    bool          // the log has failed, and the observer knows
	tried    time.Time     // when a write last found the disk full
	offset   int64         // bytes in the segment
	clean    int64         // bytes of the segment that are synced
	marked   int64         // value of clean in the last mark
	salt     int64         // of the segment
	lastSync time.Time     // when the last sync began
	took     time.Duration // of the last sync
}

// waiter is a call that waits until a position is durable, or the log has trouble.
type waiter struct {
	position uint64
	ready    chan struct{} // capacity 1
}

// trouble is why a log cannot be written.
type trouble struct {
	err   error
	final bool // nothing is written any more; otherwise the disk is full
	since time.Time
}

// observer is notified by the writer of a log.
type observer interface {
	logSynced(took time.Duration)
	logStalled(err error)           // the disk is full; the write is retried
	logResumed(after time.Duration) // everything that waited is written
	logLate()                       // the disk has not answered for lateAfter
	logInTime(after time.Duration)  // it has stored what was late
	logFailed(err error)            // the log is closed; called once
}

// newLog creates a segment and starts the goroutine that writes it.
func newLog(fs fileSystem, clock func() int64, sequence uint64, mode storage.SyncMode, limit int64,
	events observer) (*log, error) {
	l := &log{
		fs: fs, clock: clock, limit: limit, last: sequence, observer: events,
		soon: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.begun.L = &l.mu
	l.mode.Store(int32(mode))
	l.held.Store(noneHeld)
	l.late = time.AfterFunc(lateAfter, l.hold)
	if err := l.begin(sequence); err != nil {
		return nil, err
	}
	go l.run()
	return l, nil
}

// Append implements engine.Journal. When the log has failed it returns a position that is never
// reached.
func (l *log) Append(now int64, effects []byte) engine.Position {
	var buf [longestHead]byte
	head := appendHead(buf[:0], now, effects) // outside of mu, which all calls share
	size := len(head) + len(effects)
	l.mu.Lock()
	if !l.accepts(size) {
		defer l.mu.Unlock()
		return engine.Position(l.appended + 1)
	}
	l.pending = append(append(l.pending, head...), effects...)
	l.appended += uint64(size)
	position, backlog := l.appended, len(l.pending)
	if backlog == size { // the first since the writer took the last batch
		if l.first = time.Now(); l.oldest.IsZero() {
			l.setOldest(l.first)
		}
	}
	l.mu.Unlock()
	switch {
	case backlog >= wakeBacklog || storage.SyncMode(l.mode.Load()) == storage.SyncAlways:
		signal(l.wake)
	case backlog == size:
		signal(l.soon)
	}
	return engine.Position(position)
}

var errBacklog = fmt.Errorf("the disk is full, and more than %d MB wait to be written", maxBacklog>>20)

// accepts reports whether n more bytes can be appended. It makes the log fail when too much waits
// for a full disk.
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

// giveUp makes the log fail, if it has not yet. The caller holds mu. The writer closes the file.
func (l *log) giveUp(err error) {
	if t := l.trouble.Load(); t != nil && t.final {
		return
	}
	l.trouble.Store(&trouble{err: err, final: true})
	l.notify()
	signal(l.wake)
}

// signal sends without blocking: one pending signal is enough.
func signal(it chan struct{}) {
	select {
	case it <- struct{}{}:
	default:
	}
}

// noneHeld is the value of log.held while calls need not wait until they are durable.
const noneHeld = math.MaxUint64

// setOldest notes since when the oldest change waits for the disk; zero: none does. It returns how
// long the disk was late, if it no longer is. The caller holds mu.
func (l *log) setOldest(since time.Time) (late time.Duration) {
	before, age := l.oldest, time.Duration(0)
	if l.oldest = since; since.IsZero() {
		l.late.Stop()
	} else {
		age = time.Since(since)
		l.late.Reset(lateAfter - age)
	}
	if age >= lateAfter || l.held.Swap(noneHeld) == noneHeld {
		return 0
	}
	return time.Since(before)
}

// hold makes calls wait for what they change, if the disk does not answer. Those before them have
// been acknowledged: what they have changed can be read.
func (l *log) hold() {
	l.mu.Lock()
	late := !l.oldest.IsZero() && time.Since(l.oldest) >= lateAfter && !l.isLate() && l.err() == nil
	if late {
		l.held.Store(l.appended)
	}
	l.mu.Unlock()
	if late {
		l.observer.logLate()
	}
}

// isLate reports whether the disk has not answered for lateAfter. It is fast.
func (l *log) isLate() bool { return l.held.Load() != noneHeld }

// lateFor returns how long the oldest change has waited for a disk that does not answer; 0: it
// answers.
func (l *log) lateFor() time.Duration {
	if !l.isLate() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isLate() {
		return 0
	}
	return time.Since(l.oldest)
}

// Wait implements engine.Journal. With storage.SyncAlways, and while the disk is late, it waits
// until the position is durable, otherwise only until the backlog is below maxBacklog. The error is
// why the log cannot be written. A call that does not wait takes no lock.
func (l *log) Wait(p engine.Position) error {
	position := uint64(p)
	if l.durable(position) && l.trouble.Load() == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.trouble.Load() == nil && !l.durable(position) {
		l.await(position)
	}
	t := l.trouble.Load()
	if t == nil || l.synced.Load() >= position {
		return nil
	}
	if storage.SyncMode(l.mode.Load()) != storage.SyncAlways && position <= l.appended {
		return nil // the mode promises no more than an attempt to write it
	}
	return t.err
}

// await waits until notify finds a position durable, or trouble. The caller holds mu, which is
// unlocked meanwhile.
func (l *log) await(position uint64) {
	w := waiter{position: position}
	if n := len(l.idle); n > 0 {
		w.ready, l.idle = l.idle[n-1], l.idle[:n-1]
	} else {
		w.ready = make(chan struct{}, 1)
	}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	<-w.ready
	l.mu.Lock()
	l.idle = append(l.idle, w.ready)
}

// notify wakes those who wait for what has happened, and nobody else: many calls that append while
// a sync runs wait for the next one. The caller holds mu.
func (l *log) notify() {
	l.begun.Broadcast()
	troubled := l.trouble.Load() != nil
	l.waiting = slices.DeleteFunc(l.waiting, func(w waiter) bool {
		if !troubled && !l.durable(w.position) {
			return false
		}
		w.ready <- struct{}{}
		return true
	})
}

// durable reports whether a position is as durable as the sync mode promises.
func (l *log) durable(position uint64) bool {
	if l.synced.Load() >= position {
		return true
	}
	return storage.SyncMode(l.mode.Load()) != storage.SyncAlways && position <= l.held.Load() &&
		position-min(position, l.written.Load()) < maxBacklog
}

// setSyncMode changes the sync mode.
func (l *log) setSyncMode(mode storage.SyncMode) {
	l.mode.Store(int32(mode))
	signal(l.wake)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify() // calls that wait in the old mode may not have to in the new one
}

// cut makes the next record begin a new segment, and returns the number of that segment. The caller
// holds the locks of all shards.
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

// reached waits until all segments before a segment are durable and the segment exists.
func (l *log) reached(sequence uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.trouble.Load() == nil && l.segment < sequence {
		l.begun.Wait()
	}
	if t := l.trouble.Load(); t != nil {
		return t.err
	}
	return nil
}

// backlog returns how many bytes wait to be written.
func (l *log) backlog() int64 { return int64(l.end() - l.written.Load()) }

// end returns the position after the last appended record.
func (l *log) end() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appended
}

// err returns why the log has failed; nil if it works.
func (l *log) err() error {
	if t := l.trouble.Load(); t != nil && t.final {
		return t.err
	}
	return nil
}

// inPlace returns an error if the segment is no longer in the directory.
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

// close writes and syncs what was appended, and ends the writer. Nothing may be appended after it.
func (l *log) close() error {
	close(l.quit)
	<-l.done
	return l.err()
}
