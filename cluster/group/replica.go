package group

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/cluster/broken"
	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/persistence"
)

// maxBatch is the size of an entry, in bytes, from which no further call joins it.
const maxBatch = 256 << 10

// smallBatch is the least memory that an entry is made with, in bytes.
const smallBatch = 256

// ErrUnknown is the outcome of Wait other than nil: what the call has changed may be committed or
// not. Whether it has changed anything is known to who has run it.
var ErrUnknown = errors.New("leadership ended before the change was committed: its outcome is unknown")

// Partition is a replica while it leads: what calls run on. It is a new one with each leadership.
type Partition struct {
	*Replica
	Group int // number of the group
	Clock *clock.Clock
	term  uint64
	ended chan struct{}
	most  time.Duration // for how long a call waits until it is committed; 0: for ever
	begun uint64        // index of the entry that begins the leadership
	used  policiesUsed
}

// Term returns the term of the leadership.
func (p *Partition) Term() uint64 { return p.term }

// Ended is closed when the leadership has ended: calls that wait then have to be ended.
func (p *Partition) Ended() <-chan struct{} { return p.ended }

// Replica is one life of a group's state on this node: an engine, and the journal that the engine
// writes while this replica leads. It is replaced when its engine has decided what the group has
// not committed.
//
//	Append -> next -> (full: queue) -> proposed -> committed -> Wait returns
//
// Records are numbered from 1. Everything up to committed is in the log.
type Replica struct {
	Engine *engine.Engine
	id     uint64 // the incarnation: a random number

	leading atomic.Pointer[Partition] // nil: calls are not served here

	mu        sync.Mutex
	appended  uint64   // number of the last record
	committed uint64   // number of the last record that is committed
	inFlight  int      // batches with records that are proposed and not committed
	queue     []*batch // full ones
	next      *batch   // takes records; a call that waits now waits for this one
	wanted    bool     // somebody waits for next
	usual     int      // size of the last batch that was not full: the next is about as large
	failure   error    // why this replica is to be replaced; nil: it is not
	progress  sync.Cond
	digest    digesting

	work   chan struct{} // capacity 1: there is something to propose
	failed chan struct{} // capacity 1: failure has been set
}

// batch is an entry that is being made, and those who wait until it is committed.
type batch struct {
	kind  entryKind
	at    int64  // its time, Unix ms; 0: that at which it is proposed
	entry []byte // the header's place and the records
	part  []byte // of a large record, in place of entry until it is proposed
	first uint64 // number of the first record
	last  uint64 // and of the last; first-1: there is none
	done  chan struct{}
	err   error // valid when done is closed
}

// origin is the position of a keyspace that nothing has changed yet: a call that has only seen such
// has to wait as well, until it is known that this replica leads.
const origin engine.Position = 1

func newReplica(o engine.Options) *Replica {
	r := &Replica{
		id: rand.Uint64(), work: make(chan struct{}, 1), failed: make(chan struct{}, 1),
	}
	r.progress.L = &r.mu
	r.next = r.newBatch()
	o.Journal, o.Origin = r, origin
	r.Engine = engine.New(o)
	return r
}

// newBatch returns an empty batch that follows what has been appended.
func (r *Replica) newBatch() *batch {
	return &batch{
		kind: entryBatch, entry: make([]byte, headerSize, max(smallBatch, r.usual+r.usual/4)),
		first: r.appended + 1, last: r.appended,
		done: make(chan struct{}),
	}
}

func (b *batch) empty() bool { return b.last < b.first && b.kind != entryPart && b.kind != entryNote }

// Leads reports whether calls are served here. It is fast, and may be out of date: Wait is what
// confirms it.
func (r *Replica) Leads() bool { return r.leading.Load() != nil }

// Append implements engine.Journal.
func (r *Replica) Append(now int64, effects []byte) engine.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.appended++
	if r.failure != nil || r.leading.Load() == nil {
		if !broken.NoRebuild {
			r.fail(errors.New("a call has changed something after the end of leadership"))
		}
		return engine.Position(r.appended) + origin
	}
	b := r.next
	before := len(b.entry)
	b.entry = persistence.AppendCall(b.entry, now, effects)
	if record := b.entry[before:]; len(record) > maxBatch {
		b.entry = slices.Clone(b.entry[:before])
		r.queue = append(append(r.queue, b), r.split(record)...)
		r.next = r.newBatch()
		signal(r.work)
		return engine.Position(r.appended) + origin
	}
	b.last = r.appended
	if len(b.entry) >= maxBatch {
		r.queue = append(r.queue, b)
		r.next = r.newBatch()
		signal(r.work)
	}
	return engine.Position(r.appended) + origin
}

// Wait implements engine.Journal: it returns when all records up to now are committed, and it is
// certain that no other replica had begun to lead when it was called. So it is for calls that have
// read or denied as well, and it does not matter what they have seen.
func (r *Replica) Wait(engine.Position) error { return r.ask(r.leading.Load()).wait() }

// outcome is what a call waits for, see ask.
type outcome struct {
	of   *batch
	most time.Duration // for how long it waits; 0: for ever
}

// wait returns as Replica.Wait does. It returns ErrUnknown if that takes too long, as behind a
// record of hundreds of megabytes.
func (o outcome) wait() error {
	if o.most == 0 || isClosed(o.of.done) {
		<-o.of.done
		return o.of.err
	}
	timer := timers.Get().(*time.Timer)
	defer timers.Put(timer)
	timer.Reset(o.most)
	defer timer.Stop()
	select {
	case <-o.of.done:
		return o.of.err
	case <-timer.C:
		return ErrUnknown
	}
}

