//go:build linux

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"rlserver/cluster/clustertest"
	"rlserver/cluster/slot"
)

// flavour is how the limiter of a key is called.
type flavour int

const (
	slide   flavour = iota // RL.SLIDE, read by ZCARD
	refunds                // RL.SLIDE and RL.REFUND, read by ZCARD
	token                  // RL.TOKEN
	named                  // RL.SLIDE with an ID, repeated until the outcome is known
	window                 // a script with INCR
	logged                 // a script with a sorted set, read by ZCARD
	budget                 // RL.SLIDE with HOLD, and RL.SETTLE, read by ZCARD
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
	holders  int   // calls and bursts that are not done with it
	retired  bool

	reserved  int  // how many reservations it has had
	unchecked bool // of a reservation that lapses, nobody knows when it was made
}

// givesBack reports whether permits come back.
func (k *key) givesBack() bool { return k.flavour == refunds || k.flavour == budget }

// readable reports whether a key can be read.
func (k *key) readable() bool { return k.flavour != token && k.flavour != window }

const (
	activeKeys  = 24
	callsPerKey = 60
	// maxUnknown bounds the work of the check: each could have been executed at any later moment.
	maxUnknown = 8
	checkTime  = 20 * time.Second // of a key
)

// book has the keys that are called now, and checks those that have had their calls.
type book struct {
	start   time.Time // of the clients
	next    atomic.Int64
	mu      sync.Mutex
	active  []*key
	checks  sync.WaitGroup
	checker chan struct{} // capacity 1: one check at a time

	calls, admitted, denied, unknown, refused, lost, over, keys, unchecked atomic.Int64
	// ns since start
	lastAdmit, longestGap atomic.Int64

	answers answers

	finding atomic.Pointer[string] // nil: there is none
}

