package budgets

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// callTimeout is longer than a node of a cluster holds a call.
	callTimeout = 5 * time.Second
	// patience is how long a call is sent again.
	patience = time.Minute
)

// caller sends calls, one after the other, to one of several servers: any of them may be asked.
type caller struct {
	addresses []string
	start     time.Time
	conn      net.Conn // nil: it is not connected
	in        *bufio.Reader
}

// sent has when a call was sent first and last, and when it was answered, in µs since the start of
// the load.
type sent struct {
	first, last, answered int64
	times                 int // how often it was sent
}

// now is the time since the start, µs.
func (c *caller) now() int64 { return time.Since(c.start).Microseconds() }

// again are the beginnings of errors after which a call can be sent again.
var again = []string{"MOVED ", "CLUSTERDOWN", "LOADING", "TRYAGAIN", "UNCERTAIN", "ERR max number of clients"}

// errReply is an error that a server has replied.
type errReply string

// Error implements error.
func (e errReply) Error() string { return string(e) }

// ask sends a call until it is answered.
func (c *caller) ask(ctx context.Context, words ...string) (reply any, s sent, err error) {
	s.first = c.now()
	for begun := time.Now(); time.Since(begun) < patience && ctx.Err() == nil; {
		s.last = c.now()
		s.times++
		if reply, err = c.try(words); err == nil {
			s.answered = c.now()
			return reply, s, nil
		}
		if refused, is := errors.AsType[errReply](err); is && !sendAgain(refused) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, s, fmt.Errorf("%s: %w", strings.Join(words, " "), errors.Join(err, ctx.Err()))
}

func sendAgain(refused errReply) bool {
	for _, text := range again {
		if strings.HasPrefix(string(refused), text) {
			return true
		}
	}
	return false
}

// try sends a call once.
func (c *caller) try(words []string) (reply any, err error) {
	if err = c.send(words); err == nil {
		reply, err = readReply(c.in)
	}
	if _, is := errors.AsType[errReply](err); err != nil && !is {
		c.cut()
	}
	return reply, err
}

// send sends a call, and does not wait for the reply.
func (c *caller) send(words []string) error {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addresses[rand.IntN(len(c.addresses))], time.Second)
		if err != nil {
			return err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	c.conn.SetDeadline(time.Now().Add(callTimeout))
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := c.conn.Write(out)
	return err
}

// cut ends the connection.
func (c *caller) cut() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// readReply reads an integer, a text, or an array of them.
func readReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, line := line[0], strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.ParseInt(line, 10, 64)
	switch kind {
	case '-':
		return nil, errReply(line)
	case ':':
		return n, nil
	case '$':
		text := make([]byte, max(n, -2)+2)
		_, err := io.ReadFull(in, text)
		return strings.TrimSuffix(string(text), "\r\n"), err
	case '*':
		items := make([]any, max(n, 0))
		for i := range items {
			if items[i], err = readReply(in); err != nil {
				if _, is := errors.AsType[errReply](err); is {
					err = fmt.Errorf("an error in an array: %w", err)
				}
				return nil, err
			}
		}
		return items, nil
	}
	return line, nil
}

// integers are those of a reply, or of an array in it.
func integers(reply any) (list []int64) {
	items, _ := reply.([]any)
	for _, item := range items {
		n, _ := item.(int64)
		list = append(list, n)
	}
	return list
}
