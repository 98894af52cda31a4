package resp

import (
	"cmp"
	"slices"
	"time"
	"unsafe"

	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/wire"
)

const manyWords = 1024 // calls with more words are counted as memory of the client

// A reply of many MB is written in steps when no lock is held: between them the network is polled
// and other calls run, even if every processor has long work.
const (
	stepTime  = 2 * time.Millisecond
	stepPause = 20 * time.Microsecond
)

// pause ends a step if it has taken long enough.
func (s *session) pause() {
	if now := s.server.Time.Elapsed(); now-s.pausedAt > stepTime {
		time.Sleep(stepPause)
		s.pausedAt = s.server.Time.Elapsed()
	}
}

// size returns the memory of the connection that is not in its account, in bytes.
func (s *session) size() int64 {
	if s.guard.TLS() {
		return clientmem.ConnectionSize + clientmem.TLSSize
	}
	return clientmem.ConnectionSize
}

// MayReply is called before a reply grows to size bytes in a buffer of capacity bytes. It returns
// the size at which it must be called again, or 0 if the reply is too large. It may be called under
// locks of the engine.
func (s *session) MayReply(size, capacity int) (next int) {
	hard := s.guard.HardLimit()
	if int64(size) > hard {
		return 0
	}
	if size >= wire.UncheckedSize {
		if !s.guard.Memory.Set(clientmem.Reply, max(size, capacity)) {
			return 0
		}
		if p := s.pool(); p != nil && p.Full() {
			go s.server.evictClients(p)
		}
		if p := &s.profile.largest; p.Load() < int64(size) {
			p.Store(int64(size))
		}
		next = size + size/4
		if s.Unlocked() {
			next = size + min(size/4, wire.FlushSize)
			s.pause()
		}
	}
	return int(min(int64(max(next, wire.UncheckedSize)), hard+1))
}

// closeForOutputLimit closes the connection of a client whose reply is too large.
func (s *session) closeForOutputLimit() {
	if !s.guard.Memory.Closed() { // otherwise the client was evicted, and that was logged
		s.server.countOutputOverrun(s, int64(s.Reply.TruncatedAt))
	}
	s.Reply.B, s.Reply.Truncated, s.closing = nil, false, true
	s.guard.Conn.Close()
}

// countOutputOverrun counts and logs a client that is closed because its unread replies are too
// large.
func (s *Server) countOutputOverrun(ss *session, bytes int64) {
	s.memory.Unread.Add(1)
	if more, ok := s.allows(&s.outputLog, time.Second); ok {
		s.Log.Warn("a client was closed for overcoming of output buffer limits", "unread", bytes, "client",
			ss.Describe(), "others_since_the_last_line", more)
	}
}

// account updates the memory that the session holds between batches.
func (s *session) account() {
	h, words, multi, watch := &s.guard.Memory, s.guard.WordsSize(), s.transaction.size, s.watching.Size()
	if h.Total() == 0 && words|multi|watch == 0 { // the common case
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
	if s.guard.Memory.Total() == 0 { // the common case between batches
		return
	}
	if p := s.pool(); p != nil && p.Full() {
		s.server.evictClients(p)
	}
}

// accountArgs counts the memory of a call of so many words, without their bytes. It reports whether
// the call may run, which it may not if the client has been evicted.
func (s *session) accountArgs(words int) bool {
	s.guard.Memory.Set(clientmem.Args, words*(wire.WordSize+int(unsafe.Sizeof(engine.Key{}))))
	s.evictClientsIfNeeded()
	return !s.guard.Memory.Closed()
}

// evictClients closes the largest clients of a pool until the others are within its limit. It may
// be called under any lock except Server.mu and those below it, see the order of locks in doc.go.
func (s *Server) evictClients(p *clientmem.Pool) {
	s.memory.Evicting.Lock()
	defer s.memory.Evicting.Unlock()
	if !p.Full() {
		return
	}
	type candidate struct {
		session *session
		bytes   int64
	}
	var all []candidate
	s.each(func(ss *session) {
		if bytes := ss.guard.Memory.Total(); bytes > 0 && ss.pool() == p {
			all = append(all, candidate{ss, bytes})
		}
	})
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, c := range all {
		if !p.Full() {
			return
		}
		s.evict(c.session, c.bytes)
	}
}

// evict closes a client that holds bytes of memory.
func (s *Server) evict(ss *session, bytes int64) {
	line := ss.Describe()
	if !ss.guard.Memory.Evict() {
		return
	}
	ss.close(nil)
	if more, ok := s.allows(&s.evictionLog, time.Second); ok {
		s.Log.Warn("a client was evicted: clients hold more memory than they may", "held", bytes, "client", line,
			"others_since_the_last_line", more)
	}
}

// pool returns the pool that counts the client, or nil.
func (s *session) pool() *clientmem.Pool { return s.guard.Memory.Pool() }

// choosePool moves the client to the pool that it belongs to now.
func (s *session) choosePool() {
	m := &s.server.memory
	s.guard.Exempt.Store(s.authenticated && s.profile.noEvict.Load())
	switch {
	case !s.authenticated:
		s.guard.Memory.MoveTo(&m.Unauthenticated)
	case s.guard.Exempt.Load():
		s.guard.Memory.MoveTo(&m.Exempt)
	default:
		s.guard.Memory.MoveTo(&m.Normal)
	}
}
