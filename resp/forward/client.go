package forward

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"rlserver/resp/wire"
)

// Limits of a batch.
const (
	maxCalls = 128
	maxBytes = 16 << 10
	// number of nodes for which a client keeps buffers between batches
	maxKeptNodes = 8
)

// Outcome is the outcome of a forwarded call.
type Outcome int

const (
	Answered Outcome = iota // the reply is appended
	Unknown                 // it may have been carried out
	// it was not carried out: no node leads the group, or none could be reached
	NoLeader
	TooMany // it was not carried out: too many links are in use
	Left    // the client has disconnected
)

// ErrLeft is the error of Client.Gone after the client has disconnected.
var ErrLeft = errors.New("the client has left")

var errUnreachable = errors.New("the node was not heard for a while")

// Call is a forwarded call.
type Call struct {
	Node  string // supposed leader of the group
	Group int
	// Replies is the number of replies of the other node, of which only the last one is the reply
	// of the call, as for a transaction; 0: one.
	Replies int
	Keeps   bool // it needs its link for longer than a batch

	watches bool // keys: its link is kept when it is answered
}

// pending is a call of the batch.
type pending struct {
	Call
	out        *outbox
	start, end int // of the request
}

// outbox has the calls of a batch for one node.
type outbox struct {
	node   string
	link   *link // nil: the calls could not be sent
	buf    []byte
	failed bool // a reply could not be read: the following ones are unknown
}

// waitingCall is a call that waits on another node. link is the name that its link has for this
// call.
type waitingCall struct{ node, link string }

// Client forwards the calls of one client. Only the goroutine of the client may use it.
type Client struct {
	Pool *Pool
	// Gone returns ErrLeft if the client has disconnected, so that its calls need no reply. It is
	// called at intervals while a call waits.
	Gone func() error

	calls []pending
	out   []*outbox
	bytes int
	until time.Time // end of the hold time of the calls since Begin; zero: no call was held yet

	waits atomic.Pointer[waitingCall] // nil: no call waits

	kept      *link // link of the watched keys
	keptGroup int
}

// Begin begins the hold time of a batch: all of its calls together are held no longer than one
// call.
func (c *Client) Begin() { c.until = time.Time{} }

// HeldUntil returns until when a call may wait for a leader.
func (c *Client) HeldUntil() time.Time {
	if c.until.IsZero() {
		c.until = time.Now().Add(c.Pool.options.Hold)
	}
	return c.until
}

// Node returns the node to which the batch has calls on a group, or "". Later calls on the group
// must not overtake them.
func (c *Client) Node(group int) string {
	for i := range c.calls {
		if c.calls[i].Group == group {
			return c.calls[i].Node
		}
	}
	return ""
}

// Pending returns the number of calls of the batch that were not collected.
func (c *Client) Pending() int { return len(c.calls) }

// Fits reports whether a call of this size can join the batch. Otherwise it has to be sent alone,
// or after Done.
func (c *Client) Fits(bytes int) bool { return len(c.calls) < maxCalls && c.bytes+bytes <= maxBytes }

// Small reports whether a call of this size can be part of a batch.
func Small(bytes int) bool { return bytes <= maxBytes/4 }

// Add adds a call to the batch. It returns the number of the call, for Collect.
func (c *Client) Add(call Call, words [][]byte) int {
	at := slices.IndexFunc(c.out, func(o *outbox) bool { return o.node == call.Node })
	if at < 0 {
		at = len(c.out)
		c.out = append(c.out, &outbox{node: call.Node})
	}
	o := c.out[at]
	start := len(o.buf)
	o.buf = AppendCall(o.buf, words)
	c.bytes += len(o.buf) - start
	c.calls = append(c.calls, pending{call, o, start, len(o.buf)})
	return len(c.calls) - 1
}

// Send sends the batch. Collect sends calls that could not be sent.
func (c *Client) Send(as Caller) {
	slices.SortFunc(c.out, func(a, b *outbox) int { return cmp.Compare(a.node, b.node) })
	for _, o := range c.out {
		if len(o.buf) == 0 {
			continue
		}
		l, err := c.Pool.borrow(o.node, forBatch, c.Pool.options.Hold)
		if err != nil {
			continue
		}
		l.client, o.link = c, l
		for i := range c.calls {
			if c.calls[i].out == o {
				l.unread++
			}
		}
		c.Pool.Calls.Add(int64(l.unread))
		if l.announce(as, c.Pool.options.Hold) != nil { // no call has left
			l.broken, o.link = true, nil
			c.Pool.giveBack(l, forBatch)
			continue
		}
		o.failed = l.send(o.buf, c.Pool.options.Hold) != nil // a part of it may have arrived
	}
}

// Collect appends the reply of a call of the batch. It must be called for each call, in order.
func (c *Client) Collect(number int, as Caller, r *wire.Reply) Outcome {
	call := &c.calls[number]
	o := call.out
	if o.link != nil {
		if o.failed {
			return c.unknown(o.link, nil)
		}
		refused, err := o.link.read(r)
		if err != nil {
			o.failed = true
			return c.unknown(o.link, err)
		}
		if !refused {
			return Answered
		}
	}
	return c.again(&call.Call, o.buf[call.start:call.end], as, r, forRetry, nil)
}

