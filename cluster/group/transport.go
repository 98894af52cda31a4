package group

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. Raft sends one message in a pipeline for each
// new entry or pause: a replica that is far behind would not catch up while the group waits for it.
// Without a pipeline raft sends all that is missing.
func (t transport) AppendEntriesPipeline(id raft.ServerID, at raft.ServerAddress) (raft.AppendPipeline, error) {
	if t.peers.behind(id, t.last()) {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	if !t.speaksWith(id) {
		return nil, ErrNotTrusted
	}
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, at)
	if err != nil {
		return nil, err
	}
	bounded := &boundedPipeline{p, t, id, make(chan raft.AppendFuture), make(chan struct{})}
	go bounded.pass()
	return bounded, nil
}

// stored notes that a replica has stored the entries of a call.
func (t transport) stored(id raft.ServerID, call *raft.AppendEntriesRequest) {
	t.peers.stored(id, call.Term, call.PrevLogEntry+uint64(len(call.Entries)), time.Now())
}

// boundedPipeline closes a pipeline that takes no entries for too long. In raft, what reads the
// answers ends at the first that names a later term, and a pipeline that is full then waits for it
// for ever: neither Shutdown nor a rebuild of the replica would end. It also notes what is stored.
type boundedPipeline struct {
	raft.AppendPipeline
	of      transport
	to      raft.ServerID
	answers chan raft.AppendFuture
	closed  chan struct{} // by Close, which raft calls once
}

func (p *boundedPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// pass passes answers on to raft until the pipeline is closed.
func (p *boundedPipeline) pass() {
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			if !p.of.speaksWith(p.to) {
				continue
			}
			if answer.Error() == nil && answer.Response().Success {
				p.of.stored(p.to, answer.Request())
			}
			select {
			case p.answers <- answer:
			case <-p.closed:
				return
			}
		case <-p.closed:
			return
		}
	}
}

func (p *boundedPipeline) Close() error {
	close(p.closed)
	return p.AppendPipeline.Close()
}

// AppendEntries implements raft.AppendPipeline.
func (p *boundedPipeline) AppendEntries(
	call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if isClosed(p.of.ended) || !p.of.speaksWith(p.to) {
		return nil, raft.ErrPipelineShutdown
	}
	stuck := time.AfterFunc(p.of.patience, func() { p.AppendPipeline.Close() })
	defer stuck.Stop()
	return p.AppendPipeline.AppendEntries(call, reply)
}

// AppendEntries implements raft.Transport. After each failure raft waits twice as long, up to 10 s,
// and a replica that is back gets nothing meanwhile: if another one ends then, the group stands
// still. So raft hears of a failure only when there is nothing to send any more, or when it has to
// do something else.
func (t transport) AppendEntries(
	id raft.ServerID, at raft.ServerAddress, call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) error {
	for {
		if isClosed(t.ended) {
			return raft.ErrTransportShutdown
		}
		err := t.ask(id, func() error { return t.NetworkTransport.AppendEntries(id, at, call, reply) })
		heartbeat := len(call.Entries) == 0 && call.PrevLogEntry == 0 // raft repeats it
		switch {
		case err != nil || !reply.Success:
		case heartbeat:
			t.peers.answered(id, time.Now())
		default:
			t.stored(id, call)
		}
		if err == nil || heartbeat || !t.again(call.Term, id) {
			return err
		}
		*reply = raft.AppendEntriesResponse{}
	}
}

// errNotSent has raft look again what a replica needs.
var errNotSent = errors.New("the replica has not answered for a while: the snapshot may be out of date")

