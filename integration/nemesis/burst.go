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
	"rlserver/integration/network"
)

// burst is calls at once, one on each of the keys that are called now. The keys are held: they are
// only checked after release, so that they can be called again when others have taken their place.
type burst struct {
	clients *clients
	keys    []*key
	work    sync.WaitGroup
}

func (c *clients) newBurst() *burst {
	return &burst{clients: c, keys: c.book.holdAll()}
}

// dial returns a connection for each key; nil: there is none. A node that is stopped after that
// finds the calls at once when it goes on.
func (b *burst) dial(host, port int) []net.Conn {
	conns := make([]net.Conn, len(b.keys))
	for i := range conns {
		conns[i], _ = net.DialTimeout("tcp", net.JoinHostPort(network.Address(host), fmt.Sprint(port)), time.Second)
	}
	return conns
}

// send makes the calls, at the same time. wait waits for the replies.
func (b *burst) send(conns []net.Conn, kind clustertest.Kind) {
	for i, conn := range conns {
		if conn == nil {
			continue
		}
		b.work.Go(func() {
			defer conn.Close()
			k := b.keys[i]
			if kind != clustertest.Read || k.readable() {
				k.hold()
				b.clients.callOn(k, kind, 100+i, func() caller { return plain{conn} })
			}
		})
	}
}

func (b *burst) wait() { b.work.Wait() }

// call makes the calls by way of a node.
func (b *burst) call(host int, kind clustertest.Kind) {
	b.send(b.dial(host, proxyPort), kind)
	b.wait()
}

func (b *burst) release() {
	for _, k := range b.keys {
		b.clients.book.release(k, true)
	}
}

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
