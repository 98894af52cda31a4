package forward

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"rlserver/resp/wire"
)

// The bounds of a batch.
const (
	maxCalls = 128
	maxBytes = 16 << 10
	// mostNodes is for how many nodes a client keeps buffers between batches
	mostNodes = 8
)

// Outcome says how a call that was passed on has ended.
type Outcome int

const (
	Answered Outcome = iota // the reply is appended
	Unknown                 // it was carried out or not
	// it was not carried out: no node leads the group, or none could be reached
	NoLeader
	TooMany // it was not carried out: too many links are kept
	Left    // the client has left meanwhile
)

// ErrLeft is what Client.Gone is to return when the client has left.
var ErrLeft = errors.New("the client has left")

var errUnreachable = errors.New("the node was not heard for a while")

// Call is a call that is passed on.
type Call struct {
	Node  string // that is said to lead the group
	Group int
	// Replies is how many replies the other node gives, of which only the last is the call's, as
	// that of a transaction; 0: one.
	Replies int
	Keeps   bool // its link is kept longer than a batch takes
}

// pending is a call of the batch.
type pending struct {
	Call
	out        *outbox
	start, end int // of the request
}

// outbox is what a batch sends to one node.
type outbox struct {
	node   string
	link   *link // nil: it could not be sent
	buf    []byte
	failed bool // a reply could not be read: the following ones are unknown
}

// Client passes on the calls of one client. It belongs to the goroutine of the client.
type Client struct {
	Pool *Pool
	// Gone returns ErrLeft if the client has left: its calls need no reply. It is asked now and
	// then.
	Gone func() error

	calls []pending
	out   []*outbox
	bytes int
	until time.Time // how long calls are held, since Begin; zero: none had to be yet

	waits atomic.Pointer[link] // on which a call waits; nil: none does

	kept      *link // of the keys that are watched
	keptGroup int
}

// Begin is called before the calls that a client has sent together: all of them are held no longer
// than one.
func (c *Client) Begin() { c.until = time.Time{} }

// HeldUntil returns how long a call may wait for a leader.
func (c *Client) HeldUntil() time.Time {
	if c.until.IsZero() {
		c.until = time.Now().Add(c.Pool.options.Hold)
	}
	return c.until
}

// Node returns where the calls of the batch on a group go, "" if there are none: those that follow
// must not overtake them.
func (c *Client) Node(group int) string {
	for i := range c.calls {
		if c.calls[i].Group == group {
			return c.calls[i].Node
		}
	}
	return ""
}

// Pending returns how many calls of the batch wait to be sent or collected.
func (c *Client) Pending() int { return len(c.calls) }

// Fits reports whether a call of so many bytes can join the batch. It has to be sent alone
// otherwise, or after Done.
func (c *Client) Fits(bytes int) bool { return len(c.calls) < maxCalls && c.bytes+bytes <= maxBytes }

// Small reports whether a call of so many bytes can be part of any batch.
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

// Send sends the batch. What cannot be sent now is sent by Collect.
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
		// after an error some of it may have arrived
		o.failed = l.tell(as, c.Pool.options.Hold) != nil || l.send(o.buf, c.Pool.options.Hold) != nil
	}
}

// Collect appends the reply of a call of the batch. It is called for each call, in order.
func (c *Client) Collect(number int, as Caller, r *wire.Reply) Outcome {
	call := &c.calls[number]
	o := call.out
	if o.link != nil {
		if o.failed {
			return c.unknown(nil)
		}
		refused, err := o.link.read(r)
		if err != nil {
			o.failed = true
			return c.unknown(err)
		}
		if !refused {
			return Answered
		}
	}
	return c.again(&call.Call, o.buf[call.start:call.end], as, r, forRetry, nil)
}

// unknown returns the outcome of a call whose reply could not be read.
func (c *Client) unknown(err error) Outcome {
	if errors.Is(err, ErrLeft) {
		return Left
	}
	c.Pool.Unknown.Add(1)
	return Unknown
}

// Done ends the batch.
func (c *Client) Done() {
	const kept = 1 << 10 // bytes of a buffer, and calls, that a client keeps until its next batch
	for _, o := range c.out {
		if o.link != nil {
			c.Pool.giveBack(o.link, forBatch)
		}
		if o.link, o.failed, o.buf = nil, false, o.buf[:0]; cap(o.buf) > kept {
			o.buf = nil
		}
	}
	if len(c.out) > mostNodes {
		c.out = nil
	}
	clear(c.calls)
	if c.calls = c.calls[:0]; cap(c.calls) > kept/64 {
		c.calls = nil
	}
	c.bytes = 0
}

// Do sends one call alone, and appends its reply. wait is called between the two, with a function
// that returns when the reply begins to arrive; nil: it is read at once. There is no batch.
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
	defer c.Pool.giveBack(l, why)
	return c.exchange(l, call, request, as, r, wait)
}

