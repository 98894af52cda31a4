//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rlserver/cluster/clustertest"
	"rlserver/integration/network"
)

const (
	clientPort = 6379
	proxyPort  = 6380
	// callTimeout is longer than a node holds a call.
	callTimeout = 3 * time.Second
	callPause   = 4 * time.Millisecond // between the calls of a client
)

// caller makes a call once.
type caller interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// clients make calls until they are stopped.
type clients struct {
	book *book
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
	gate sync.RWMutex // locked while they make no calls
}

func startClients(b *book, count int, hosts []int) *clients {
	c := &clients{book: b}
	b.start = time.Now()
	c.ctx, c.stop = context.WithCancel(context.Background())
	for i := range count {
		c.work.Go(func() {
			if i%2 == 0 {
				c.clusterClient(i, hosts)
			} else {
				c.plainClient(i, hosts)
			}
		})
	}
	return c
}

func (c *clients) end() {
	c.stop()
	c.work.Wait()
}

// clusterClient follows MOVED, but never sends a call again by itself.
func (c *clients) clusterClient(id int, hosts []int) {
	var addrs []string
	for _, host := range hosts {
		addrs = append(addrs, net.JoinHostPort(network.Address(host), fmt.Sprint(clientPort)))
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, MaxRedirects: -1, DialTimeout: 500 * time.Millisecond, ReadTimeout: callTimeout,
		DialerRetries: 1, PoolSize: 2,
	})
	defer client.Close()
	for c.ctx.Err() == nil {
		c.call(id, func() caller { return client })
	}
}

// plainClient knows nothing of a cluster: it talks to the --proxy-port of a node, and goes to
// another one after an error.
func (c *clients) plainClient(id int, hosts []int) {
	var client *redis.Client
	next := func() caller {
		if client != nil {
			client.Close()
		}
		client = redis.NewClient(&redis.Options{
			Addr:       net.JoinHostPort(network.Address(hosts[rand.IntN(len(hosts))]), fmt.Sprint(proxyPort)),
			MaxRetries: -1, DialTimeout: 500 * time.Millisecond, ReadTimeout: callTimeout, DialerRetries: 1,
			PoolSize: 1, DisableIdentity: true,
		})
		return client
	}
	next()
	defer func() { client.Close() }()
	for c.ctx.Err() == nil {
		if !c.call(id, func() caller { return client }) {
			next()
		}
	}
}

// call makes a call on some key, and reports whether its outcome is known.
func (c *clients) call(id int, to func() caller) bool {
	defer time.Sleep(callPause)
	c.gate.RLock()
	defer c.gate.RUnlock()
	k := c.book.pick()
	kind := clustertest.Hit
	switch p := rand.IntN(10); {
	case p < 2:
		kind = clustertest.Read
	case p < 4 && k.flavour == refunds:
		kind = clustertest.Refund
	case p < 6 && k.flavour == budget:
		kind = clustertest.Hold
	case p < 9 && k.flavour == budget:
		kind = clustertest.Settle
	}
	return c.callOn(k, kind, id, to)
}

// callOn makes a call on a key that was picked.
func (c *clients) callOn(k *key, kind clustertest.Kind, id int, to func() caller) bool {
	if kind == clustertest.Read && !k.readable() {
		kind = clustertest.Hit
	}
	call := clustertest.Call{Kind: kind, Limit: k.limit}
	if kind >= clustertest.Hold {
		call.Reservation, call.Amount = k.reservation(kind)
	}
	args := k.args(call)
	begun := c.book.now()
	var answer clustertest.Answer
	made := true
	if k.flavour == named && call.Kind == clustertest.Hit {
		answer = c.repeated(call, append(args, "ID", fmt.Sprint(rand.Uint64())), to)
	} else if call.Kind >= clustertest.Hold && !lapses(call) {
		answer = c.repeated(call, args, to)
	} else {
		reply, err := to().Do(context.Background(), args...).Result()
		if text := scripts[k.flavour]; text != "" && err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			args[0], args[1] = "EVAL", text
			reply, err = to().Do(context.Background(), args...).Result()
		}
		answer, made = read(call, reply, err)
	}
	c.book.done(k, id, begun, call, answer, made)
	return made && !answer.Unknown
}

