package resp

import (
	"bufio"
	"bytes"
	"errors"
	"sync/atomic"

	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/commands/clustering"
	"rlserver/resp/forward"
	"rlserver/resp/wire"
)

// Calls that another node has to run are forwarded: those of clients of the proxy port, and calls
// about policies of all clients. The calls of a pipeline are sent together when the batch ends;
// until then a mark has the position of their replies. See package forward.

// role is the kind of client that a session of a node serves.
type role uint8

const (
	ordinary     role = iota // a client that follows MOVED
	proxied                  // a client of the proxy port
	forOtherNode             // another node, which forwards calls
)

// errElsewhere is the error of enter if another node has to run the call: passOn forwards it.
var errElsewhere = errors.New("another node leads the slot")

// errManyKept is the reply to calls that need a link of their own, if there are too many.
const errManyKept = "ERR too many calls wait on other nodes, or keys are watched there: proxy-max-links limits them. " +
	"Connect to the node itself"

// caller describes the client to other nodes.
func (s *session) caller() forward.Caller {
	return forward.Caller{User: s.Account.Name(), RESP3: s.Reply.RESP3, NoTouch: s.NoTouch}
}

// passOn forwards a call for which enter has returned errElsewhere.
func (s *session) passOn(p *command.Prepared) {
	c := &s.away
	size := 0
	for _, w := range p.Words {
		size += len(w) + len("$10000\r\n\r\n")
	}
	if p.Command != watchCommand {
		s.rememberPassed(*p)
	}
	switch {
	case p.Command == watchCommand:
		s.watchElsewhere(p)
	case p.Command == execCommand:
		s.execElsewhere()
	case p.MayWait() || s.replyMode != replyOn || !forward.Small(size):
		s.passAlone(p)
	default:
		as := s.caller()
		if c.calls.Pending() > 0 && (!c.calls.Fits(size) || c.as != as) {
			s.flushBefore()
		}
		c.as = as
		m := s.markOf(p, len(s.Reply.B))
		m.passed = c.calls.Add(c.target, p.Words) + 1
		s.marks = append(s.marks, m)
	}
}

// markOf returns the mark of a forwarded call, whose reply begins at start.
func (s *session) markOf(p *command.Prepared, start int) mark {
	return mark{
		start: start, end: start, group: s.away.target.Group, once: p.CountsOnce(),
		changed: p.Command.Flags&command.Changing != 0,
	}
}

// flushBefore sends the replies of the calls before this one. What the client is told of keys that
// this call reads follows its reply.
func (s *session) flushBefore() {
	s.flush()
	s.beginReply()
	if s.Tracked != nil {
		s.messages.Hold()
	}
}

// collect appends the reply of a call of the batch. It sends the buffer when it is large.
func (s *session) collect(m mark) {
	before := len(s.Reply.B)
	s.ended(s.away.calls.Collect(m.passed-1, s.away.as, &s.Reply), m, before)
	if len(s.Reply.B) >= wire.FlushSize && !s.Reply.Truncated {
		if _, err := s.guard.Send(s.Reply.B, false); err != nil {
			s.closing = true
		}
		s.Reply.B, s.Reply.NextCheck = s.Reply.B[:0], 0
	}
}

// ended replies to a forwarded call that has no reply of the other node. The reply begins at start.
func (s *session) ended(how forward.Outcome, m mark, start int) {
	switch how {
	case forward.Answered:
		if start < len(s.Reply.B) && s.Reply.B[start] == '-' {
			s.Errors++
		}
	case forward.Unknown:
		s.ReplyError(string(s.server.uncertain(m.group, m)))
	case forward.NoLeader:
		s.ReplyError(string(errUnbound))
	case forward.TooMany:
		s.ReplyError(errManyKept)
	case forward.Left:
		s.closing = true
	}
}

// left implements forward.Client.Gone.
func (s *session) left() error {
	if s.guard.Gone() || s.guard.Memory.Closed() {
		return forward.ErrLeft
	}
	return nil
}

// passAlone forwards a call that cannot be part of a batch.
func (s *session) passAlone(p *command.Prepared) {
	m := s.markOf(p, 0) // its words are overwritten while it waits
	if s.flushBefore(); p.MayWait() {
		s.flush() // messages need not wait
	}
	request := forward.AppendCall(nil, p.Words)
	s.guard.Memory.Set(clientmem.Waiting, len(request))
	defer s.guard.Memory.Set(clientmem.Waiting, 0)
	s.evictClientsIfNeeded()
	call, wait := s.away.target, (func(func()) error)(nil)
	if p.MayWait() {
		call.Keeps, wait = true, s.waitFor
		// a call that waits for a key restarts the hold time when it is sent again
		s.away.calls.Begin()
		s.profile.paused.Store(true)
		defer s.profile.paused.Store(false)
	}
	s.ended(s.away.calls.Do(call, request, s.caller(), &s.Reply, wait), m, 0)
}