// exchange sends a call on a link, and appends its reply.
func (c *Client) exchange(
	l *link, call *Call, request []byte, as Caller, r *wire.Reply, wait func(func()) error,
) (refused bool, outcome Outcome) {
	l.client = c
	replies := max(call.Replies, 1)
	l.unread += replies
	if err := l.tell(as, c.Pool.options.Hold); err != nil {
		l.broken = true
		return true, 0
	}
	sent := make(chan error, 1)
	if replies > 1 && len(request) > maxBytes { // its first replies come before it is sent
		go func() { sent <- l.send(request, c.Pool.options.Hold) }()
	} else {
		sent <- l.send(request, c.Pool.options.Hold)
	}
	if wait != nil {
		if err := c.wait(l, wait); err != nil {
			l.broken = true
			return false, c.unknown(ErrLeft)
		}
	}
	refused, err := l.readLast(r, replies)
	if err != nil {
		l.conn.Close() // ends what may still be sent
	}
	if failed := <-sent; err == nil && failed != nil {
		err = failed
	}
	if err != nil {
		l.broken = true
		return false, c.unknown(err)
	}
	return refused, Answered
}

// readLast reads so many replies, and appends the last. refused reports that any of them was a
// refusal.
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

// wait waits for the reply of a link in the way of the client: until it arrives, or the client has
// left.
func (c *Client) wait(l *link, wait func(arrives func()) error) error {
	arrived := make(chan struct{})
	c.waits.Store(l)
	defer c.waits.Store(nil)
	err := wait(func() {
		l.in.Peek(1) // an error returns again when the reply is read
		close(arrived)
	})
	if err != nil {
		l.conn.Close()
	}
	<-arrived
	return err
}

// retryInterval is how long a call waits before it is sent for the second time to a node that has
// refused it. It doubles a few times.
const retryInterval = 10 * time.Millisecond

// again sends a call that was refused to the node that leads the group, until calls are held no
// longer.
func (c *Client) again(
	call *Call, request []byte, as Caller, r *wire.Reply, why use, wait func(func()) error,
) Outcome {
	if held := c.Pool.options.Held; held != nil {
		defer held(call.Group)()
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

// next finds the node that a call is sent to which was refused. After the first time it waits a
// while before that. The outcome is other than Answered if the call is not to be sent again.
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

// Unblock ends the waiting of a call of the client, if one waits, in the way that the other node
// understands. It reports whether one did. Any goroutine may call it.
func (c *Client) Unblock(how string, as Caller) bool {
	l := c.waits.Load()
	if l == nil {
		return false
	}
	own := Client{Pool: c.Pool, Gone: func() error { return nil }}
	var r wire.Reply
	request := AppendCall(nil, [][]byte{[]byte(Unblock), []byte(l.name), []byte(how)})
	refused, outcome := own.try(&Call{Node: l.peer.node}, request, as, &r, forRetry, nil)
	return !refused && outcome == Answered && string(r.B) == ":1\r\n"
}

// keepOn returns why a reply is not to be awaited any longer.
func (c *Client) keepOn(l *link) error {
	if err := c.Gone(); err != nil {
		return err
	}
	if !c.Pool.options.Nodes.Reachable(l.peer.node) {
		return errUnreachable
	}
	return nil
}

// Watches reports whether keys are watched on another node, and of which group they are.
func (c *Client) Watches() (group int, yes bool) { return c.keptGroup, c.kept != nil }

// Watch sends a call that watches keys, and keeps its link. Keys that are watched already are of
// the same group and on the same node.
func (c *Client) Watch(call Call, request []byte, as Caller, r *wire.Reply) Outcome {
	c.Pool.Calls.Add(1)
	if c.kept != nil {
		refused, outcome := c.exchange(c.kept, &call, request, as, r, nil)
		if refused { // its watch is lost, and EXEC says so
			c.kept.broken, outcome = true, Unknown
		}
		return outcome
	}
	for tries := 0; ; tries++ {
		l, err := c.Pool.borrow(call.Node, forKeeping, 0)
		switch err {
		case nil:
			refused, outcome := c.exchange(l, &call, request, as, r, nil)
			if !refused && outcome == Answered {
				c.kept, c.keptGroup = l, call.Group
				return Answered
			}
			c.Pool.giveBack(l, forKeeping)
			if !refused {
				return outcome
			}
		case errBusy:
			c.Pool.Failed.Add(1)
			return TooMany
		}
		if outcome := c.next(&call, tries); outcome != Answered {
			return outcome
		}
	}
}

// DoWatched sends a transaction to the node that watches its keys, and ends watching. aborted
// reports that the node does not lead them any more, so that it cannot know whether they were
// changed.
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

// Unwatch ends watching: the other node forgets it with the link.
func (c *Client) Unwatch() {
	if c.kept != nil {
		c.kept.broken = true
		c.Pool.giveBack(c.kept, forKeeping)
		c.kept = nil
	}
}

// Close returns what the client has borrowed, when it has left.
func (c *Client) Close() {
	c.Done()
	c.Unwatch()
}
