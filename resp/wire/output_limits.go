package wire

import (
	"math"
	"rlserver/resp/config"
	"time"
)

// share is how many bytes a client may hold at most: what all clients may hold, unless it is exempt.
func (g *Guard) share() int64 {
	if g.Exempt.Load() {
		return math.MaxInt64 - 1
	}
	return min(max(g.in.limits.Clients.Load(), UncheckedSize), math.MaxInt64-1)
}

// hardLimit is how many bytes of unread replies close the client.
func (g *Guard) HardLimit() int64 {
	most := g.share()
	if hard := g.outputLimit().Hard; hard > 0 {
		return min(hard, most)
	}
	return most
}

func (g *Guard) outputLimit() config.OutputLimit { return g.in.limits.Output.Load()[g.class()] }

// pauseAt is how many bytes of unread replies make the commands of the client wait until it reads: TCP then slows the
// client down. So a pipeline that asks for much more than the hard limit works as long as its replies are read.
// It is a part of what all clients together may hold, so that a slow reader is paused before it is evicted.
func (g *Guard) pauseAt() int64 {
	most := min(max(g.share()/4, FlushSize), config.MaxUnread)
	switch limit := g.outputLimit(); {
	case g.class() == config.Unauthenticated:
		return math.MaxInt64 // it is closed instead
	case limit.Soft > 0:
		return min(limit.Soft, most)
	case limit.Hard > 0:
		return min(limit.Hard/2, most)
	}
	return most
}

// grace is how long the client may stay paused; 0: for ever.
func (g *Guard) grace() time.Duration {
	limit := g.outputLimit()
	if limit.Soft == 0 {
		return 0
	}
	return max(time.Duration(limit.Seconds)*time.Second, time.Millisecond)
}

const (
	FlushSize     = 64 << 10      // how much is sent before the batch is through
	UncheckedSize = 2 * FlushSize // how large a reply may be that nobody counts
)
