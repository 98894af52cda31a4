//go:build linux

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"rlserver/cluster/clustertest"
)

// flavour is how the limiter of a key is called.
type flavour int

const (
	slide   flavour = iota // RL.SLIDE, read by ZCARD
	refunds                // RL.SLIDE and RL.REFUND, read by ZCARD
	token                  // RL.TOKEN
	named                  // RL.SLIDE with an ID, repeated until the outcome is known
	flavours
)

// key is a limiter, and the calls on it.
type key struct {
	name    string
	flavour flavour
	limit   int64

	mu       sync.Mutex
	calls    []porcupine.Operation
	unknown  int
	admitted int64
	taken    int64 // as the last read said, -1: there was none
	running  int   // calls
	retired  bool
}

const (
	activeKeys  = 24
	callsPerKey = 60
	// mostUnknown bounds the work of the check: each could have been executed at any later moment.
	mostUnknown = 8
)

// book has the keys that are called now, and checks those that have had their calls.
type book struct {
	start   time.Time
	next    atomic.Int64
	mu      sync.Mutex
	active  []*key
	checks  sync.WaitGroup
	checker chan struct{} // capacity 1: one check at a time

	calls, admitted, denied, unknown, refused, lost, over, keys atomic.Int64
	lastAdmit, longestGap                                       atomic.Int64 // ns since start
	// capacity 1: the first
	violated chan string
}

func newBook() *book {
	b := &book{start: time.Now(), checker: make(chan struct{}, 1), violated: make(chan string, 1)}
	for range activeKeys {
		b.active = append(b.active, b.newKey())
	}
	return b
}

func (b *book) newKey() *key {
	n := b.next.Add(1)
	return &key{
		name: fmt.Sprint("key:", n), flavour: flavour(n % int64(flavours)), limit: 5 + rand.Int64N(25), taken: -1,
	}
}

// pick returns a key to call, and begins a call.
func (b *book) pick() *key {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.active[rand.IntN(len(b.active))]
	k.mu.Lock()
	k.running++
	k.mu.Unlock()
	return k
}

// now is the time since the start, ns.
func (b *book) now() int64 { return int64(time.Since(b.start)) }

// done notes a call, whose client began it at a time. made is false if nothing was done.
func (b *book) done(k *key, client int, begun int64, call clustertest.Call, answer clustertest.Answer, made bool) {
	end := b.now()
	k.mu.Lock()
	k.running--
	if made {
		b.calls.Add(1)
		if answer.Unknown {
			b.unknown.Add(1)
			k.unknown++
			end = math.MaxInt64
		}
		k.calls = append(k.calls, porcupine.Operation{
			ClientId: client, Input: call, Output: answer, Call: begun, Return: end,
		})
		b.count(k, call, answer, end)
	} else {
		b.refused.Add(1)
	}
	retire := !k.retired && (len(k.calls) >= callsPerKey || k.unknown >= mostUnknown)
	k.retired = k.retired || retire
	complete := k.retired && k.running == 0
	k.mu.Unlock()
	if retire {
		b.mu.Lock()
		for i := range b.active {
			if b.active[i] == k {
				b.active[i] = b.newKey()
			}
		}
		b.mu.Unlock()
	}
	if complete {
		b.check(k)
	}
}

func (b *book) count(k *key, call clustertest.Call, answer clustertest.Answer, end int64) {
	switch {
	case answer.Unknown:
	case call.Kind == clustertest.Read:
		k.taken = max(k.taken, answer.N)
	case call.Kind != clustertest.Hit:
	case answer.Allowed:
		k.admitted++
		b.admitted.Add(1)
		if gap := end - b.lastAdmit.Swap(end); gap > b.longestGap.Load() {
			b.longestGap.Store(gap)
		}
	default:
		b.denied.Add(1)
		k.taken = max(k.taken, k.limit)
	}
}

// check checks the history of a key in the background. A key may be checked again after a late
// call.
func (b *book) check(k *key) {
	k.mu.Lock()
	calls := append([]porcupine.Operation(nil), k.calls...)
	admitted, taken := k.admitted, k.taken
	k.mu.Unlock()
	b.keys.Add(1)
	if k.flavour != refunds {
		b.over.Add(max(0, admitted-k.limit))
		b.lost.Add(max(0, taken-admitted))
	}
	b.checks.Go(func() {
		b.checker <- struct{}{}
		defer func() { <-b.checker }()
		switch porcupine.CheckOperationsTimeout(clustertest.Limiter, calls, 20*time.Second) {
		case porcupine.Illegal:
			select {
			case b.violated <- describe(k, calls):
			default:
			}
		case porcupine.Unknown:
			fmt.Println("too many unknown outcomes to check", k.name)
		}
	})
}

// finish checks the keys that are still called, after the clients have ended.
func (b *book) finish() {
	for _, k := range b.active {
		b.check(k)
	}
	b.checks.Wait()
}

func describe(k *key, calls []porcupine.Operation) string {
	sort.Slice(calls, func(i, j int) bool { return calls[i].Call < calls[j].Call })
	var text strings.Builder
	fmt.Fprintf(&text, "no order of the calls on %s (limit %d) explains their replies:\n", k.name, k.limit)
	for _, c := range calls {
		end := "?"
		if c.Return != math.MaxInt64 {
			end = fmt.Sprintf("%.3f", float64(c.Return)/1e9)
		}
		kinds := []string{"hit", "refund", "read"}
		a := c.Output.(clustertest.Answer)
		fmt.Fprintf(&text, "  %8.3f to %8s s  client %2d  %-6s  %+v\n", float64(c.Call)/1e9, end, c.ClientId,
			kinds[c.Input.(clustertest.Call).Kind], a)
	}
	return text.String()
}
