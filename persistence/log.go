package persistence

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
)

// Policy says when what was appended to the log is synced to the disk: --appendfsync.
type Policy int32

const (
	Always      Policy = iota // before a call is acknowledged; calls that wait at the same time share a sync
	EverySecond               // once a second
	Never                     // when the operating system sees fit
)

const (
	writeDelay   = 20 * time.Millisecond    // how long what was appended may wait to be written together with more, unless a call waits for it
	syncInterval = time.Second - writeDelay // between syncs, so that one begins within a second of each append
	wakeBacklog  = 256 << 10                // bytes appended from which on the writer does not wait for more
	mostBacklog  = 32 << 20                 // and from which on calls wait for the writer, so that a slow disk does not fill the memory
	keptBuffer   = 4 << 20                  // the largest buffer that is kept for the next batch
)

// segmentSize is how large a segment may be before the next is begun.
const segmentSize = 64 << 20

// log is the journal on disk: calls append records to memory, under the locks of their shards; one goroutine writes them to the
// current segment and syncs it. A write or sync that fails is final: nobody knows what is on the disk then, so nothing is tried again.
//
//	Append -> pending -> the writer -> segment N -> sync -> Wait returns
//	                  ^ cuts: from here on segment N+1
type log struct {
	fs     fileSystem
	clock  func() int64
	policy atomic.Int32
	limit  int64 // bytes in a segment

	mu       sync.Mutex
	pending  []byte    // records not yet taken by the writer
	spare    []byte    // an empty buffer for what comes after them
	cuts     []int     // where in pending a new segment begins
	last     uint64    // the number of the last segment there is, or of the last cut
	appended uint64    // bytes since the start
	segment  uint64    // the segment that is being written
	progress sync.Cond // synced or segment has grown, or failed was set
	failed   error

	_       [64]byte      // calls that wait read what follows, and need not see the lock go round
	synced  atomic.Uint64 // how many of the bytes appended are on the disk for good; changed under the lock
	written atomic.Uint64 // and how many were handed to the operating system
	broken  atomic.Bool   // failed is set
	size    atomic.Int64  // bytes in all segments since the last snapshot
	delayed atomic.Int64  // syncs that took longer than a second

	some chan struct{} // holds one: there is something to write before long
	wake chan struct{} // holds one: or at once
	quit chan struct{}
	done chan struct{}
	told func(error) // is called once, when the log fails

	// Of the writer alone.
	file     outFile
	offset   int64     // bytes in the segment
	clean    int64     // how many of them are synced
	marked   int64     // the last of these figures that stands in the segment
	salt     int64     // of the segment
	lastSync time.Time // when the last sync began
}

// newLog begins a segment and the goroutine that writes it.
func newLog(fs fileSystem, clock func() int64, sequence uint64, policy Policy, limit int64, told func(error)) (*log, error) {
	l := &log{
		fs: fs, clock: clock, limit: limit, last: sequence, told: told,
		some: make(chan struct{}, 1), wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.progress.L = &l.mu
	l.policy.Store(int32(policy))
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
	if l.failed != nil {
		defer l.mu.Unlock()
		return engine.Position(l.appended + 1)
	}
	l.pending = append(l.pending, *buf...)
	l.appended += uint64(len(*buf))
	position, backlog := l.appended, len(l.pending)
	l.mu.Unlock()
	switch {
	case backlog >= wakeBacklog || Policy(l.policy.Load()) == Always:
		tell(l.wake)
	case backlog == len(*buf): // the first since the writer has been here
		tell(l.some)
	}
	if cap(*buf) <= keptBuffer {
		scratch.Put(buf)
	}
	return engine.Position(position)
}

// tell lets the writer know, unless it does.
func tell(it chan struct{}) {
	select {
	case it <- struct{}{}:
	default:
	}
}

// Wait is Wait of engine.Journal: by Always until the position is on the disk, else for no longer than it takes to keep the backlog
// within bounds. The error is that of a log that failed before. What need not wait takes no lock.
func (l *log) Wait(p engine.Position) error {
	position := uint64(p)
	if l.durable(position) && !l.broken.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.failed == nil && !l.durable(position) {
		l.progress.Wait()
	}
	if l.failed == nil || l.synced.Load() >= position {
		return nil
	}
	if Policy(l.policy.Load()) != Always && position <= l.appended {
		return nil // it came before the failure, and was promised no more than that it would be tried to write it
	}
	return l.failed
}

// durable tells whether a position is as durable as the policy promises.
func (l *log) durable(position uint64) bool {
	if l.synced.Load() >= position {
		return true
	}
	return Policy(l.policy.Load()) != Always && position-min(position, l.written.Load()) < mostBacklog
}

// setPolicy changes when to sync, from now on.
func (l *log) setPolicy(p Policy) {
	l.policy.Store(int32(p))
	tell(l.wake)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.Broadcast() // who waits by the old policy may be through by the new
}

// cut makes a new segment begin with what is appended next, and gives its number. It is called under the locks of all shards.
func (l *log) cut() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutHere()
	tell(l.wake)
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
	for l.failed == nil && l.segment < sequence {
		l.progress.Wait()
	}
	return l.failed
}

// backlog is how many bytes wait to be written.
func (l *log) backlog() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.appended - l.written.Load())
}

