package resp

import (
	"math"
	"time"
)

// share is how many bytes a client may hold at most: what all clients may hold, unless it is exempt.
func (g *guard) share() int64 {
	if g.exempt.Load() {
		return math.MaxInt64 - 1
	}
	return min(max(g.in.limits.clients.Load(), uncheckedReply), math.MaxInt64-1)
}

// hardLimit is how many bytes of unread replies close the client.
func (g *guard) hardLimit() int64 {
	most := g.share()
	if hard := g.outputLimit().hard; hard > 0 {
		return min(hard, most)
	}
	return most
}

func (g *guard) outputLimit() outputLimit { return g.in.limits.output.Load()[g.class()] }

// pauseAt is how many bytes of unread replies make the commands of the client wait until it reads: TCP then slows the
// client down. So a pipeline that asks for much more than the hard limit works as long as its replies are read.
// It is a part of what all clients together may hold, so that a slow reader is paused before it is evicted.
func (g *guard) pauseAt() int64 {
	most := min(max(g.share()/4, fullReply), mostUnread)
	switch limit := g.outputLimit(); {
	case g.class() == unauthenticated:
		return math.MaxInt64 // it is closed instead
	case limit.soft > 0:
		return min(limit.soft, most)
	case limit.hard > 0:
		return min(limit.hard/2, most)
	}
	return most
}

// grace is how long the client may stay paused; 0: for ever.
func (g *guard) grace() time.Duration {
	limit := g.outputLimit()
	if limit.soft == 0 {
		return 0
	}
	return max(time.Duration(limit.seconds)*time.Second, time.Millisecond)
}

const (
	fullReply      = 64 << 10      // how much is sent before the batch is through
	uncheckedReply = 2 * fullReply // how large a reply may be that nobody counts
)
