package resp

import (
	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/wire"
	"time"
	"unsafe"
)

const (
	manyWords = 1024 // a call of more words counts as memory of the client
)

// MayReply is called before a reply grows to size bytes in a buffer of room bytes. It returns the
// size at which it must be called again, or 0 if the reply is too large. It may be called under
// locks of the engine.
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
			go s.server.evictClients(p)
		}
		if p := &s.profile.largest; p.Load() < int64(size) {
			p.Store(int64(size))
		}
		next = size + size/4
	}
	return int(min(int64(max(next, wire.UncheckedSize)), hard+1))
}

// closeForOutputLimit closes the connection of a client whose reply is too large.
func (s *session) closeForOutputLimit() {
	if !s.guard.Memory.Closed() { // otherwise it was evicted, and that was logged
		s.server.countOutputOverrun(s, int64(s.Reply.TruncatedAt))
	}
	s.Reply.B, s.Reply.Truncated, s.closing = nil, false, true
	s.guard.Conn.Close()
}

// countOutputOverrun counts and logs a client that is closed for the size of its unread replies.
func (s *Server) countOutputOverrun(ss *session, bytes int64) {
	s.memory.Unread.Add(1)
	if more, ok := s.allows(&s.outputLog, time.Second); ok {
		s.Log.Warn("a client was closed for overcoming of output buffer limits", "unread", bytes, "client",
			ss.describe(), "others_since_the_last_line", more)
	}
}

// account updates what the session holds between batches.
func (s *session) account() {
	h, words, multi, watch := &s.guard.Memory, s.guard.WordsSize(), s.transaction.size, s.watching.Size()
	if h.Total() == 0 && words|multi|watch == 0 { // as nearly always
		return
	}
	h.Set(clientmem.Reply, 0)
	h.Set(clientmem.Args, words)
	h.Set(clientmem.Transaction, multi)
	h.Set(clientmem.Watch, watch)
	s.evictClientsIfNeeded()
}

// evictClientsIfNeeded closes the largest clients if the pool of this one is above its limit. No
// lock is held.
func (s *session) evictClientsIfNeeded() {
	if s.guard.Memory.Total() == 0 { // nearly always between batches
		return
	}
	if p := s.pool(); p != nil && p.Full() {
		s.server.evictClients(p)
	}
}

// accountArgs counts what a call of so many words takes beside its bytes. It reports whether the
// call may run: not if the client has been evicted.
func (s *session) accountArgs(words int) bool {
	s.guard.Memory.Set(clientmem.Args, words*(wire.WordSize+int(unsafe.Sizeof(engine.Key{}))))
	s.evictClientsIfNeeded()
	return !s.guard.Memory.Closed()
}