// timers are stopped.
var timers = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}}

// Ask begins what wait ends, so that a client can wait for several groups at once.
func (p *Partition) Ask() (wait func() error) { return p.ask(p).wait }

// Wait is Replica.Wait for calls on this partition. If its leadership has ended, it fails, even if
// the replica leads again: another one may have led in between, and they have not seen its changes.
func (p *Partition) Wait(engine.Position) error { return p.ask(p).wait() }

// ask begins to wait for what was decided while p led.
func (r *Replica) ask(p *Partition) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p == nil || r.failure != nil || r.leading.Load() != p {
		return outcome{unknown, 0}
	}
	if broken.Denials && r.quietLocked() {
		return outcome{committed, 0}
	}
	r.wanted = true
	signal(r.work)
	if broken.Early {
		return outcome{committed, 0}
	}
	return outcome{r.next, p.most}
}

var (
	committed = ended(nil)        // what nobody has to wait for, in broken builds
	unknown   = ended(ErrUnknown) // what those wait for who come after the end of leadership
)

// ended returns a batch with an outcome.
func ended(err error) *batch {
	b := &batch{done: make(chan struct{}), err: err}
	close(b.done)
	return b
}

// signal tells who reads from a channel of capacity 1 to look again.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maxTogether is how many full batches are proposed together: with less to a write, and to a
// message, a large record takes longer, and calls wait for it.
const maxTogether = maxAppended

// take appends to list what is to be proposed now: a batch, and the full ones that follow it.
func (r *Replica) take(list []*batch) []*batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(list) < maxTogether {
		b := r.takeNext()
		if b == nil {
			break
		}
		if list = append(list, b); len(r.queue) == 0 {
			break
		}
	}
	return list
}

// takeNext takes the next batch to propose, nil if there is none, and completes its header.
func (r *Replica) takeNext() *batch {
	p := r.leading.Load()
	if r.failure != nil || p == nil {
		return nil
	}
	if len(r.queue) == 0 && !r.wanted {
		return nil
	}
	b := r.policyNote(&p.used)
	switch {
	case b != nil:
	case len(r.queue) > 0:
		b = r.queue[0]
		r.queue = r.queue[1:]
	default:
		b, r.usual = r.next, len(r.next.entry)
		r.next, r.wanted = r.newBatch(), false
	}
	if !b.empty() {
		r.inFlight++
	}
	if b.part != nil {
		b.entry = append(make([]byte, headerSize, headerSize+len(b.part)), b.part...)
		b.part = nil
	}
	header{
		kind: b.kind, proposer: r.id, term: p.term, first: b.first, last: b.last,
		at: cmp.Or(b.at, p.Clock.Now()),
	}.put(b.entry)
	return b
}

// applied is called when a batch that was taken is committed, or has failed.
func (r *Replica) applied(b *batch, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		// while it still counts as on its way: the engine has what may never be committed
		r.endLocked(err)
		err = ErrUnknown
	}
	if !b.empty() {
		r.inFlight--
	}
	b.err, b.entry = err, nil
	close(b.done)
}

// committedOwn is called with the number of the last record of each own entry that is committed.
func (r *Replica) committedOwn(last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committed = max(r.committed, last)
	r.progress.Broadcast()
}

// lead begins to serve calls.
func (r *Replica) lead(p *Partition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return false
	}
	if before := r.leading.Swap(p); before != nil {
		close(before.ended) // the same leadership has begun twice
	}
	return true
}

// end ends leadership. If anything was on its way, the engine is ahead of the log, perhaps for
// good: then the replica has failed.
func (r *Replica) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(why)
}

func (r *Replica) endLocked(why error) {
	p := r.leading.Swap(nil)
	if p == nil {
		return
	}
	close(p.ended)
	if !r.quietLocked() && !broken.NoRebuild {
		r.fail(why)
		return
	}
	r.failWaiting()
}

// quietLocked reports whether nothing is on its way.
func (r *Replica) quietLocked() bool { return r.inFlight == 0 && len(r.queue) == 0 && r.next.empty() }

// failWaiting ends the waiting for what is not proposed yet.
func (r *Replica) failWaiting() {
	for _, b := range append(r.queue, r.next) {
		b.err = ErrUnknown
		close(b.done)
	}
	r.queue, r.next, r.wanted = nil, r.newBatch(), false
}

// fail marks the replica as one to be replaced. r.mu is held.
func (r *Replica) fail(why error) {
	if r.failure != nil {
		return
	}
	r.failure = cmp.Or(why, errors.New("closed"))
	if p := r.leading.Swap(nil); p != nil {
		close(p.ended)
	}
	r.failWaiting()
	r.progress.Broadcast()
	signal(r.failed)
}

// discard is fail for a replica that is replaced anyway.
func (r *Replica) discard(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(why)
}

// why returns why the replica has failed, nil if it has not.
func (r *Replica) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// endQuietly ends leadership if nothing is on its way, and reports whether it has.
func (r *Replica) endQuietly() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.quietLocked() {
		r.wanted = true
		signal(r.work)
		return false
	}
	r.endLocked(nil)
	return true
}

// beat has an entry proposed that carries the time, also if there is nothing else to propose.
func (r *Replica) beat() {
	r.mu.Lock()
	r.wanted = true
	r.mu.Unlock()
	signal(r.work)
}

// lastAppended returns the number of the last record. It is called under all locks of the engine.
func (r *Replica) lastAppended() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appended
}

// awaitCommitted returns when all records up to a number are committed, or an error if that may
// never be.
func (r *Replica) awaitCommitted(number uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.committed < number && r.failure == nil {
		r.progress.Wait()
	}
	return r.failure
}
