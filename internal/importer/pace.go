package importer

import (
	"context"
	"time"

	"rlserver/engine/limit"
)

// pace holds a rate. A nil pace holds none.
type pace struct {
	bucket limit.Bucket
	tokens limit.Tokens
}

// newPace returns a pace of so many units per second; 0 is unlimited.
func newPace(perSecond int64) *pace {
	if perSecond == 0 {
		return nil
	}
	return &pace{bucket: limit.Bucket{Capacity: limit.MaxCount, Refill: perSecond, Period: 1000}}
}

// take waits until the units before these are through.
func (p *pace) take(ctx context.Context, units int64) error {
	if p == nil {
		return ctx.Err()
	}
	after, decision := p.bucket.Pace(p.tokens, time.Now().UnixMilli(), units)
	p.tokens = after
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(decision.Delay) * time.Millisecond):
		return ctx.Err()
	}
}
