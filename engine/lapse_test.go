package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// lapsing is an engine whose lookups delete expired keys.
type lapsing struct {
	*Engine
	failing error // why changes are refused
	end     func()
}

func newLapsing() *lapsing {
	l := &lapsing{Engine: New(Options{Databases: 2})}
	l.end = l.DeleteExpired(func() error { return l.failing })
	return l
}

// fill adds n strings to database db that expire after ttl.
func (l *lapsing) fill(db, n int, ttl time.Duration) {
	tx := l.NewTx()
	now := time.Now().UnixMilli()
	for i := range n {
		k := l.Key(fmt.Appendf(nil, "%v:%d", ttl, i))
		tx.Begin(now, db, []Key{k}, true)
		tx.Set(k, []byte("value"), SetMode{ExpireAt: now + ttl.Milliseconds()})
		tx.End()
	}
}

func (l *lapsing) size() int { return l.Memory().Keys() }

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
			l := newLapsing()
			var journal recorder
			l.journal = &journal
			l.fill(0, 1, time.Second)
			time.Sleep(time.Minute)
			tx, k := l.NewTx(), l.Key([]byte("1s:0"))
			lookUp := func() {
				tx.Begin(time.Now().UnixMilli(), 0, []Key{k}, false)
				read(tx, k)
				tx.End()
			}

			l.failing = errors.New("the disk is full")
			lookUp()
			assert.Equal(t, 1, l.size(), "%s while changes are refused", name)
			l.failing = nil
			tx.DryRun(lookUp)
			assert.Equal(t, 1, l.size(), "%s in a dry run", name)

			lookUp()
			assert.Zero(t, l.size(), name)
			assert.EqualValues(t, 1, l.Memory().Stats().Expired, name)
			assert.Zero(t, tx.Applied(), "%s: the call itself has changed nothing", name)
			last := journal.calls[len(journal.calls)-1]
			assert.Equal(t, []effect.Kind{effect.Delete}, []effect.Kind{last[0].Kind}, name)

			l.fill(0, 1, time.Second)
			time.Sleep(time.Minute)
			l.end()
			lookUp()
			assert.Equal(t, 1, l.size(), "%s of one that does not lead", name)
		})
	}
}

func TestScanAndRandomKeyDeleteExpiredKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLapsing()
		l.fill(1, 1000, time.Second)
		l.fill(1, 1, time.Hour)
		time.Sleep(time.Minute)
		tx, seen := l.NewTx(), 0
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			cursor, _ = tx.Scan(time.Now().UnixMilli(), 1, cursor, 10, func([]byte, object.Type) { seen++ })
		}
		assert.Equal(t, 1, seen)
		assert.Equal(t, 1, l.size())

		l.fill(0, 1000, time.Second)
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