// unknown returns the outcome of a call whose reply could not be read, when the call cannot begin
// to run any more.
func (c *Client) unknown(l *link, err error) Outcome {
	if errors.Is(err, ErrLeft) || c.giveUp(l) != nil {
		return Left
	}
	c.Pool.Unknown.Add(1)
	return Unknown
}

// giveUp returns when no call on a link can begin to run at the other node, or the client has
// disconnected: when the node knows that the epoch of the link has ended, does not listen because
// its process has ended, or was not heard for long enough.
func (c *Client) giveUp(l *link) error {
	const interval = 5 * time.Millisecond
	l.broken = true
	l.conn.Close()
	nodes, node := c.Pool.options.Nodes, l.peer.node
	for tries := 0; !nodes.Over(node, l.epoch); tries++ {
		nodes.End(node, l.epoch)
		if tries%8 == 0 {
			conn, err := nodes.DialNode(node)
			if errors.Is(err, syscall.ECONNREFUSED) {
				return nil
			}
			if err == nil {
				conn.Close()
			}
		}
		if err := c.Gone(); err != nil {
			return err
		}
		time.Sleep(interval)
	}
	return nil
}

// Done ends the batch.
func (c *Client) Done() {
	// largest buffer in bytes, and largest list of calls, that are kept for the next batch
	const kept = 1 << 10
	for _, o := range c.out {
		if o.link != nil {
			c.Pool.giveBack(o.link, forBatch)
		}
		if o.link, o.failed, o.buf = nil, false, o.buf[:0]; cap(o.buf) > kept {
			o.buf = nil
		}
	}
	if len(c.out) > maxKeptNodes {
		c.out = nil
	}
	clear(c.calls)
	if c.calls = c.calls[:0]; cap(c.calls) > kept/64 {
		c.calls = nil
	}
	c.bytes = 0
}

// Do sends one call alone, and appends its reply. If wait is not nil, it is called before the reply
// is read, with a function that returns when the reply begins to arrive. There must be no batch.
func (c *Client) Do(call Call, request []byte, as Caller, r *wire.Reply, wait func(arrives func()) error) Outcome {
	c.Pool.Calls.Add(1)
	why := forBatch
	if call.Keeps {
		why = forKeeping
	}
	refused, outcome := c.try(&call, request, as, r, why, wait)
	if !refused {
		return outcome
	}
	return c.again(&call, request, as, r, why, wait)
}

// try sends a call to call.Node, and appends its reply. refused reports that the call was not
// carried out.
func (c *Client) try(
	call *Call, request []byte, as Caller, r *wire.Reply, why use, wait func(func()) error,
) (refused bool, outcome Outcome) {
	patience := c.Pool.options.Hold
	if why == forKeeping {
		patience = 0
	}
	l, err := c.Pool.borrow(call.Node, why, patience)
	switch {
	case err == errBusy && why == forKeeping:
		c.Pool.Failed.Add(1)
		return false, TooMany
	case err != nil:
		return true, 0
	}
	defer func() {
		if c.kept != l {
			c.Pool.giveBack(l, why)
		}
	}()
	refused, outcome = c.exchange(l, call, request, as, r, wait)
	if call.watches && !refused && outcome == Answered {
		c.kept, c.keptGroup = l, call.Group
	}
	return refused, outcome
}

// exchange sends a call on a link, and appends its reply.
func (c *Client) exchange(
	l *link, call *Call, request []byte, as Caller, r *wire.Reply, wait func(func()) error,
) (refused bool, outcome Outcome) {
	l.client = c
	replies := max(call.Replies, 1)
	l.unread += replies
	if wait != nil {
		l.rename()
	}
	if err := l.announce(as, c.Pool.options.Hold); err != nil {
		l.broken = true
		return true, 0
	}
	sent := make(chan error, 1)
	if replies > 1 && len(request) > maxBytes { // its first replies arrive before all of it is sent
		go func() { sent <- l.send(request, c.Pool.options.Hold) }()
	} else {
		sent <- l.send(request, c.Pool.options.Hold)
	}
	if wait != nil {
		if err := c.wait(l, wait); err != nil {
			l.broken = true
			return false, c.unknown(l, ErrLeft)
		}
	}
	refused, err := l.readLast(r, replies)
	if err != nil {
		l.conn.Close() // stops the sending goroutine
	}
	if failed := <-sent; err == nil && failed != nil {
		err = failed
	}
	if err != nil {
		l.broken = true
		return false, c.unknown(l, err)
	}
	return refused, Answered
}

// readLast reads a number of replies, and appends the last one. refused reports that one of them
// was a refusal.
func (l *link) readLast(r *wire.Reply, replies int) (refused bool, err error) {
	for ; replies > 1; replies-- {
		var one wire.Reply
		no, err := l.read(&one)
		if err != nil {
			return false, err
		}
		refused = refused || no
	}
	mark := len(r.B)
	no, err := l.read(r)
	if refused && err == nil {
		r.B = r.B[:mark]
	}
	return refused || no, err
}

