package rule

import (
	"strconv"
	"time"

	"rlserver/engine/limit"
)

// String returns the rule as ParsePolicy reads it: SLIDE 5 1m.
func (r *Rule) String() string { return string(r.append(nil)) }

// append appends the text of the rule.
func (r *Rule) append(b []byte) []byte {
	b = append(b, r.Kind.Algorithm().Name...)
	switch r.Kind {
	case Slide:
		return limit.AppendDuration(appendCount(b, r.Slide.Limit), r.Slide.Length)
	case Token:
		return limit.AppendDuration(appendCount(b, r.Token.Capacity, r.Token.Refill), r.Token.Period)
	case Fixed:
		return appendWindow(appendCount(b, r.Fixed.Limit), r.Fixed.Window)
	case Lease:
		return limit.AppendDuration(appendCount(b, r.Lease.Limit), r.Lease.TTL)
	case Counter:
		return limit.AppendDuration(appendCount(b, r.Counter.Limit), r.Counter.Window)
	}
	b = limit.AppendDuration(appendCount(b, r.Token.Refill), r.Token.Period)
	if r.Token.Capacity > 1 {
		b = strconv.AppendInt(append(b, " QUEUE "...), r.Token.Capacity-1, 10)
	}
	return b
}

// appendCount appends numbers between spaces.
func appendCount(b []byte, numbers ...int64) []byte {
	b = append(b, ' ')
	for _, n := range numbers {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	return b
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

func appendWindow(b []byte, w limit.Windows) []byte {
	switch {
	case w.Unit == 0:
		return limit.AppendDuration(b, w.Length)
	case w.Zone == nil || w.Zone == time.UTC:
		return append(b, w.Unit.String()...)
	}
	return append(append(append(b, w.Unit.String()...), " TZ "...), w.Zone.String()...)
}