// err is what the log failed of, nil if it has not.
func (l *log) err() error {
	if !l.broken.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// close writes and syncs what was appended, and ends the writer. Nothing may be appended any more.
func (l *log) close() error {
	close(l.quit)
	<-l.done
	return l.err()
}

// run is the writer. It sleeps while there is nothing to write or to sync.
func (l *log) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ending := false; !ending; {
		select {
		case <-l.quit:
			ending = true
		case <-l.some:
			timer.Reset(writeDelay)
			continue
		case <-l.wake:
			runtime.Gosched() // calls that are about to append share the sync
		case <-timer.C:
		}
		if l.broken.Load() {
			continue
		}
		err := l.writeOut(ending)
		if err == nil && ending {
			err = l.file.Close()
		}
		if err != nil {
			l.fail(err)
		} else if l.clean < l.offset && Policy(l.policy.Load()) == EverySecond {
			timer.Reset(syncInterval - time.Since(l.lastSync))
		}
	}
}

// fail is the end of the log, though not of the process.
func (l *log) fail(err error) {
	l.mu.Lock()
	l.failed = err
	l.pending, l.cuts = nil, nil
	l.broken.Store(true)
	l.progress.Broadcast()
	l.mu.Unlock()
	l.file.Close()
	l.told(err)
}

// writeOut writes what was appended, and syncs as the policy says.
func (l *log) writeOut(ending bool) error {
	batch, cuts := l.take()
	for begin := 0; begin < len(batch) || len(cuts) > 0; {
		end := len(batch)
		if len(cuts) > 0 {
			end = cuts[0]
		}
		if err := l.write(batch[begin:end]); err != nil {
			return err
		}
		if len(cuts) > 0 {
			if err := l.rotate(); err != nil {
				return err
			}
			cuts = cuts[1:]
		}
		begin = end
	}
	l.giveBack(batch)
	switch {
	case ending:
		return l.end()
	case l.due():
		return l.sync()
	}
	l.mu.Lock()
	l.progress.Broadcast() // written has grown
	l.mu.Unlock()
	return nil
}

// due tells whether it is time to sync.
func (l *log) due() bool {
	switch Policy(l.policy.Load()) {
	case Always:
		return true
	case EverySecond:
		return time.Since(l.lastSync) >= syncInterval
	}
	return false
}

// take takes what was appended, for the writer. A segment that is large enough ends with it.
func (l *log) take() (batch []byte, cuts []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offset+int64(len(l.pending)) >= l.limit && len(l.cuts) == 0 {
		l.cutHere()
	}
	batch, cuts = l.pending, l.cuts
	l.pending, l.cuts = l.spare, nil
	l.spare = nil
	return batch, cuts
}

// giveBack lets calls append to the buffer of a batch that was written.
func (l *log) giveBack(batch []byte) {
	if cap(batch) > keptBuffer {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = batch[:0]
}

// write adds records to the segment. If it is known by now that more of the segment is on the disk for good, that is noted before them.
func (l *log) write(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	if err := l.mark(); err != nil {
		return err
	}
	if err := l.put(records); err != nil {
		return err
	}
	l.written.Add(uint64(len(records)))
	return nil
}

// mark notes in the segment how much of it is on the disk for good, unless that stands there already.
func (l *log) mark() error {
	if l.clean == l.marked {
		return nil
	}
	l.marked = l.clean
	return l.put(appendMark(nil, recordSynced, l.clock(), l.salt+l.clean))
}

func (l *log) put(b []byte) error {
	n, err := l.file.Write(b)
	l.offset += int64(n)
	l.size.Add(int64(n))
	return err
}

// sync makes what was written last, and tells those who wait for it.
func (l *log) sync() error {
	if l.clean < l.offset {
		start := time.Now()
		if err := l.file.Sync(); err != nil {
			return err
		}
		l.lastSync = start
		if time.Since(start) > time.Second {
			l.delayed.Add(1)
		}
		l.clean = l.offset
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced.Store(l.written.Load())
	l.progress.Broadcast()
	return nil
}

// end syncs what was written last, and marks that: damage to a log that was ended is never taken for a torn tail.
func (l *log) end() error {
	err := l.sync()
	if err == nil {
		err = l.mark()
	}
	if err == nil {
		err = l.sync()
	}
	return err
}

// rotate ends the segment, whole and on the disk whatever the policy, so that only the last can have a torn tail; and begins the next.
func (l *log) rotate() error {
	if err := l.sync(); err != nil {
		return err
	}
	if err := l.file.Close(); err != nil {
		return err
	}
	return l.begin(l.segment + 1)
}

// newSalt draws a number nobody can guess, in a range where all take 9 bytes in a mark: the sizes of files do not depend on chance.
func newSalt() int64 { return 1<<61 + rand.Int64N(1<<61) }

// begin makes a segment.
func (l *log) begin(sequence uint64) error {
	name := fileName(logFile, sequence)
	file, err := l.fs.create(name)
	if err != nil {
		return fmt.Errorf("segment %s cannot be made: %w", name, err)
	}
	l.file, l.offset, l.clean, l.marked, l.salt = file, 0, 0, 0, newSalt()
	err = l.put(fileHeader{formatVersion, logFile, sequence, l.clock(), l.salt}.encode())
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = l.fs.syncDir()
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("segment %s cannot be begun: %w", name, err)
	}
	l.clean, l.marked = l.offset, l.offset
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segment = sequence
	l.progress.Broadcast()
	return nil
}
