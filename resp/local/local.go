// Package local makes calls of the process itself, such as those of its page. They arrive like
// those of any other client: by a connection, which is a pipe in memory instead of a socket. So a
// call has its user's permissions, is counted, shown by MONITOR, and waits for the disk or for the
// other nodes of a cluster; nothing of that is written twice.
package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"rlserver/internal/listen"
	"rlserver/resp/forward"
	"rlserver/resp/wire"
)

// Listener accepts the connections of Connect.
type Listener struct{ *listen.Handed }

// Listen returns a listener. A server has to serve it before Connect succeeds.
func Listen() *Listener { return &Listener{listen.NewHanded(address("local"))} }

// address is the address of a client, which is not one of TCP here: nothing of the network limits
// it.
type address string

func (address) Network() string  { return "local" }
func (a address) String() string { return string(a) }

// end is the server's end of a pipe.
type end struct {
	net.Conn
	of address
}

func (e end) RemoteAddr() net.Addr { return e.of }

// User is who makes calls.
type User struct {
	Name, Password string // "": a client that does not log in
	Address        string // where the calls come from, for CLIENT LIST, MONITOR and the log
}

// maxReplies is how many bytes the replies of a client may have.
const maxReplies = 32 << 20

var (
	errStopped  = errors.New("the server is stopping")
	errTooLarge = fmt.Errorf("the reply is larger than %d MB", maxReplies>>20)
	errLoggedIn = errors.New("the login is not valid any more")
)

// Client makes calls one after another. It is for one goroutine.
type Client struct {
	conn  net.Conn
	limit io.LimitedReader
	from  *bufio.Reader
	ctx   context.Context
	stop  func() bool
}

// Connect returns a client of the server that serves the listener. It is closed when the context
// ends; the caller has to close it before. The error is one of the context, or says that the server
// is stopping.
func (l *Listener) Connect(ctx context.Context, as User) (*Client, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ours, theirs := net.Pipe()
	switch err := l.Hand(ctx, end{theirs, address(as.Address)}); err {
	case nil:
	case net.ErrClosed:
		return nil, errStopped
	default:
		return nil, err
	}
	c := &Client{conn: ours, ctx: ctx, stop: context.AfterFunc(ctx, func() { ours.Close() })}
	c.limit = io.LimitedReader{R: ours, N: maxReplies}
	c.from = bufio.NewReader(&c.limit)
	if as.Name == "" {
		return c, nil
	}
	replies, err := c.Do([][]byte{[]byte("AUTH"), []byte(as.Name), []byte(as.Password)})
	if err == nil && replies[0].Failed() {
		err = errLoggedIn
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the client.
func (c *Client) Close() {
	c.stop()
	c.conn.Close()
}

// Do makes calls in a pipeline, and returns their replies in the same order: errors of the server
// are replies. After an error of Do the outcome of the calls is not known, and the client is of no
// use.
func (c *Client) Do(calls ...[][]byte) ([]wire.Value, error) {
	var request []byte
	for _, words := range calls {
		request = forward.AppendCall(request, words)
	}
	// a pipe has no buffer: the server may send replies before it reads the next call
	go c.conn.Write(request)
	replies := make([]wire.Value, len(calls))
	for i := range calls {
		var reply wire.Reply
		if err := wire.CopyReply(&reply, c.from); err != nil {
			return nil, c.why(err)
		}
		replies[i] = wire.ParseValue(reply.B)
	}
	return replies, nil
}

// why returns why a reply could not be read.
func (c *Client) why(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.limit.N <= 0:
		return errTooLarge
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe):
		return errStopped
	}
	return err
}
