package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// attack is one attack on a server.
type attack struct {
	name  string
	flags []string // of the server
	// limiters that exist before the attack
	limiters int
	// makes other keys before the attack; may be nil
	prepare func(t *target) error
	// runs until ctx ends, or shorter
	run func(ctx context.Context, t *target) (note string, err error)
	// whether used_memory is expected to be the same after the attack as before
	recovers bool
	// whether SIGTERM is sent during the attack
	stopDuring bool
}

// rate is the number of calls per second of the well-behaved client.
const rate = 500

// measure runs an attack against a binary for a time.
func (a *attack) measure(ctx context.Context, binary string, long time.Duration) (o outcome, err error) {
	if a.recovers {
		o.recovered = -1
	}
	o.stopped = -1
	t, err := start(ctx, binary, a.flags)
	if err != nil {
		return o, err
	}
	defer t.remove()
	defer t.kill()
	c, err := t.login()
	if err != nil {
		return o, err
	}
	defer c.Close()
	err = c.pipe(a.limiters,
		func(i int) []string { return []string{"RL.TOKEN", "limiter:" + strconv.Itoa(i), "10", "1", "1d"} })
	if err == nil && a.prepare != nil {
		err = a.prepare(t)
	}
	if err != nil {
		return o, fmt.Errorf("preparing the attack: %w", err)
	}

	used := c.info("used_memory")
	watched := watch(t)
	benign := newBenign(t)
	time.Sleep(500 * time.Millisecond) // some calls before the attack begins
	attacking, end := context.WithTimeout(ctx, long)
	defer end()
	finished := make(chan error, 1)
	go func() {
		note, err := a.run(attacking, t)
		o.note = note
		finished <- err
	}()
	if a.stopDuring {
		time.Sleep(long / 2)
		benign.quit.Store(true)
		o.stopped = t.stop()
		o.benign, o.refused = benign.stop()
		end()
	} else {
		<-attacking.Done()
	}
	over := time.Now()
	err = <-finished
	if !a.stopDuring {
		if a.recovers {
			o.recovered = recovery(t, used, over)
		}
		o.benign, o.refused = benign.stop()
		if c, loginErr := t.login(); loginErr == nil {
			o.evicted = max(0, c.info("evicted_keys"))
			c.Close()
		}
	}
	o.peak = watched()
	if !a.stopDuring {
		o.stopped = t.stop()
	}
	return o, err
}

// maxMemory is the resident memory at which the server is killed, to protect the machine.
const maxMemory = 4 << 30

// watch samples the resident memory of the process. The function that it returns ends that and
// returns the peak.
func watch(t *target) (most func() int64) {
	quit, result := make(chan struct{}), make(chan int64)
	go func() {
		var peak int64
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				result <- peak
				return
			case <-ticker.C:
				peak = max(peak, t.status("VmRSS"))
				if peak > maxMemory {
					t.process.Process.Kill()
				}
			}
		}
	}()
	return func() int64 { close(quit); return <-result }
}

// recovery returns how long after from a write is accepted again and used_memory is at most a
// tenth, or 8 MB, above used. It returns -1 after 20 s.
func recovery(t *target, used int64, from time.Time) time.Duration {
	const patience = 20 * time.Second
	for time.Since(from) < patience {
		c, err := t.login()
		if err == nil {
			answer, err := c.call("SET", "probe", "x")
			now := c.info("used_memory")
			c.Close()
			if err == nil && answer == "+OK" && now >= 0 && now <= used+max(used/10, 8<<20) {
				return time.Since(from)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return -1
}

// benign is a well-behaved client: it calls a few limiters at a constant rate.
type benign struct {
	quit    atomic.Bool
	done    chan struct{}
	took    latencies
	refused int
}

func newBenign(t *target) *benign {
	n := &benign{done: make(chan struct{})}
	go n.run(t)
	return n
}

// run makes calls at fixed times. The latency of a call counts from the time at which it is due,
// which corrects for coordinated omission.
func (n *benign) run(t *target) {
	defer close(n.done)
	due := time.Now()
	var c *client
	for i := 0; !n.quit.Load(); i++ {
		due = due.Add(time.Second / rate)
		time.Sleep(time.Until(due))
		var err error
		if c == nil {
			c, err = t.login()
		}
		answer := ""
		if err == nil {
			c.SetDeadline(time.Now().Add(startTime))
			answer, err = c.call("RL.TOKEN", "benign:"+strconv.Itoa(i%16), "1000000", "1000000", "1s")
		}
		n.took = append(n.took, time.Since(due))
		if err != nil || strings.HasPrefix(answer, "-") {
			n.refused++
		}
		if err != nil && c != nil {
			c.Close()
			c = nil
		}
	}
	if c != nil {
		c.Close()
	}
}

func (n *benign) stop() (latencies, int) {
	n.quit.Store(true)
	<-n.done
	slices.Sort(n.took)
	return n.took, n.refused
}

// latencies are sorted durations.
type latencies []time.Duration

func (l latencies) String() string {
	if len(l) == 0 {
		return "-"
	}
	at := func(share float64) string {
		return fmt.Sprintf("%.1f", l[int(share*float64(len(l)-1))].Seconds()*1000)
	}
	return strings.Join([]string{at(0.5), at(0.99), at(0.999), at(1)}, " / ")
}
