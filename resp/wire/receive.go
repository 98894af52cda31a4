package wire

import (
	"errors"
	"io"
	"os"

	"rlserver/resp/clientmem"
)

// fill waits for more input. If the stream ends here, it sends a protocol error to the client and
// returns the reason. p is a buffer that it may use.
func (g *Guard) fill(p []byte) error {
	if refusal, ok := g.in.refusal.(protocolError); ok {
		g.Write([]byte("-ERR " + refusal.Error() + "\r\n"))
	}
	if err := g.broken(); err != nil {
		return err
	}
	if g.in.refusal != nil {
		return g.leave(g.in.refusal)
	}
	if err := g.limitWait(); err != nil {
		return err
	}
	if g.draining.Load() {
		return g.leave(io.EOF)
	}
	if g.tls != nil && !g.tls.ready.Load() {
		return g.handshake()
	}
	g.Queued.Store(int64(g.in.unparsed()))
	n, err := g.receive(p)
	if n > 0 {
		g.BytesIn.Add(int64(n))
		return nil // if err is not nil, the next read returns it again
	}
	switch timeout := errors.Is(err, os.ErrDeadlineExceeded); {
	case timeout && g.draining.Load():
		return g.leave(io.EOF)
	case timeout && g.wasWoken(): // Wake came too late for Pause
		g.timed = true
		return nil
	case timeout && g.loginIsOver():
		return ErrLoginTimeout
	}
	return err
}

// receive reads from the socket. It reads into p if there is no incomplete command and p is
// probably large enough: the connection then holds no buffer while it waits.
func (g *Guard) receive(p []byte) (n int, err error) {
	space := p
	direct := g.deep || g.in.waiting() > 0
	if !direct {
		g.in.release()
	}
	if !g.mayHold(direct) {
		return 0, errEvicted
	}
	if direct {
		space = g.in.freeSpace(g.deep)
	}
	n, err = g.read(space)
	g.deep = n == len(space)
	if direct {
		g.in.extend(n)
	} else {
		g.in.add(p[:n])
	}
	return n, err
}

// mayHold counts the memory of the client during the next read, including the growth of the buffer.
// It reports whether the client may continue.
func (g *Guard) mayHold(direct bool) bool {
	size := 0
	if direct {
		g.in.moveToFront()
		size = g.in.nextSize(g.deep)
	}
	before := g.Memory.Part(clientmem.Input)
	alive := g.Memory.Set(clientmem.Input, size) && g.Memory.Set(clientmem.Args, g.in.wordsSize())
	if int64(size) > before && g.Memory.PoolFull() && g.Relieve != nil {
		g.Relieve()
		alive = !g.Memory.Closed()
	}
	return alive
}

// Feed adds bytes to the input as if they had been read from the socket.
func (g *Guard) Feed(p []byte) { g.in.add(p) }

// Buffered returns the number of bytes of input that Next has not returned.
func (g *Guard) Buffered() int { return g.in.waiting() }

// WordsSize returns the size of the argument list of the last command in bytes, 0 if it is small.
func (g *Guard) WordsSize() int { return g.in.wordsSize() }

// Release drops the input buffer and its content.
func (g *Guard) Release() { g.in.release() }
