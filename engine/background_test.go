package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// background is an engine with a Background and the options that the Background calls.
type background struct {
	*Engine
	*Background
	expire  atomic.Bool
	refused atomic.Pointer[error]
}

func startBackground() *background {
	b := &background{Engine: New(Options{Databases: 2})}
	b.expire.Store(true)
	b.Background = b.StartBackground(BackgroundOptions{
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
		tx.Begin(now, db, []Key{k}, true)
		tx.Set(k, []byte("value"), SetMode{ExpireAt: now + ttl.Milliseconds()})
		tx.End()
	}
}

func (b *background) size() (keys int) {
	for db := range b.Databases() {
		n, _ := b.Size(db)
		keys += n
	}
	return keys
}

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
		time.Sleep(2 * backgroundTick)
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
		time.Sleep(2 * backgroundTick)
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
		workInTurns(func() bool {
			steps++
			time.Sleep(step)
			return true
		})
		worked := time.Duration(steps) * step
		assert.Equal(t, backgroundShare, worked)
		turns := worked / (backgroundTurn + step) // a turn ends with the step that exceeds it
		assert.Equal(t, worked+turns*backgroundTurn, time.Since(start))

		steps = 0
		workInTurns(func() bool {
			steps++
			return steps < 7
		})
		assert.Equal(t, 7, steps, "it ends when a step reports that there are no more")
	})
}

// With active expiry off, as in Redis.
func TestLookupsDeleteExpiredKeys(t *testing.T) {
	for name, read := range map[string]func(tx *Tx, k Key){
		"Get":    func(tx *Tx, k Key) { tx.Get(k) },
		"Exists": func(tx *Tx, k Key) { tx.Exists(k) },
		"other database": func(tx *Tx, k Key) {
			tx.db = 1
			tx.find(0, k)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := startBackground()
			defer b.Stop()
			b.expire.Store(false)
			var journal recorder
			b.journal = &journal
			b.fill(0, 1, time.Second)
			time.Sleep(time.Minute)
			tx, k := b.NewTx(), b.Key([]byte("1s:0"))
			lookUp := func() {
				tx.Begin(time.Now().UnixMilli(), 0, []Key{k}, false)
				read(tx, k)
				tx.End()
			}

			full := errors.New("the disk is full")
			b.refused.Store(&full)
			lookUp()
			assert.Equal(t, 1, b.size(), "%s while changes are refused", name)
			b.refused.Store(nil)
			tx.DryRun(lookUp)
			assert.Equal(t, 1, b.size(), "%s in a dry run", name)

			lookUp()
			assert.Zero(t, b.size(), name)
			assert.EqualValues(t, 1, b.Stats().Expired, name)
			assert.Zero(t, tx.Applied(), "%s: the call itself has changed nothing", name)
			last := journal.calls[len(journal.calls)-1]
			assert.Equal(t, []effect.Kind{effect.Delete}, []effect.Kind{last[0].Kind}, name)

			b.fill(0, 1, time.Second)
			time.Sleep(time.Minute)
			b.Stop()
			lookUp()
			assert.Equal(t, 1, b.size(), "%s of one that does not lead", name)
		})
	}
}

func TestScanAndRandomKeyDeleteExpiredKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBackground()
		defer b.Stop()
		b.expire.Store(false)
		b.fill(1, 1000, time.Second)
		b.fill(1, 1, time.Hour)
		time.Sleep(time.Minute)
		tx, seen := b.NewTx(), 0
		for cursor := tx.Scan(time.Now().UnixMilli(), 1, 0, 10, func([]byte, object.Type) { seen++ }); cursor != 0; {
			cursor = tx.Scan(time.Now().UnixMilli(), 1, cursor, 10, func([]byte, object.Type) { seen++ })
		}
		assert.Equal(t, 1, seen)
		assert.Equal(t, 1, b.size())

		b.fill(0, 1000, time.Second)
		time.Sleep(time.Minute)
		tx.BeginAll(time.Now().UnixMilli(), 0, false)
		for range 1000 {
			_, ok := tx.RandomKey(rand.New(rand.NewPCG(1, 2)))
			assert.False(t, ok)
		}
		assert.Zero(t, tx.Size())
		tx.End()
	})
}
