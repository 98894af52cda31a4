package budgets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// probed are limits that are reserved in full, and not settled.
var probed = []string{
	"RL.SLIDE {probe}slide 5 50ms", "RL.TOKEN {probe}token 5 1 20ms", "RL.FIXED {probe}fixed 5 100ms",
	"RL.COUNTER {probe}counter 5 50ms", "RL.MULTI {probe}multi 5 50ms 7 90ms",
	"RL.ALL {probe}a SLIDE 5 50ms {probe}b TOKEN 5 1 20ms",
}

// probe reserves all of a limit again and again, and goes away. Others are denied until just before
// its time is over, and admitted then.
func (r *run) probe(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		if err := r.probeOnce(ctx, probed[n%len(probed)], fmt.Sprint("probe-", n)); err != nil && ctx.Err() == nil {
			r.report.find("%v", err)
			return
		}
	}
}

func (r *run) probeOnce(ctx context.Context, limit, id string) error {
	holder, c := r.caller(), r.caller()
	defer c.cut()
	ttl := 20 + rand.Int64N(200)
	words := strings.Fields(fmt.Sprint(limit, " COST 5 HOLD ", ttl, "ms ID ", id))
	reply, held, err := holder.ask(ctx, words...)
	holder.cut()
	if err != nil {
		return err
	}
	if d := integers(reply); d[0] != 1 {
		r.report.find("%s is denied, but nothing is reserved: %v", strings.Join(words, " "), d)
		return nil
	}
	earliest, latest := held.last+ttl*1000-r.Fast.Microseconds(), held.answered+ttl*1000+r.Slow.Microseconds()
	for ctx.Err() == nil {
		reply, s, err := c.ask(ctx, strings.Fields(limit+" COST 0")...)
		if err != nil {
			return err
		}
		switch d := integers(reply); {
		case d[0] == 1:
			if s.answered < earliest {
				r.report.find("%s: %v, %d µs before %s lapses", limit, d, earliest-s.answered, id)
			}
			r.report.Probes.Add(1)
			return nil
		case s.first > latest && s.times == 1 && held.times == 1:
			r.report.find("%s: %v, %d µs after %s has lapsed", limit, d, s.first-latest, id)
			return nil
		case s.times == 1 && held.times == 1 &&
			(s.answered+d[3]*1000 < earliest || s.first+d[3]*1000 > latest+1000):
			r.report.find("%s: %v, but %s lapses in %d to %d µs", limit, d, id, earliest-s.answered, latest-s.first)
			return nil
		default: // until just before, and then until it is time
			time.Sleep(max(time.Duration(d[3]/2)*time.Millisecond, 200*time.Microsecond))
		}
	}
	return nil
}
