package wire

import "rlserver/resp/config"

// A push is what the client gets without asking: lines of MONITOR, messages of channels. It never
// waits for the client.

// Push sends or queues p, which is not the reply to a command. It never waits: a client that leaves
// too much unread is closed. Any goroutine may call it.
func (g *Guard) Push(p []byte) { g.push(p, false) }

// PushShared is Push of bytes that nobody changes while a guard needs them: all clients may get the
// same ones. It reports whether the guard still needs them: short ones are copied.
func (g *Guard) PushShared(p []byte) (kept bool) { return g.push(p, len(p) >= shareFrom) }

// shareFrom is the number of bytes from which a push is not copied into the queue of a client that
// does not read at once.
const shareFrom = 1 << 10

func (g *Guard) push(p []byte, shared bool) (kept bool) {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.sender.holding {
		g.sender.hold(g, p, shared)
		return shared
	}
	if g.tls != nil {
		g.writing.Unlock()
		g.encrypt(p)
		g.writing.Lock()
	} else {
		kept = g.sender.offer(g, p[:len(p):len(p)], shared) < len(p) && shared
	}
	if g.sender.err == nil && g.sender.size > config.MaxUnread {
		g.sender.overrun(g)
	}
	return kept
}

// Hold makes Push keep what it gets until the next Send, whose bytes it follows. So a client that
// has changed something for which it gets pushes, or is told of something that a push takes back,
// gets the reply first. Call it from the connection's goroutine.
func (g *Guard) Hold() {
	g.writing.Lock()
	defer g.writing.Unlock()
	g.sender.holding = true
}

// TakeHeld appends what Push was given since Hold. Call it from the connection's goroutine.
func (g *Guard) TakeHeld(to []byte) []byte {
	g.writing.Lock()
	defer g.writing.Unlock()
	for _, p := range g.sender.takeHeld(g) {
		to = append(to, p...)
	}
	return to
}

// release sends or queues pushes that were held. Without any, pushes are not held any more. The
// caller holds g.writing.
func (g *Guard) release(list [][]byte) {
	g.sender.holding = len(list) > 0
	for _, p := range list {
		if g.tls == nil {
			g.sender.offer(g, p, true)
			continue
		}
		g.writing.Unlock()
		g.encrypt(p)
		g.writing.Lock()
	}
}

// hold keeps p.
func (s *sender) hold(g *Guard, p []byte, shared bool) {
	switch last := len(s.held) - 1; {
	case s.err != nil:
		return
	case shared:
		s.held = append(s.held, p[:len(p):len(p)])
		s.heldSize += int64(len(p))
	case last >= 0 && cap(s.held[last])-len(s.held[last]) >= len(p):
		s.held[last] = append(s.held[last], p...)
	default:
		chunk := append(make([]byte, 0, max(replyChunk, len(p))), p...)
		s.held = append(s.held, chunk)
		s.heldSize += int64(cap(chunk))
	}
	s.measure(g)
	if s.unread() > g.HardLimit() {
		s.overrun(g)
	}
}

// takeHeld returns what is held, which the caller then has.
func (s *sender) takeHeld(g *Guard) (list [][]byte) {
	if len(s.held) == 0 {
		return nil
	}
	list, s.held, s.heldSize = s.held, nil, 0
	s.measure(g)
	return list
}

// unread returns the memory of what is queued and held.
func (s *sender) unread() int64 { return s.size + s.heldSize }
