package resp

import (
	"strconv"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/forward"
	"rlserver/resp/pubsub/relay"
	"rlserver/resp/tracking"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
)

// A session for another node runs calls that this node forwards, as the users of its clients. See
// package forward for the protocol. It is not a client: CLIENT LIST does not show it, and no limit
// on clients counts it.

// forNode is the state of a session for another node.
type forNode struct {
	// a call was refused; so are the following ones, until the other node knows
	refused bool
	user    string                 // as whom its calls run; "": none was sent
	unknown bool                   // the user is not known here
	link    atomic.Pointer[string] // name of the link
}

func (s *session) isForNode() bool { return s.role == forOtherNode }

func (s *Server) nodeSessions() (list []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forNodes == 0 {
		return nil
	}
	for _, ss := range s.sessions {
		if ss.isForNode() {
			list = append(list, ss)
		}
	}
	return list
}

func (s *session) setRole(r role) {
	s.role = r
	if r == forOtherNode {
		s.setAuthenticated(true)
		s.away.node.unknown = true // until the other node sends a user
	}
}

const (
	errNotHere  = engine.Error(forward.Refusal)
	errTooLarge = "ERR the call was carried out, and its reply is larger than client-output-buffer-limit of the node " +
		"that leads the slot allows"
	errUnknownUser = "NOPERM the node that leads this slot does not know the user"
)

// enterForNode makes a call run on the partition of a group, if this node leads it. It does not
// wait for a leader, because the other node does.
func (s *session) enterForNode(group int) error {
	n := &s.away.node
	if !n.refused && !s.GivenUp() {
		if shared, err := s.server.cluster.Lead(group); err == nil {
			s.use(s.server.partitionOf(group, shared))
			return nil
		}
	}
	n.refused = true
	return errNotHere
}

// runForNode is runBatch of a session for another node.
func (s *session) runForNode() {
	if n := &s.away.node; n.user != "" && (n.unknown || s.Account.Deleted()) {
		s.actAs(n.user) // who may have been added since
	}
	for !s.closing {
		words := s.guard.Next()
		if words == nil {
			break
		}
		switch string(words[0]) {
		case forward.Control:
			s.handleControl(words)
			continue
		case forward.OnGroup:
			s.runOnGroup(words)
		case forward.Unblock:
			s.unblockForNode(words)
		case tracking.Word:
			s.setProtocol(3)
			s.Track().Set(tracking.Mode{}) // of all keys: it cannot fail
			s.Reply.OK()
		case relay.Word:
			if s.closing = len(words) != 3; !s.closing {
				s.messages.Relayed(words[1], words[2])
			}
		default:
			// the other node waits until this one serves calls
			if s.server.executor.LoadingSince() != 0 {
				s.away.node.refused = true
				s.ReplyError(string(errNotHere))
			} else if s.away.node.unknown {
				s.ReplyError(errUnknownUser)
			} else {
				s.execute(words)
			}
		}
		if s.Reply.Truncated && !s.guard.Memory.Closed() {
			s.failTruncated()
		}
		if len(s.Reply.B) >= wire.FlushSize || s.messages.Size() >= wire.FlushSize || s.Reply.Truncated {
			s.flush()
		}
	}
	s.flush()
}

// failTruncated replaces the reply of the last call, which is too large: the link has calls of
// other clients as well.
func (s *session) failTruncated() {
	s.Reply.B, s.Reply.Truncated, s.Reply.NextCheck = s.Reply.B[:s.replyStart], false, 0
	s.ReplyError(errTooLarge)
	if n := len(s.marks); n > 0 && s.marks[n-1].end >= s.replyStart {
		s.marks[n-1].end = len(s.Reply.B)
	}
	s.server.countOutputOverrun(s, int64(s.Reply.TruncatedAt))
}

func (s *session) handleControl(words [][]byte) {
	as, link, ok := forward.ParseControl(words)
	if !ok {
		s.closing = true
		return
	}
	s.away.node.link.Store(&link)
	s.Wanted = s.server.cluster.Wanted(forward.EpochOf(link))
	if s.transaction.open {
		s.transaction = transaction{}
	}
	s.away.node.refused = false
	s.actAs(as.User)
	s.setProtocol(map[bool]int32{false: 2, true: 3}[as.RESP3])
	s.NoTouch = as.NoTouch
}

func (s *session) actAs(user string) {
	s.away.node.user = user
	a := s.server.Users.Find(user)
	s.away.node.unknown = a == nil || !s.setAccount(a)
}

func (s *session) runOnGroup(words [][]byte) {
	s.beginReply()
	defer s.recovered()
	if len(words) < 3 {
		s.closing = true
		return
	}
	group, err := strconv.Atoi(string(words[1]))
	groups := s.server.cluster.Groups()
	var p command.Prepared
	failed := p.Resolve(s.Env, words[2:], nil)
	c := p.Command
	_, elapsed := s.ReadClock()
	s.updateProfile(c, elapsed)
	switch {
	case err != nil || failed != nil || group < 0 || c.Merge == nil:
		s.ReplyError("ERR this node cannot run the call: do all nodes have the same version?")
		return
	case group >= groups:
		s.away.node.refused = true
		s.reject(c, errNotHere)
		return
	case s.away.node.unknown:
		s.ReplyError(errUnknownUser)
		return
	}
	if err := s.prepareFor(&p); err != nil {
		s.reject(c, err)
		return
	}
	if err := s.enterForNode(group); err != nil {
		s.reject(c, err)
		return
	}
	s.group = append(s.group[:0], p)
	at := s.at
	reply := s.runOn(&p, at)
	s.runDeferred()
	s.Reply.B = append(s.Reply.B, reply...)
	s.marks = append(s.marks, mark{
		start: s.replyStart, end: len(s.Reply.B), partition: at,
		changed: p.Command.Flags&command.Changing != 0,
	})
}

func (s *session) unblockForNode(words [][]byte) {
	if len(words) < 3 {
		s.closing = true
		return
	}
	unblocked := false
	for _, ss := range s.server.nodeSessions() {
		if name := ss.away.node.link.Load(); name != nil && *name == string(words[1]) {
			if w := ss.waiter.Load(); w != nil {
				unblocked = w.Unblock(howToUnblock[string(words[2])])
			}
		}
	}
	s.Reply.Flag(unblocked)
}

// howToUnblock has what forward.Unblock names.
var howToUnblock = map[string]waitqueue.State{"TIMEOUT": waitqueue.TimedOut, "ERROR": waitqueue.Cancelled}

// unblockElsewhere ends the waiting of a call of the client on another node, on behalf of another
// client. It reports whether one has waited.
func (s *session) unblockElsewhere(how waitqueue.State, by *session) bool {
	if by.Executing {
		return false
	}
	for name, outcome := range howToUnblock {
		if outcome == how {
			return s.away.calls.Unblock(name, by.caller())
		}
	}
	return false
}
