package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/zset"
)

var reservable = []object.Type{object.TypeZSet, object.TypeToken, object.TypeFixed, object.TypeCounter}

// reserving returns an engine with a limiter of each type, named by it, that has n reservations.
func reserving(t *testing.T, o Options, n int) *caller {
	c := newCaller(t, o)
	for _, kind := range reservable {
		c.with(string(kind), func(k Key) {
			var at object.Object
			for i := range n {
				at = c.tx.apply(at, &effect.Effect{
					Kind: effect.Reserve, Key: k, Field: fmt.Append(nil, "call", i), Hi: int(object.FormNamed(kind)),
					Hold: effect.Hold{Amount: int64(i % 5), Until: epoch + int64(i)}, ExpireAt: epoch + 1e6,
				})
			}
			require.Equal(t, kind, at.Kind())
			c.tx.apply(at, &effect.Effect{Kind: effect.Terms, Key: k, Value: []byte("SLIDE 10 1s")})
		})
	}
	return c
}

func (c *caller) book(name string) (b *reserve.Book) {
	c.with(name, func(k Key) { b = object.ExtensionOf(c.tx.find(c.tx.db, k)).Reservations() })
	return b
}

// The state of a limiter that got reservations stays, and so do its access clock and deadline.
func TestExtendingKeepsTheState(t *testing.T) {
	c := newCaller(t, Options{})
	rule := limit.Bucket{Capacity: 10, Refill: 1, Period: 1000}
	c.with("k", func(k Key) {
		l := Limit{Key: k}
		l.Kind, l.Token = 1, rule
		_, err := c.tx.decideAt(&l, 4)
		require.NoError(t, err)
		o := c.tx.lookup(k)
		o.Touch(77)
		o = c.tx.apply(o, &effect.Effect{
			Kind: effect.Reserve, Key: k, Field: []byte("call"), ExpireAt: epoch + 9000,
			Hold: effect.Hold{Amount: 2, Until: epoch + 500},
		})
		assert.EqualValues(t, 77, o.Accessed())
		assert.EqualValues(t, epoch+9000, o.Deadline())
		assert.Equal(t, int64(4), object.TokenIn(o).Tokens().Missing)
		d, err := c.tx.decideAt(&l, 1)
		require.NoError(t, err)
		assert.True(t, d.Allowed)
		assert.Equal(t, int64(5), object.TokenIn(c.tx.lookup(k)).Tokens().Missing)
	})
	requireSound(t, c.e)
}

// A book follows its key: renamed, copied, moved, dumped and restored, saved in one part or many.
func TestReservationsFollowTheirKey(t *testing.T) {
	for _, n := range []int{1, 3, 5000} {
		log := new(recorder)
		c := reserving(t, Options{Databases: 2, Journal: log}, n)
		for _, kind := range reservable {
			name := string(kind)
			want := fmt.Sprint(slices.Collect(c.book(name).All(0)))
			to, copied := c.e.Key([]byte("renamed")), c.e.Key([]byte("copied-"+name))
			var content object.Content
			from := c.e.Key([]byte(name))
			func() {
				c.tx.Begin(c.now, 0, []Key{from, to, copied}, true)
				defer c.tx.End()
				require.NoError(t, c.tx.Rename(from, to))
				ok, err := c.tx.Copy(to, copied, 0, true)
				require.True(t, ok)
				require.NoError(t, err)
				content, _ = c.tx.Content(to)
				// the copy keeps it
				c.tx.apply(c.tx.lookup(to), &effect.Effect{Kind: effect.Forget, Key: to, Lo: 1})
			}()
			assert.Equal(t, n-1, c.book("renamed").Len())
			assert.Equal(t, want, fmt.Sprint(slices.Collect(c.book("copied-"+name).All(0))))

			v := decoded(t, content)
			r := &object.Restored{Type: object.Type(v.Kind), Numbers: v.Numbers, Terms: v.Terms, Idle: -1, Uses: -1}
			for _, one := range v.Reservations {
				r.Reservations = append(r.Reservations, reserve.Reservation(one))
			}
			require.True(t, r.Valid())
			var before, after object.Digest
			c.with("copied-"+name, func(k Key) {
				c.tx.Persist(k)
				before = c.tx.Digest(k)
				require.NoError(t, c.tx.Restore(k, r))
				after = c.tx.Digest(k)
			})
			assert.Equal(t, before, after)
			assert.Equal(t, want, fmt.Sprint(slices.Collect(c.book("copied-"+name).All(0))))
			c.with("copied-"+name, func(k Key) {
				ok, err := c.tx.Move(k, 1)
				require.NoError(t, err)
				require.True(t, ok)
			})
			requireSound(t, c.e)
			assert.Equal(t, dump(c.e), dump(log.replayed(Options{Databases: 2})))
			loaded := New(Options{Databases: 2})
			s := c.e.Snapshot(func() {})
			for s.Step(func(effects []effect.Effect) { require.NoError(t, loaded.Apply(0, copies(effects))) }) {
			}
			assert.Equal(t, dump(c.e), dump(loaded))
			requireSound(t, loaded)
			saved := dump(c.e)
			c.tx.BeginAll(epoch, 0, false)
			c.tx.Reload()
			c.tx.End()
			assert.Equal(t, saved, dump(c.e))
		}
	}
}

// A sorted set without members exists as long as it has reservations.
func TestLogsMayBeEmptyWhileTheyHaveReservations(t *testing.T) {
	c := reserving(t, Options{}, 1)
	c.with("zset", func(k Key) {
		c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 1}})
		removed, err := c.tx.ZRem(k, [][]byte{[]byte("a")})
		require.NoError(t, err)
		assert.Equal(t, 1, removed)
		assert.True(t, c.tx.Exists(k))
		n, err := c.tx.Refund(k, 5, nil)
		require.NoError(t, err)
		assert.Zero(t, n)
		c.tx.apply(c.tx.lookup(k), &effect.Effect{Kind: effect.Forget, Key: k, Lo: 1})
		assert.False(t, c.tx.Exists(k))
	})
	requireSound(t, c.e)
}

// Reservations of a clock that was ahead lapse as much later as they would have.
func TestMoveBackMovesReservations(t *testing.T) {
	const latest, by = epoch + 1e9, int64(1e9)
	for _, kind := range reservable {
		e := New(Options{})
		reserve := func(call string, amount, until int64) effect.Effect {
			return effect.Effect{
				Kind: effect.Reserve, Key: Key{Name: []byte("k")}, Field: []byte(call), Hi: int(object.FormNamed(kind)),
				Hold: effect.Hold{Amount: amount, Until: until}, ExpireAt: latest + 1e6,
			}
		}
		require.NoError(t, e.Apply(latest, []effect.Effect{
			reserve("open", 3, latest+5000), reserve("settled", 0, latest-7), reserve("old", 2, epoch-1),
		}))
		assert.Equal(t, 1, e.MoveBack(latest, epoch))
		tx := e.NewTx()
		k := e.Key([]byte("k"))
		tx.Begin(epoch, 0, []Key{k}, false)
		o := tx.find(0, k)
		got := map[string]int64{}
		for r := range object.ExtensionOf(o).Book.All(0) {
			got[string(r.Call)] = r.Until
		}
		assert.Equal(t, map[string]int64{"open": epoch + 5000, "settled": latest - 7 - by, "old": epoch - 1}, got)
		assert.Equal(t, int64(epoch+1e6), o.Deadline())
		tx.End()
	}
}
