package group

import (
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A replica that answers need not be able to store anything: its disk may hang. What counts is that
// it has acknowledged an entry that is later than the question.

// peers is what a leader knows of the other replicas.
type peers struct {
	mu    sync.Mutex
	term  uint64 // in which this replica leads, or has led last
	begun uint64 // index of the barrier of that leadership
	of    map[raft.ServerID]*peer
}

type peer struct {
	answered time.Time // when it has last answered
	term     uint64    // of the leader that it has last acknowledged an entry to
	// index of the last entry that it has acknowledged in that term: it has stored it
	last uint64
	lag  lag // of what it has acknowledged, behind the end of the leader's log
	// since when it has kept up, as far as the leader knows; zero: it does not
	keepsUpSince time.Time
}

func (p *peers) get(id raft.ServerID) *peer {
	if p.of == nil {
		p.of = make(map[raft.ServerID]*peer)
	}
	if p.of[id] == nil {
		p.of[id] = new(peer)
	}
	return p.of[id]
}

// answered notes that a replica has answered.
func (p *peers) answered(id raft.ServerID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.get(id).answered = now
}

// stored notes that a replica has acknowledged the entries up to an index, to the leader of a term.
func (p *peers) stored(id raft.ServerID, term, index uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.get(id)
	of.answered = now
	if term > of.term {
		of.term, of.last = term, 0
		of.lag.reset()
	}
	of.last = max(of.last, index)
}

// answeredWithin reports whether a replica has answered a short time ago.
func (p *peers) answeredWithin(id raft.ServerID, d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.get(id).answered) <= d
}

// behind reports whether a replica lacks more than a message before an entry.
func (p *peers) behind(id raft.ServerID, index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(id).last+maxAppended < index
}

// has reports whether a replica has acknowledged an entry in a term.
func (p *peers) has(id raft.ServerID, term, index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.get(id)
	return of.term == term && of.last >= index
}

// begin notes that this replica leads.
func (p *peers) begin(term, barrier uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.term, p.begun = term, barrier
	for _, of := range p.of {
		of.keepsUpSince = time.Time{}
		of.lag.reset()
	}
}

// prune forgets the replicas that are no members any more.
func (p *peers) prune(members []Server) {
	known := make(map[raft.ServerID]bool, len(members))
	for _, s := range members {
		known[raft.ServerID(s.ID.String())] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(id raft.ServerID, _ *peer) bool { return !known[id] })
}

// tick notes the end of the leader's log. A replica keeps up if it lacks nothing for longer than a
// duration.
func (p *peers) tick(last uint64, now time.Time, within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.of {
		of.lag.note(last, now)
		switch keeps := p.keepsUpLocked(of, now, within); {
		case !keeps:
			of.keepsUpSince = time.Time{}
		case of.keepsUpSince.IsZero():
			of.keepsUpSince = now
		}
	}
}

// keepsUp reports whether a replica has stored all but the latest entries of the present leader.
func (p *peers) keepsUp(id raft.ServerID, now time.Time, within time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keepsUpLocked(p.get(id), now, within)
}

func (p *peers) keepsUpLocked(of *peer, now time.Time, within time.Duration) bool {
	if of.term != p.term || of.last < p.begun {
		return false
	}
	_, missing := of.lag.behind(of.last, of.last, of.last, now)
	return missing <= within
}

// keptUp returns for how long a replica has kept up, 0 if it does not.
func (p *peers) keptUp(id raft.ServerID, now time.Time, within time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.get(id)
	if of.keepsUpSince.IsZero() || !p.keepsUpLocked(of, now, within) {
		return 0
	}
	return now.Sub(of.keepsUpSince)
}

// KeepUp returns the members that store what this replica proposes, itself among them: they lack no
// entry for longer than Options.Timeout. It returns nil if this replica does not lead.
func (g *Group) KeepUp() (list []ReplicaID) {
	if _, err := g.Leading(); err != nil {
		return nil
	}
	run, now := g.running.Load(), time.Now()
	for _, s := range serversOf(run) {
		if s.ID == g.ID() || run.peers.keepsUp(raft.ServerID(s.ID.String()), now, g.options.Timeout) {
			list = append(list, s.ID)
		}
	}
	return list
}

// KeptUp returns for how long a replica has kept up with this one, which leads: 0 if it does not.
func (g *Group) KeptUp(id ReplicaID) time.Duration {
	return g.running.Load().peers.keptUp(raft.ServerID(id.String()), time.Now(), g.options.Timeout)
}
