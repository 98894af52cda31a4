package resp

import (
	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/wire"
	"unsafe"
)

const (
	manyWords = 1024 // words of a call that count as memory held by the client
)

// MayReply tells, before a reply of this size is written into a buffer of so much room, at which size it is to be asked again; 0: the reply
// is too large. It may be called under locks of the engine.
func (s *session) MayReply(size, room int) (next int) {
	hard := s.guard.HardLimit()
	if int64(size) > hard {
		return 0
	}
	if size >= wire.UncheckedSize {
		if !s.guard.Memory.Set(clientmem.Reply, max(size, room)) {
			return 0
		}
		if p := s.pool(); p != nil && p.Full() {
			go s.server.relieve(p)
		}
		if p := &s.profile.largest; p.Load() < int64(size) {
			p.Store(int64(size))
		}
		next = size + size/4
	}
	return int(min(int64(max(next, wire.UncheckedSize)), hard+1))
}

// cutOff ends a session whose reply is too large.
func (s *session) cutOff() {
	if !s.guard.Memory.Closed() { // else it was evicted, and the log has told so
		s.server.unread(s, int64(s.Reply.TruncatedAt))
	}
	s.Reply.B, s.Reply.Truncated, s.closing = nil, false, true
	s.guard.Conn.Close()
}

// unread tells the log of a client that is closed for the size of the replies it has not read.
func (s *Server) unread(ss *session, bytes int64) {
	s.memory.Unread.Add(1)
	if more, ok := s.overruns.due(s.elapsed()); ok {
		s.Log.Warn("a client was closed for overcoming of output buffer limits", "unread", bytes, "client", ss.describe(), "others_since_the_last_line", more)
	}
}

// account counts what the session holds between batches.
func (s *session) account() {
	h, words, multi, watch := &s.guard.Memory, s.guard.WordsSize(), s.transaction.size, s.watching.Size()
	if h.Total() == 0 && words|multi|watch == 0 { // as nearly always
		return
	}
	h.Set(clientmem.Reply, 0)
	h.Set(clientmem.Args, words)
	h.Set(clientmem.Transaction, multi)
	h.Set(clientmem.Watch, watch)
	s.relieve()
}

// relieve closes the largest clients if all together hold more than they may. No lock is held.
func (s *session) relieve() {
	if s.guard.Memory.Total() == 0 { // what nearly all sessions hold between batches
		return
	}
	if p := s.pool(); p != nil && p.Full() {
		s.server.relieve(p)
	}
}

// takeArgs counts what a call of so many words takes beside its bytes, and tells whether it may be run.
func (s *session) takeArgs(words int) bool {
	s.guard.Memory.Set(clientmem.Args, words*(wire.WordSize+int(unsafe.Sizeof(engine.Key{}))))
	s.relieve()
	return !s.guard.Memory.Closed()
}
