package rule

import (
	"fmt"
	"time"

	"rlserver/engine/limit"
)

// String returns the rule as ParsePolicy reads it: SLIDE 5 1m.
func (r *Rule) String() string {
	text := r.Kind.Algorithm().Name
	switch r.Kind {
	case Slide:
		text += fmt.Sprintf(" %d %s", r.Slide.Limit, limit.DurationText(r.Slide.Length))
	case Token:
		text += fmt.Sprintf(" %d %d %s", r.Token.Capacity, r.Token.Refill, limit.DurationText(r.Token.Period))
	case Fixed:
		text += fmt.Sprintf(" %d %s", r.Fixed.Limit, windowText(r.Fixed.Window))
	case Lease:
		text += fmt.Sprintf(" %d %s", r.Lease.Limit, limit.DurationText(r.Lease.TTL))
	case Leaky:
		text += fmt.Sprintf(" %d %s", r.Token.Refill, limit.DurationText(r.Token.Period))
		if r.Token.Capacity > 1 {
			text += fmt.Sprintf(" QUEUE %d", r.Token.Capacity-1)
		}
	case Counter:
		text += fmt.Sprintf(" %d %s", r.Counter.Limit, limit.DurationText(r.Counter.Window))
	}
	return text
}

// Length returns the window of the rule at Unix millisecond now, or its period, in ms.
func (r *Rule) Length(now int64) int64 {
	switch r.Kind {
	case Slide:
		return r.Slide.Length
	case Token, Leaky:
		return r.Token.Period
	case Lease:
		return r.Lease.TTL
	case Counter:
		return r.Counter.Window
	}
	start, end := r.Fixed.Window.Bounds(now)
	return end - start
}

func windowText(w limit.Windows) string {
	switch {
	case w.Unit == 0:
		return limit.DurationText(w.Length)
	case w.Zone == nil || w.Zone == time.UTC:
		return w.Unit.String()
	}
	return w.Unit.String() + " TZ " + w.Zone.String()
}