// InstallSnapshot implements raft.Transport. It waits until the replica answers heartbeats, as raft
// would wait for up to 10 s after failures. Raft then opens the latest snapshot: this one may be
// hours old, and the log after it gone.
func (t transport) InstallSnapshot(
	id raft.ServerID, at raft.ServerAddress, call *raft.InstallSnapshotRequest, reply *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	answers := func() bool { return t.peers.answeredWithin(id, t.patience) }
	if !answers() {
		for t.again(call.Term, id) && !answers() {
		}
		return errNotSent
	}
	return t.ask(id, func() error { return t.snapshots.InstallSnapshot(id, at, call, reply, data) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// maxResendPause is the longest time between attempts to send entries.
const maxResendPause = 100 * time.Millisecond

// sendAgain reports, after a short wait, whether entries of a term are still to be sent to a
// replica that could not be reached.
func (g *Group) sendAgain(run *running, term uint64, to raft.ServerID) bool {
	if !run.sleep(min(g.options.Timeout/10, maxResendPause)) {
		return false
	}
	r := run.started.Load()
	if r == nil || r.State() != raft.Leader || r.CurrentTerm() != term {
		return false
	}
	if run.transfers.Load() { // raft ends the transfer only when it can send something else
		return false
	}
	return slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.ID == to
	})
}

// Raft finds no entry before the first of its log, even if a snapshot ends there. A leader that has
// sent a snapshot and does not hear that the entries after it are stored sends them again, and a
// follower whose log begins there would refuse them, whatever it is sent next: another snapshot,
// and so on for ever. What a snapshot covers is committed, so the entries after it fit: prefixed
// tells raft that they begin the log.
type prefixed struct {
	transport
	calls chan raft.RPC
}

func (p prefixed) Consumer() <-chan raft.RPC { return p.calls }

// waiting is a call that raft has not taken yet.
type waiting struct {
	call  raft.RPC
	since time.Time
}

// errLate answers entries that nobody waits for any more.
var errLate = errors.New("the replica is busy: its disk may hang")

// pass passes calls on to raft until that ends. If the disk hangs, raft takes none, and the leader
// sends its entries again and again: all but the latest would stay in memory.
func (p prefixed) pass(f files, ended <-chan struct{}) {
	var queue []waiting
	for {
		var to chan<- raft.RPC // nil: no call waits
		var first raft.RPC
		if len(queue) > 0 {
			to, first = p.calls, queue[0].call
			if a, ok := first.Command.(*raft.AppendEntriesRequest); ok && endsSnapshot(f, a) {
				a.PrevLogEntry, a.PrevLogTerm = 0, 0
			}
		}
		select {
		case call := <-p.transport.Consumer():
			if !p.admits(call) {
				go refuse(call)
				continue
			}
			queue = append(p.dropLate(queue), waiting{call, time.Now()})
		case to <- first:
			queue = slices.Delete(queue, 0, 1)
		case <-ended:
			return
		}
	}
}

// dropLate drops entries that have waited for longer than an answer may take.
func (p prefixed) dropLate(queue []waiting) []waiting {
	return slices.DeleteFunc(queue, func(w waiting) bool {
		_, entries := w.call.Command.(*raft.AppendEntriesRequest)
		late := entries && time.Since(w.since) > p.patience
		if late {
			w.call.Respond(nil, errLate)
		}
		return late
	})
}

// endsSnapshot reports whether entries follow the last snapshot, and the log begins there.
func endsSnapshot(f files, a *raft.AppendEntriesRequest) bool {
	first, err := f.log.FirstIndex()
	if err != nil || first == 0 || a.PrevLogEntry != first-1 {
		return false
	}
	list, err := f.snapshots.List()
	return err == nil && len(list) > 0 && list[0].Index == a.PrevLogEntry && list[0].Term == a.PrevLogTerm
}

// logger passes what raft logs to the server's log, as debugging: it repeats each failed attempt to
// reach a node. What operators need to know is logged by Group.
type logger struct {
	hclog.Logger // that logs nothing: for what raft does not call
	to           *slog.Logger
	args         []any
	logged       func(message string)
}

func newLogger(to *slog.Logger, logged func(message string)) *logger {
	return &logger{hclog.NewNullLogger(), to, nil, logged}
}

// quiet is the level of what helps only who debugs raft itself.
const quiet = slog.LevelDebug - 4

func (l *logger) log(level slog.Level, msg string, args []any) {
	l.logged(msg)
	l.to.Log(context.Background(), level, "raft: "+msg, append(args, l.args...)...)
}

func (l *logger) Trace(msg string, args ...any) { l.log(quiet, msg, args) }
func (l *logger) Debug(msg string, args ...any) { l.log(quiet, msg, args) }
func (l *logger) Info(msg string, args ...any)  { l.log(slog.LevelDebug, msg, args) }
func (l *logger) Warn(msg string, args ...any)  { l.log(slog.LevelDebug, msg, args) }
func (l *logger) Error(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{l.Logger, l.to, slices.Concat(l.args, args), l.logged}
}
