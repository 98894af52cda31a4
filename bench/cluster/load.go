package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/cluster/slot"
)

// client is a connection of the Redis protocol.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(port string) (*client, error) {
	c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	return &client{c, bufio.NewReader(c)}, nil
}

// reply is a number, a text or an array.
type reply struct {
	number int
	text   string
	items  []reply
}

func (c *client) call(words ...string) (reply, error) {
	if _, err := c.Write(encode(nil, words...)); err != nil {
		return reply{}, err
	}
	return c.read()
}

func encode(out []byte, words ...string) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out
}

func (c *client) read() (r reply, err error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return r, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch kind, rest := line[0], line[1:]; kind {
	case '-':
		return r, errors.New(rest)
	case '+':
		r.text = rest
	case ':':
		r.number, err = strconv.Atoi(rest)
	case '$':
		n, _ := strconv.Atoi(rest)
		text := make([]byte, max(n, -2)+2)
		for at := 0; at < len(text) && err == nil; {
			var got int
			got, err = c.in.Read(text[at:])
			at += got
		}
		r.text = strings.TrimSuffix(string(text), "\r\n")
	case '*':
		n, _ := strconv.Atoi(rest)
		for range n {
			item, err := c.read()
			if err != nil {
				return r, err
			}
			r.items = append(r.items, item)
		}
	}
	return r, err
}

// batches are the calls for one node, in batches that are written at once.
func (s *servers) batches(words []string) (list [][][]byte) {
	list = make([][][]byte, len(s.nodes))
	open, size := make([][]byte, len(s.nodes)), make([]int, len(s.nodes))
	for _, i := range rand.Perm(keys) {
		words[1] = fmt.Sprint("key:", i)
		at := s.leads[slot.Of([]byte(words[1]))]
		open[at] = encode(open[at], words...)
		if size[at]++; size[at] == pipeline {
			list[at] = append(list[at], open[at])
			open[at], size[at] = nil, 0
		}
	}
	return list
}

// errNoDecision is the error for a reply that is not a decision, as after another node has become
// the leader of a group.
var errNoDecision = errors.New("the reply is not a decision")

// load measures a load, and repeats that if leadership changes meanwhile. words[1] is replaced by
// the key.
func (s *servers) load(ctx context.Context, length time.Duration, words []string) (m measured, err error) {
	for range 5 {
		if m, err = s.loadOnce(ctx, length, words); !errors.Is(err, errNoDecision) {
			break
		}
		fmt.Printf("(measured again: %v)\n", err)
		if err := s.settle(ctx); err != nil {
			return m, err
		}
	}
	return m, err
}

// loadOnce makes calls for a time, after a warm-up of a quarter of it.
func (s *servers) loadOnce(ctx context.Context, length time.Duration, words []string) (m measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, length+length/4)
	defer cancel()
	batches := s.batches(words)
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var clients sync.WaitGroup
	for i := range connections {
		clients.Go(func() {
			own := batches[i%len(s.nodes)]
			if err := flood(ctx, s.nodes[i%len(s.nodes)].port, own, rand.IntN(len(own)), &done); err != nil {
				failed.Store(&err)
				cancel()
			}
		})
	}
	time.Sleep(length / 4)
	calls, cpu, begun := done.Load(), s.cpu(), time.Now()
	<-ctx.Done()
	took := time.Since(begun)
	calls, cpu = done.Load()-calls, s.cpu()-cpu
	clients.Wait()
	if err := failed.Load(); err != nil {
		return m, *err
	}
	return measured{float64(calls) / took.Seconds(), cpu / time.Duration(max(calls, 1))}, nil
}

// flood sends batches and reads their replies until the end.
func flood(ctx context.Context, port string, batches [][]byte, at int, done *atomic.Int64) error {
	c, err := dial(port)
	if err != nil {
		return err
	}
	defer c.Close()
	for ; ctx.Err() == nil; at++ {
		if _, err := c.Write(batches[at%len(batches)]); err != nil {
			return err
		}
		for range pipeline {
			line, err := c.in.ReadSlice('\n')
			if err != nil {
				return err
			}
			if line[0] != '*' {
				return fmt.Errorf("%w: %s", errNoDecision, bytes.TrimSpace(line))
			}
			for range line[1] - '0' {
				if _, err := c.in.ReadSlice('\n'); err != nil {
					return err
				}
			}
		}
		done.Add(pipeline)
	}
	return nil
}

// latencies returns the latencies of an admit and of a denial for one client, as text.
func (s *servers) latencies(ctx context.Context) (columns map[string]string, err error) {
	columns = make(map[string]string)
	const key = "latency"
	c, err := dial(s.nodes[s.leads[slot.Of([]byte(key))]].port)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for what, limit := range map[string]string{"admit": "1000000", "denial": "1"} {
		var took []time.Duration
		for begun := time.Now(); len(took) < 5000 && time.Since(begun) < 3*time.Second && ctx.Err() == nil; {
			sent := time.Now()
			if _, err := c.call("RL.FIXED", "{"+key+"}"+what, limit, "1h"); err != nil {
				return nil, err
			}
			took = append(took, time.Since(sent))
		}
		slices.Sort(took)
		columns[what] = fmt.Sprintf("%d (%d)", took[len(took)/2].Microseconds(), took[len(took)*99/100].Microseconds())
	}
	return columns, ctx.Err()
}