// repeated makes a call that has an ID, and repeats it until the outcome is known: it counts once.
func (c *clients) repeated(call clustertest.Call, args []any, to func() caller) (answer clustertest.Answer) {
	for i := range 20 {
		reply, err := to().Do(context.Background(), args...).Result()
		if answer, made := read(call, reply, err); made && !answer.Unknown {
			if !answer.Refused && (i > 0 || call.Kind == clustertest.Hit) {
				answer.N = -1 // what remained when it was repeated
			}
			return answer
		}
		time.Sleep(100 * time.Millisecond)
	}
	return clustertest.Answer{Unknown: true}
}

func (k *key) args(call clustertest.Call) []any {
	switch {
	case call.Kind == clustertest.Read:
		return []any{"ZCARD", k.name}
	case call.Kind == clustertest.Refund:
		return []any{"RL.REFUND", k.name, 1}
	case call.Kind == clustertest.Hold:
		ttl := "10000h"
		if lapses(call) {
			ttl = lapsesAfter.String()
		}
		return []any{"RL.SLIDE", k.name, k.limit, "1h", "COST", call.Amount, "HOLD", ttl, "ID", call.Reservation}
	case call.Kind == clustertest.Settle:
		return []any{"RL.SETTLE", k.name, call.Amount, "ID", call.Reservation}
	case scripts[k.flavour] != "":
		return []any{"EVALSHA", redis.NewScript(scripts[k.flavour]).Hash(), 1, k.name, k.limit}
	case k.flavour == token:
		return []any{"RL.TOKEN", k.name, k.limit, 1, "10000h"}
	default:
		return []any{"RL.SLIDE", k.name, k.limit, "1h"}
	}
}

// scripts are limiters as people write them, with replies like those of RL.SLIDE.
var scripts = [flavours]string{
	window: `local n, limit = tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1])
if n >= limit then return {0, limit, 0} end
n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], 36000000000) end
return {1, limit, limit - n}`,
	logged: `local now, limit = redis.call('TIME'), tonumber(ARGV[1])
local us = now[1] * 1000000 + now[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', us - 3600000000)
local n = redis.call('ZCARD', KEYS[1])
if n >= limit then return {0, limit, 0} end
redis.call('ZADD', KEYS[1], us, us .. ':' .. n)
redis.call('PEXPIRE', KEYS[1], 3600000)
return {1, limit, limit - n - 1}`,
}

// nothingDone are the beginnings of errors that say that the call was not executed.
var nothingDone = []string{"MOVED ", "CLUSTERDOWN", "LOADING", "ERR max number of clients"}

// read reads a reply. made is false if nothing was done.
func read(call clustertest.Call, reply any, err error) (answer clustertest.Answer, made bool) {
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return answer, false
		}
		for _, text := range nothingDone {
			if strings.HasPrefix(err.Error(), text) {
				return answer, false
			}
		}
		if call.Kind == clustertest.Settle && strings.HasPrefix(err.Error(), "ERR ") {
			return clustertest.Answer{Refused: true}, true
		}
		if call.Kind == clustertest.Read || strings.Contains(err.Error(), "has changed nothing") {
			return answer, false
		}
		return clustertest.Answer{Unknown: true}, true
	}
	switch reply := reply.(type) {
	case int64:
		return clustertest.Answer{N: reply}, true
	case []any:
		if key, ok := reply[0].([]any); ok { // of RL.SETTLE
			return clustertest.Answer{Allowed: key[0] == int64(1), Reserved: key[1].(int64), N: key[3].(int64)}, true
		}
		return clustertest.Answer{Allowed: reply[0] == int64(1), N: reply[2].(int64)}, true
	}
	panic(fmt.Sprintf("a reply that nobody has asked for: %v", reply))
}
