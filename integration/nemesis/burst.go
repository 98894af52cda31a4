//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rlserver/cluster/clustertest"
)

// burst is connections to one node, each for one call. They are made before the node is stopped, so
// that it finds the calls at once when it goes on.
type burst struct {
	clients *clients
	conns   []net.Conn
	work    sync.WaitGroup
}

func (c *clients) newBurst(host, calls int) *burst {
	b := &burst{clients: c}
	for range calls {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(address(host), fmt.Sprint(clientPort)), time.Second)
		if err == nil {
			b.conns = append(b.conns, conn)
		}
	}
	return b
}

// send sends the calls.
func (b *burst) send() {
	for i, conn := range b.conns {
		b.work.Go(func() {
			defer conn.Close()
			// reads: what they return must be confirmed, though nothing else is on its way
			b.clients.callOn(b.clients.book.pick(), clustertest.Read, 100+i, func() caller { return plain{conn} })
		})
	}
}

func (b *burst) wait() { b.work.Wait() }

// plain makes calls on a connection without any handshake.
type plain struct{ net.Conn }

// Do implements caller.
func (p plain) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	p.SetDeadline(time.Now().Add(callTimeout))
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(args))
	for _, arg := range args {
		word := fmt.Sprint(arg)
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(p, text.String())
	var reply any
	if err == nil {
		reply, err = readReply(bufio.NewReader(p))
	}
	if err != nil {
		cmd.SetErr(err)
	} else {
		cmd.SetVal(reply)
	}
	return cmd
}

// readReply reads an integer, an array of them, or an error.
func readReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSpace(line)
	switch line[0] {
	case ':':
		return strconv.ParseInt(line[1:], 10, 64)
	case '*':
		size, err := strconv.Atoi(line[1:])
		items := make([]any, 0, 8)
		for range size {
			var item any
			if item, err = readReply(in); err != nil {
				break
			}
			items = append(items, item)
		}
		return items, err
	}
	return nil, errors.New(line[1:])
}