// waitFor waits until arrives returns. It returns an error if the client disconnects or the server
// stops.
func (s *session) waitFor(arrives func()) error {
	var done atomic.Bool
	go func() {
		arrives()
		done.Store(true)
		s.guard.Wake()
	}()
	for !done.Load() {
		if s.guard.Pause() != nil {
			return forward.ErrLeft
		}
	}
	return nil
}

// watchElsewhere forwards a call that watches keys.
func (s *session) watchElsewhere(p *command.Prepared) {
	c := &s.away
	group, here, elsewhere := s.watches()
	switch {
	case s.transaction.open:
		s.Refuse(errWatchInMulti)
	case (here || elsewhere) && group != c.target.Group:
		s.Refuse(clustering.ErrCrossSlot)
	case here:
		s.Refuse(errLeaderChanged)
	default:
		s.flushBefore()
		s.ended(c.calls.Watch(c.target, forward.AppendCall(nil, p.Words), s.caller(), &s.Reply), s.markOf(p, 0), 0)
	}
}

// execElsewhere forwards the calls of a transaction that have keys. The others run here afterwards,
// because they concern this connection or this node.
func (s *session) execElsewhere() {
	c, t := &s.away, s.transaction
	s.transaction = transaction{}
	s.flushBefore()
	s.rememberPassed(t.calls...)
	var words [][][]byte
	for i := range t.calls {
		if t.calls[i].Keys > 0 {
			words = append(words, t.calls[i].Words)
		}
	}
	request, passed := forward.AppendExec(nil, words), len(words)
	s.guard.Memory.Set(clientmem.Waiting, len(request))
	defer s.guard.Memory.Set(clientmem.Waiting, 0)
	s.evictClientsIfNeeded()
	call := c.target
	call.Replies = passed + len("mx") // of MULTI and EXEC too
	reply := wire.Reply{RESP3: s.Reply.RESP3, Limiter: s}
	var how forward.Outcome
	if _, watched := c.calls.Watches(); watched {
		var aborted bool
		if aborted, how = c.calls.DoWatched(call, request, s.caller(), &reply); aborted {
			s.Reply.NullArray()
			return
		}
	} else {
		how = c.calls.Do(call, request, s.caller(), &reply, nil)
	}
	if how == forward.Answered && !reply.Truncated && passed < len(t.calls) && reply.B[0] == '*' {
		s.joinExec(&t, reply.B)
		return
	}
	s.Reply.B, s.Reply.Truncated, s.Reply.TruncatedAt = reply.B, reply.Truncated, reply.TruncatedAt
	s.ended(how, mark{group: call.Group, changed: true}, 0)
}

// joinExec merges the replies of another node with those of the calls that run here.
func (s *session) joinExec(t *transaction, theirs []byte) {
	if bytes.HasPrefix(theirs, []byte("*-1")) {
		s.Reply.NullArray()
		return
	}
	_, rest, _ := bytes.Cut(theirs, []byte("\r\n"))
	from := bufio.NewReader(bytes.NewReader(rest))
	s.use(s.server.home)
	defer s.Execute()()
	s.Tx.Begin(s.Env.Clock(), s.DB, nil, false)
	defer s.Tx.End()
	s.Reply.Array(len(t.calls))
	for i := range t.calls {
		if p := &t.calls[i]; p.Keys > 0 {
			wire.CopyReply(&s.Reply, from)
		} else {
			s.RunQueued(p, nil)
		}
	}
}

// passOnGroup forwards a call on all keys of a group, and returns its reply. There must be no
// batch.
func (s *session) passOnGroup(group int, words [][]byte, m mark) []byte {
	own := s.Reply
	s.Reply = wire.Reply{RESP3: own.RESP3, Limiter: s}
	call := forward.Call{Group: group}
	m.group, m.all = group, false
	if _, err := s.server.cluster.Lead(group); err != nil {
		if moved := (*slot.MovedError)(nil); errors.As(err, &moved) {
			call.Node = moved.Node
		}
	}
	s.ended(s.away.calls.Do(call, forward.AppendOnGroup(nil, group, words), s.caller(), &s.Reply, nil), m, 0)
	reply := s.Reply.B
	if s.Reply.Truncated {
		own.Truncated, own.TruncatedAt = true, len(own.B)
	}
	s.Reply = own
	return reply
}

// ProxyCounts returns the counts of forwarded calls, in a cluster.
func (s *Server) ProxyCounts() overview.Proxy {
	clients := int64(0)
	s.mu.Lock()
	for _, ss := range s.sessions {
		if ss.role == proxied {
			clients++
		}
	}
	forNodes := s.forNodes
	s.mu.Unlock()
	counts := s.passing.Counts()
	counts.Clients, counts.LinksIn = clients, int64(forNodes)
	return counts
}
