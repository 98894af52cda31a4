package forward

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/cluster/overview"
)

// Nodes finds and connects to other nodes. Any goroutine may call its methods.
type Nodes interface {
	// Leader returns the node that leads a group, which may be this one. It waits for a leader
	// until the context ends.
	Leader(ctx context.Context, group int) (node string, err error)
	// DialNode opens a connection for forwarded calls.
	DialNode(node string) (net.Conn, error)
	// Epoch returns the epoch of the calls that are sent to a node now. It has no spaces. "" if the
	// node is this one.
	Epoch(node string) string
	// Reachable reports whether a node has reported lately: otherwise all calls there are over.
	Reachable(node string) bool
	// Over reports whether calls of an epoch cannot begin any more at a node, because it has not
	// been heard for a while, or it knows that the epoch has ended.
	Over(node, epoch string) bool
	// End ends an epoch: the calls that are sent later are of the next one.
	End(node, epoch string)
}

// Options configure a Pool.
type Options struct {
	Nodes Nodes
	Hold  time.Duration // hold time: how long calls wait for a leader
	// Held counts a call that is sent again, until release is called; may be nil
	Held func(group int) (release func(refused bool))
	// MostLinks limits the links to each node that calls use at the same time, and separately those
	// that waiting calls and watched keys keep.
	MostLinks int
}

const (
	idleTime = 30 * time.Second // unused links are closed after this time
	maxAgain = 64               // links to each node for calls that are sent again
)

var errBusy = errors.New("no link is free")

// Pool has the links to other nodes.
type Pool struct {
	options Options

	Calls   atomic.Int64 // calls that were sent, without those sent again
	Again   atomic.Int64 // calls that were sent again, after a refusal
	Unknown atomic.Int64 // calls whose outcome is unknown
	Failed  atomic.Int64 // calls that found no leader in time, or no link
	Busy    atomic.Int64 // calls for which no link was free
	open    atomic.Int64 // links

	mu    sync.Mutex
	peers map[string]*peer
}

// Counts returns the current counts.
func (p *Pool) Counts() overview.Proxy {
	return overview.Proxy{
		LinksOut: p.open.Load(), Calls: p.Calls.Load(), Again: p.Again.Load(), Unknown: p.Unknown.Load(),
		Failed: p.Failed.Load(), LinkWaits: p.Busy.Load(),
	}
}

// NewPool returns a pool without links.
func NewPool(o Options) *Pool { return &Pool{options: o, peers: make(map[string]*peer)} }

// use is the purpose of a borrowed link. Each has its own limit, so that they do not block each
// other.
type use int

const (
	forBatch use = iota
	forRetry
	forKeeping
)

// peer is another node.
type peer struct {
	pool  *Pool
	node  string
	slots [3]chan struct{} // semaphores of the links in use, by use

	mu    sync.Mutex
	idle  []*link // the most recently used one is the last
	timer bool    // a call of prune is scheduled
}

func (p *Pool) peer(node string) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.peers[node]
	if at == nil {
		at = &peer{pool: p, node: node}
		most := p.options.MostLinks
		for i, n := range []int{most, min(most, maxAgain), most} {
			at.slots[i] = make(chan struct{}, n)
		}
		p.peers[node] = at
	}
	return at
}

// borrow returns a link to a node. If too many are in use, it waits for one up to the given time.
func (p *Pool) borrow(node string, why use, wait time.Duration) (*link, error) {
	at := p.peer(node)
	if err := at.enter(why, wait); err != nil {
		return nil, err
	}
	if l := at.takeIdle(); l != nil {
		return l, nil
	}
	epoch := p.options.Nodes.Epoch(node)
	conn, err := p.options.Nodes.DialNode(node)
	if err != nil {
		at.leave(why)
		return nil, err
	}
	p.open.Add(1)
	return newLink(at, conn, epoch, max(p.options.Hold/8, 20*time.Millisecond)), nil
}

func (at *peer) enter(why use, wait time.Duration) error {
	select {
	case at.slots[why] <- struct{}{}:
		return nil
	default:
	}
	at.pool.Busy.Add(1)
	if wait <= 0 {
		return errBusy
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case at.slots[why] <- struct{}{}:
		return nil
	case <-timer.C:
		return errBusy
	}
}

func (at *peer) leave(why use) { <-at.slots[why] }

// takeIdle returns an idle link that is open and of the current epoch, or nil.
func (at *peer) takeIdle() *link {
	epoch := at.pool.options.Nodes.Epoch(at.node)
	for {
		var l *link
		at.mu.Lock()
		if n := len(at.idle); n > 0 {
			l = at.idle[n-1]
			at.idle = slices.Delete(at.idle, n-1, n)
		}
		at.mu.Unlock()
		if l == nil || l.epoch == epoch && l.alive() {
			return l
		}
		l.close()
	}
}

// giveBack takes a link back. It closes links with unread replies.
func (p *Pool) giveBack(l *link, why use) {
	at := l.peer
	defer at.leave(why)
	l.client = nil
	if l.broken || l.unread > 0 {
		l.close()
		return
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	l.used = time.Now()
	at.idle = append(at.idle, l)
	at.pruneLater()
}

func (at *peer) pruneLater() {
	if !at.timer {
		at.timer = true
		time.AfterFunc(idleTime, at.prune)
	}
}

// prune closes links that were unused for idleTime.
func (at *peer) prune() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.timer = false
	old := 0
	for old < len(at.idle) && time.Since(at.idle[old].used) >= idleTime {
		at.idle[old].close()
		old++
	}
	at.idle = append(at.idle[:0:0], at.idle[old:]...)
	if len(at.idle) > 0 {
		at.pruneLater()
	}
}

func (l *link) close() {
	l.conn.Close()
	l.peer.pool.open.Add(-1)
}

// Close closes the idle links. Others are closed when their sessions end.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.peers {
		at.mu.Lock()
		for _, l := range at.idle {
			l.close()
		}
		at.idle = nil
		at.mu.Unlock()
	}
}
