// Package wanted tells a node whether calls that another node has sent to it are still wanted.
//
// A node answers a client whose call it has sent to another node and whose reply does not come. The
// call must not begin to run afterwards: it may lie in a queue of a process that is stopped, or of
// the network. So a call runs only while its sender is known to wait for it, by a lease:
//
//	runs the calls            has sent them
//	      -- stamp: its clock -->            each node to each other one, all the time
//	      <- echo of the stamp, epoch --     the latest stamp, and which calls are wanted
//
// The echo of a stamp S lets calls of the epoch begin until the clock of their node shows S plus a
// length. Their sender gives up an epoch when it has received no stamp for a third longer than
// that: each of its echoes has ended by then, however long it was on its way, and calls that are
// sent later are of the next epoch. Only the rates of the two clocks have to agree, by a third.
//
// When a connection with calls breaks, End ends the epoch at once: the other node refuses its calls
// when it learns of the next epoch, and reports so, which is faster than to wait for the end. Calls
// of the epoch on other connections are not given up for that: the other node replies to them, and
// those that it refuses are sent again.
package wanted

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Stamp is the clock of a process.
type Stamp struct {
	Process uint64        // a random number
	At      time.Duration // since the process has started
}

// Epoch names the calls that a process has sent to another until it has given them up.
type Epoch struct{ Process, Number uint64 }

// Message is what a node sends to another.
type Message struct {
	Stamp  Stamp
	Echo   Stamp         // the latest that the other node has sent
	Epoch  Epoch         // of the calls that are wanted there
	For    time.Duration // for how long after Echo
	Serves Epoch         // of the calls of the other node that run here
}

// Table has what a node and the others have sent to each other. Its methods are safe for concurrent
// use.
type Table struct {
	process uint64
	start   time.Time
	length  time.Duration
	name    string // of this node

	mu    sync.Mutex
	peers map[string]*peer
}

// peer is another node.
type peer struct {
	// calls that were sent there
	epoch    Epoch
	stamp    Stamp     // the latest
	received time.Time // when; zero: never
	served   Epoch     // of the calls that run there
	expires  time.Time // when the calls of earlier epochs cannot begin any more

	// calls that have come from there
	wanted Epoch
	until  time.Time
}

// New returns the table of a node. length is how long after a stamp calls may begin.
func New(name string, length time.Duration, now time.Time) *Table {
	return &Table{
		process: rand.Uint64(), start: now, length: length, name: name, peers: make(map[string]*peer),
	}
}

// peer returns what is known about a node. t.mu is held.
func (t *Table) peer(node string) *peer {
	p := t.peers[node]
	if p == nil {
		p = &peer{epoch: Epoch{t.process, 1}}
		t.peers[node] = p
	}
	return p
}

// Send returns what this node sends to another now.
func (t *Table) Send(node string, now time.Time) Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(node)
	return Message{
		Stamp: Stamp{t.process, now.Sub(t.start)}, Echo: p.stamp, Epoch: p.epoch, For: t.length, Serves: p.wanted,
	}
}

// Receive notes what another node has sent.
func (t *Table) Receive(node string, m Message, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(node)
	if m.Stamp.Process == p.stamp.Process && m.Stamp.At < p.stamp.At {
		return // a later message has overtaken it
	}
	p.stamp, p.received, p.served = m.Stamp, now, m.Serves
	if p.wanted != m.Epoch {
		p.wanted, p.until = m.Epoch, time.Time{}
	}
	if m.Echo.Process == t.process {
		if until := t.start.Add(m.Echo.At + m.For); until.After(p.until) {
			p.until = until
		}
	}
}

// giveUp is how long after the latest stamp calls are given up.
func (t *Table) giveUp() time.Duration { return t.length + t.length/3 }

// Epoch returns the name of the epoch of calls that are sent to a node now, for Wanted there. Calls
// of this node to itself have none, as they are always wanted.
func (t *Table) Epoch(node string) string {
	if node == t.name {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epochOf(t.peer(node))
}

func (t *Table) epochOf(p *peer) string {
	return strconv.FormatUint(p.epoch.Process, 36) + "." + strconv.FormatUint(p.epoch.Number, 36) + "." + t.name
}

// Reachable reports whether a node has reported lately, which this node always is: while it is, a
// call there is answered or refused, also when its epoch has ended.
func (t *Table) Reachable(node string, now time.Time) bool {
	if node == t.name {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Sub(t.peer(node).received) < t.giveUp()
}

// Over reports whether calls of an epoch cannot begin any more at a node. That ends the epoch.
func (t *Table) Over(node, epoch string, now time.Time) bool {
	if epoch == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(node)
	current := t.epochOf(p) == epoch
	if now.Sub(p.received) >= t.giveUp() {
		if current {
			p.end(now)
		}
		return true
	}
	return !current && (p.served == p.epoch || !now.Before(p.expires))
}

// End ends an epoch, if it is the current one, and reports that: calls that are sent later are of
// the next one.
func (t *Table) End(node, epoch string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(node)
	if t.epochOf(p) != epoch {
		return false
	}
	p.end(p.received.Add(t.giveUp()))
	return true
}

func (p *peer) end(expires time.Time) {
	p.epoch.Number++
	p.expires = expires
}

// Wanted returns a function that reports whether calls of an epoch, which another node has sent,
// may begin now; nil if they always may.
func (t *Table) Wanted(epoch string) func(now time.Time) bool {
	process, rest, _ := strings.Cut(epoch, ".")
	number, node, named := strings.Cut(rest, ".")
	if !named {
		return nil
	}
	var e Epoch
	e.Process, _ = strconv.ParseUint(process, 36, 64)
	e.Number, _ = strconv.ParseUint(number, 36, 64)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(node)
	return func(now time.Time) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return p.wanted == e && now.Before(p.until)
	}
}