// wait waits for the reply on a link with the wait function of the client: until the reply arrives,
// or the client has disconnected.
func (c *Client) wait(l *link, wait func(arrives func()) error) error {
	arrived := make(chan struct{})
	c.waits.Store(&waitingCall{l.peer.node, l.name})
	defer c.waits.Store(nil)
	err := wait(func() {
		l.in.Peek(1) // reading the reply returns the same error
		close(arrived)
	})
	if err != nil {
		l.conn.Close()
	}
	<-arrived
	return err
}

// retryInterval is the delay before a call is sent again to a node that has refused it. It doubles
// a few times.
const retryInterval = 10 * time.Millisecond

// again sends a refused call to the node that leads the group, until the hold time is over.
func (c *Client) again(
	call *Call, request []byte, as Caller, r *wire.Reply, why use, wait func(func()) error,
) (outcome Outcome) {
	if held := c.Pool.options.Held; held != nil && !call.watches {
		release := held(call.Group)
		defer func() { release(outcome == NoLeader) }()
	}
	for tries := 0; ; tries++ {
		if outcome := c.next(call, tries); outcome != Answered {
			return outcome
		}
		if refused, outcome := c.try(call, request, as, r, why, wait); !refused {
			return outcome
		}
	}
}

// next finds the node for a refused call. After the first attempt it waits before that. If the
// outcome is not Answered, the call must not be sent again.
func (c *Client) next(call *Call, tries int) Outcome {
	until := c.HeldUntil()
	for ; ; tries++ {
		if tries > 0 {
			pause := min(retryInterval<<min(tries-1, 3), c.Pool.options.Hold/8)
			if time.Until(until) < pause {
				c.Pool.Failed.Add(1)
				return NoLeader
			}
			time.Sleep(pause)
		}
		if c.Gone() != nil {
			return Left
		}
		ctx, cancel := context.WithDeadline(context.Background(), until)
		node, err := c.Pool.options.Nodes.Leader(ctx, call.Group)
		cancel()
		if err == nil {
			call.Node = node
			c.Pool.Again.Add(1)
			return Answered
		}
	}
}

// Unblock ends the wait of a call of the client, if one waits. how is the last argument of
// forward.Unblock. It reports whether a call waited. Any goroutine may call it.
func (c *Client) Unblock(how string, as Caller) bool {
	w := c.waits.Load()
	if w == nil {
		return false
	}
	own := Client{Pool: c.Pool, Gone: func() error { return nil }}
	var r wire.Reply
	request := AppendCall(nil, [][]byte{[]byte(Unblock), []byte(w.link), []byte(how)})
	refused, outcome := own.try(&Call{Node: w.node}, request, as, &r, forRetry, nil)
	return !refused && outcome == Answered && string(r.B) == ":1\r\n"
}

// checkWait returns an error if waiting for a reply makes no sense any more.
func (c *Client) checkWait(l *link) error {
	if err := c.Gone(); err != nil {
		return err
	}
	// that the epoch has ended, for another link, is no reason: the node refuses calls of it that
	// have not begun, and they are sent again
	if !c.Pool.options.Nodes.Reachable(l.peer.node) {
		return errUnreachable
	}
	return nil
}

// Watches reports whether keys are watched on another node, and their group.
func (c *Client) Watches() (group int, yes bool) { return c.keptGroup, c.kept != nil }

// Watch sends a call that watches keys, and keeps its link. Keys that are watched already must be
// of the same group and on the same node.
func (c *Client) Watch(call Call, request []byte, as Caller, r *wire.Reply) Outcome {
	if c.kept != nil {
		c.Pool.Calls.Add(1)
		refused, outcome := c.exchange(c.kept, &call, request, as, r, nil)
		if refused { // the watch is lost, which EXEC reports
			c.kept.broken, outcome = true, Unknown
		}
		return outcome
	}
	call.Keeps, call.watches = true, true
	return c.Do(call, request, as, r, nil)
}

// DoWatched sends a transaction to the node that watches its keys, and ends the watch. aborted
// reports that the node no longer leads them, so it is unknown whether they have changed.
func (c *Client) DoWatched(call Call, request []byte, as Caller, r *wire.Reply) (aborted bool, outcome Outcome) {
	l := c.kept
	c.kept = nil
	defer c.Pool.giveBack(l, forKeeping)
	if l.broken || !l.alive() {
		l.broken = true
		return true, Answered
	}
	c.Pool.Calls.Add(1)
	return c.exchange(l, &call, request, as, r, nil)
}

// Unwatch ends the watch by closing the link.
func (c *Client) Unwatch() {
	if c.kept != nil {
		c.kept.broken = true
		c.Pool.giveBack(c.kept, forKeeping)
		c.kept = nil
	}
}

// Close returns all links of the client.
func (c *Client) Close() {
	c.Done()
	c.Unwatch()
}