func newBook() *book {
	b := &book{checker: make(chan struct{}, 1)}
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

// pick returns a key to call, and holds it until done.
func (b *book) pick() *key {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.active[rand.IntN(len(b.active))]
	if k.flavour == budget { // called less often, so that reservations lapse before it is checked
		k = b.active[rand.IntN(len(b.active))]
	}
	k.hold()
	return k
}

// holdAll returns the keys that are called now, and holds them until release.
func (b *book) holdAll() []*key {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.active {
		k.hold()
	}
	return slices.Clone(b.active)
}

func (k *key) hold() {
	k.mu.Lock()
	k.holders++
	k.mu.Unlock()
}

// now is the time since the start, ns.
func (b *book) now() int64 { return int64(time.Since(b.start)) }

// done notes a call, whose client began it at a time. made is false if nothing was done.
func (b *book) done(k *key, client int, begun int64, call clustertest.Call, answer clustertest.Answer, made bool) {
	end := b.now()
	k.mu.Lock()
	if made {
		b.calls.Add(1)
		returned := end
		if answer.Unknown {
			b.unknown.Add(1)
			k.unknown++
			returned = math.MaxInt64
		}
		k.calls = append(k.calls, porcupine.Operation{
			ClientId: client, Input: call, Output: answer, Call: begun, Return: returned,
		})
		if lapses(call) {
			k.lapse(client, begun, returned, call)
		}
		b.count(k, call, answer, end)
		if !answer.Unknown {
			b.answers.note(slot.Group(slot.Of([]byte(k.name)), groups), begun, end)
		}
	} else {
		b.refused.Add(1)
	}
	full := len(k.calls) >= callsPerKey || k.unknown >= maxUnknown || k.unchecked
	k.mu.Unlock()
	b.release(k, full)
}

// release ends a call or a burst on a key. If retire is set, another key takes its place. The
// last one on a retired key has it checked.
func (b *book) release(k *key, retire bool) {
	b.mu.Lock()
	k.mu.Lock()
	k.holders--
	if retire && !k.retired {
		k.retired = true
		b.active[slices.Index(b.active, k)] = b.newKey()
	}
	complete := k.retired && k.holders == 0
	k.mu.Unlock()
	b.mu.Unlock()
	if complete {
		b.check(k)
	}
}

func (b *book) count(k *key, call clustertest.Call, answer clustertest.Answer, end int64) {
	switch {
	case answer.Unknown:
	case call.Kind == clustertest.Read:
		k.taken = max(k.taken, answer.N)
	case call.Kind != clustertest.Hit && call.Kind != clustertest.Hold:
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

// answers has when each group has answered last.
type answers struct {
	mu         sync.Mutex
	begun, end [groups]int64 // of that call, ns since the start
	longest    int64         // between two answers of a group, since gap was called
}

func (a *answers) note(group int, begun, end int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.longest = max(a.longest, end-a.end[group])
	a.begun[group], a.end[group] = max(a.begun[group], begun), max(a.end[group], end)
}

// servedSince reports whether calls that began after a time were answered in each group.
func (b *book) servedSince(since int64) bool {
	b.answers.mu.Lock()
	defer b.answers.mu.Unlock()
	return slices.Min(b.answers.begun[:]) > since
}

// gap returns the longest time without an answer of a group since it was called last.
func (b *book) gap() time.Duration {
	b.answers.mu.Lock()
	defer b.answers.mu.Unlock()
	now := b.now()
	longest := max(b.answers.longest, now-slices.Min(b.answers.end[:]))
	b.answers.longest = 0
	for i := range b.answers.end {
		b.answers.end[i] = now
	}
	return time.Duration(longest)
}

// check checks the history of a key, in the background.
func (b *book) check(k *key) {
	k.mu.Lock()
	calls := append([]porcupine.Operation(nil), k.calls...)
	admitted, taken, unchecked := k.admitted, k.taken, k.unchecked
	k.mu.Unlock()
	b.keys.Add(1)
	if unchecked {
		b.unchecked.Add(1)
		return
	}
	if !k.givesBack() {
		if over := admitted - k.limit; over > 0 {
			b.over.Add(over)
			b.find(fmt.Sprintf("%d permits were granted above the limit of %s (%d)", over, k.name, k.limit), calls)
		}
		b.lost.Add(max(0, taken-admitted))
		if before, after := cameBack(calls); before > after {
			b.find(fmt.Sprintf("%d permits of %s were taken, and only %d later", before, k.name, after), calls)
		}
	}
	b.checks.Go(func() {
		b.checker <- struct{}{}
		defer func() { <-b.checker }()
		if b.finding.Load() != nil {
			return
		}
		switch porcupine.CheckOperationsTimeout(clustertest.Limiter, calls, checkTime) {
		case porcupine.Illegal:
			b.find(fmt.Sprintf("no order of the calls on %s (limit %d) explains their replies", k.name, k.limit), calls)
		case porcupine.Unknown:
			b.unchecked.Add(1)
			fmt.Println("too many unknown outcomes to check", k.name)
		}
	})
}

// cameBack returns how many permits were taken by one reply, and by that to a later call, if those
// are fewer, on a key without refunds. Porcupine sees that too, but to be certain that no order
// explains a history it tries all of them, which can take minutes.
func cameBack(calls []porcupine.Operation) (before, after int64) {
	for _, a := range calls {
		for _, b := range calls {
			if before, after := takenBy(a), takenBy(b); a.Return < b.Call && after >= 0 && after < before {
				return before, after
			}
		}
	}
	return 0, 0
}

// takenBy returns how many permits were taken as the reply to a call says; -1: it does not.
func takenBy(o porcupine.Operation) int64 {
	call, answer := o.Input.(clustertest.Call), o.Output.(clustertest.Answer)
	switch {
	case answer.Unknown || answer.N == -1:
		return -1
	case call.Kind == clustertest.Read:
		return answer.N
	default:
		return call.Limit - answer.N
	}
}

// finish checks the keys that are still called, after the clients have ended. It returns at once
// if there is a finding.
func (b *book) finish() {
	for _, k := range b.active {
		b.check(k)
	}
	done := make(chan struct{})
	go func() {
		b.checks.Wait()
		close(done)
	}()
	for b.finding.Load() == nil {
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// find notes a finding and the calls that show it, unless there is one.
func (b *book) find(what string, calls []porcupine.Operation) {
	text := what + ":\n" + describe(calls)
	b.finding.CompareAndSwap(nil, &text)
}

func describe(calls []porcupine.Operation) string {
	sort.Slice(calls, func(i, j int) bool { return calls[i].Call < calls[j].Call })
	var text strings.Builder
	for _, c := range calls {
		end := "?"
		if c.Return != math.MaxInt64 {
			end = fmt.Sprintf("%.3f", float64(c.Return)/1e9)
		}
		kinds := []string{"hit", "refund", "read", "hold", "settle", "lapse"}
		a := c.Output.(clustertest.Answer)
		call := c.Input.(clustertest.Call)
		kind := kinds[call.Kind]
		if call.Kind >= clustertest.Hold {
			kind = fmt.Sprintf("%s of %d as %d", kind, call.Amount, call.Reservation)
		}
		fmt.Fprintf(&text, "  %8.3f to %8s s  client %2d  %-6s  %+v\n", float64(c.Call)/1e9, end, c.ClientId, kind, a)
	}
	return text.String()
}
