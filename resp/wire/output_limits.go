package wire

import (
	"math"
	"time"

	"rlserver/resp/config"
)

// share returns the maximum memory of a client in bytes: the limit of all clients, unless it is
// exempt.
func (g *Guard) share() int64 {
	if g.Exempt.Load() {
		return math.MaxInt64 - 1
	}
	return min(max(g.in.limits.Clients.Load(), UncheckedSize), math.MaxInt64-1)
}

// HardLimit returns the size of unread replies in bytes above which the client is closed.
func (g *Guard) HardLimit() int64 {
	most := g.share()
	if hard := g.outputLimit().Hard; hard > 0 {
		return min(hard, most)
	}
	return most
}

func (g *Guard) outputLimit() config.OutputLimit { return g.in.limits.Output.Load()[g.class()] }

// pauseAt returns the size of unread replies in bytes above which the client's commands wait: TCP
// then slows the client down. So a pipeline with more replies than the hard limit works as long as
// they are read. It is a fraction of the limit of all clients, so that a slow reader is paused
// before it is evicted.
func (g *Guard) pauseAt() int64 {
	most := min(max(g.share()/4, FlushSize), config.MaxUnread)
	switch limit := g.outputLimit(); {
	case g.class() == config.Unauthenticated:
		return math.MaxInt64 // the client is closed at the hard limit instead
	case limit.Soft > 0:
		return min(limit.Soft, most)
	case limit.Hard > 0:
		return min(limit.Hard/2, most)
	}
	return most
}

// grace returns how long the client may stay paused; 0: no limit.
func (g *Guard) grace() time.Duration {
	limit := g.outputLimit()
	if limit.Soft == 0 {
		return 0
	}
	return max(time.Duration(limit.Seconds)*time.Second, time.Millisecond)
}

// Sizes of replies.
const (
	FlushSize     = 64 << 10      // bytes of replies that are sent before the batch has ended
	UncheckedSize = 2 * FlushSize // bytes of a reply that is not counted in the client's account
)
