package commandtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rlserver/internal/clock"
	"rlserver/internal/listen"
)

// Pipes is a listener whose connections are in memory, so that synctest sees which goroutines wait
// for them.
type Pipes struct{ *listen.Handed }

// NewPipes returns a listener that is open.
func NewPipes() *Pipes { return &Pipes{listen.NewHanded(&net.UnixAddr{})} }

// Arrive hands the server's side of a connection to Accept.
func (p *Pipes) Arrive(conn net.Conn) { p.Hand(context.Background(), conn) }

// Bubble is the surroundings of a server in a synctest bubble: its clock, which has the time of the
// bubble, and its clients. It is made in the bubble.
type Bubble struct {
	*Pipes
	T     *testing.T
	Start time.Time
	Shift atomic.Int64 // of the system clock, µs
	mu    sync.Mutex
	log   []Received
}

// Received is a reply, with the time of its arrival and the name of the client.
type Received struct {
	At         int64 // ms since the start
	Name, Text string
}

func (s Received) String() string { return fmt.Sprintf("%d %s %s", s.At, s.Name, s.Text) }

// NewBubble returns the surroundings of a server in the synctest bubble of the caller.
func NewBubble(t *testing.T) *Bubble { return &Bubble{Pipes: NewPipes(), T: t, Start: time.Now()} }

// NewClock returns a clock for the server.
func (b *Bubble) NewClock() *clock.Clock {
	source := clock.System()
	return clock.New(clock.Source{Elapsed: source.Elapsed, Read: func() (int64, time.Duration) {
		wall, elapsed := source.Read()
		return wall + b.Shift.Load(), elapsed
	}}, slog.New(slog.DiscardHandler))
}

// Dial returns a new client.
func (b *Bubble) Dial() *Client {
	here, there := net.Pipe()
	b.Arrive(there)
	return NewClient(b.T, here)
}

// Ms returns the time in ms since the start.
func (b *Bubble) Ms() int64 { return time.Since(b.Start).Milliseconds() }

// Caller is a client whose replies are recorded when they arrive.
type Caller struct {
	net.Conn
	b *Bubble
}

// Caller connects a new client, by whose name its replies are recorded.
func (b *Bubble) Caller(name string) *Caller {
	c := b.Dial()
	go func() {
		for {
			if _, err := c.In.Peek(1); err != nil {
				b.record(name, "gone")
				return
			}
			b.record(name, strings.TrimSpace(c.Read()))
		}
	}()
	return &Caller{c.Conn, b}
}

func (b *Bubble) record(name, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, Received{b.Ms(), name, text})
}

// Call sends commands, one per line, and waits for their immediate replies.
func (c *Caller) Call(lines string) *Caller {
	go io.WriteString(c, Pipeline(strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' })...))
	synctest.Wait()
	return c
}

// Calls connects a new client and sends commands, one per line.
func (b *Bubble) Calls(name, lines string) *Caller { return b.Caller(name).Call(lines) }

// Replies returns the replies since the last call of Replies or TakeReplies: by time, then by the
// name of the client, then in the order of arrival.
func (b *Bubble) Replies() (lines []string) {
	for _, s := range b.SortedReplies() {
		lines = append(lines, s.String())
	}
	return lines
}

// SortedReplies is Replies with the parts of each reply.
func (b *Bubble) SortedReplies() []Received {
	replies := b.TakeReplies()
	slices.SortStableFunc(replies,
		func(x, y Received) int { return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Name, y.Name)) })
	return replies
}

// TakeReplies returns the replies since it was last called, in the order of arrival.
func (b *Bubble) TakeReplies() (replies []Received) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	replies, b.log = b.log, nil
	return replies
}

// PassUntil lets time pass until a number of ms since the start.
func (b *Bubble) PassUntil(until int64) {
	time.Sleep(time.Duration(until)*time.Millisecond - time.Since(b.Start))
	synctest.Wait()
}
