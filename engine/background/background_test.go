package background

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/engine"
)

// background is an engine with a Background and the options that the Background calls.
type background struct {
	*engine.Engine
	*Work
	expire  atomic.Bool
	refused atomic.Pointer[error]
}

func startBackground() *background {
	b := &background{Engine: engine.New(engine.Options{Databases: 2})}
	b.expire.Store(true)
	b.Work = Start(b.Engine, Options{
		Now:    func() int64 { return time.Now().UnixMilli() },
		Expire: b.expire.Load,
		Refused: func() error {
			if err := b.refused.Load(); err != nil {
				return *err
			}
			return nil
		},
	})
	return b
}

// fill adds n strings to database db that expire after ttl.
func (b *background) fill(db, n int, ttl time.Duration) {
	tx := b.NewTx()
	now := time.Now().UnixMilli()
	for i := range n {
		k := b.Key(fmt.Appendf(nil, "%v:%d", ttl, i))
		tx.Begin(now, db, []engine.Key{k}, true)
		tx.Set(k, []byte("value"), engine.SetMode{ExpireAt: now + ttl.Milliseconds()})
		tx.End()
	}
}

func (b *background) size() int { return b.Memory().Keys() }

func TestBackgroundDeletesExpiredKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBackground()
		defer b.Stop()
		b.fill(0, 1000, time.Second)
		b.fill(1, 1000, time.Second)
		b.fill(1, 10, time.Hour)

		time.Sleep(time.Second)
		assert.Equal(t, 2010, b.size())
		time.Sleep(2 * sweepRound) // the round in progress, and one more
		assert.Equal(t, 10, b.size())
		time.Sleep(time.Hour + 2*sweepRound)
		assert.Zero(t, b.size())
	})
}

func TestBackgroundKeepsExpiredKeysWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBackground()
		defer b.Stop()
		b.expire.Store(false)
		b.fill(0, 100, time.Second)
		time.Sleep(time.Minute)
		assert.Equal(t, 100, b.size())
		b.expire.Store(true)
		time.Sleep(2 * sweepRound)
		assert.Zero(t, b.size())
	})
}

func TestBackgroundEvicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBackground()
		defer b.Stop()
		b.fill(0, 1000, time.Hour)
		time.Sleep(time.Minute)
		assert.Equal(t, 1000, b.size())
		b.SetBudget(0)
		time.Sleep(2 * tick)
		assert.Zero(t, b.size())
	})
}

func TestBackgroundPausesWhileChangesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBackground()
		defer b.Stop()
		full := errors.New("the disk is full")
		b.refused.Store(&full)
		b.fill(0, 100, time.Second)
		b.fill(1, 1000, time.Hour)
		b.SetBudget(0)
		time.Sleep(time.Minute)
		assert.Equal(t, 1100, b.size())

		b.SetBudget(math.MaxInt64)
		b.refused.Store(nil)
		time.Sleep(2 * sweepRound)
		assert.Equal(t, 1000, b.size())
		b.SetBudget(0)
		time.Sleep(2 * tick)
		assert.Zero(t, b.size())
	})
}

func TestBackgroundStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBackground()
		b.fill(0, 100, time.Second)
		b.Stop()
		b.Stop()
		time.Sleep(time.Minute)
		assert.Equal(t, 100, b.size())
	})
}

// Long work sleeps between turns, and takes no more than its share of a tick.
func TestWorkInTurnsSleepsBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 50 * time.Microsecond
		start, steps := time.Now(), 0
		inTurns(func() bool {
			steps++
			time.Sleep(step)
			return true
		})
		worked := time.Duration(steps) * step
		assert.Equal(t, share, worked)
		turns := worked / (turn + step) // a turn ends with the step that exceeds it
		assert.Equal(t, worked+turns*turn, time.Since(start))

		steps = 0
		inTurns(func() bool {
			steps++
			return steps < 7
		})
		assert.Equal(t, 7, steps, "it ends when a step reports that there are no more")
	})
}
