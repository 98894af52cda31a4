package engine

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/internal/bitmap"
)

// bitsOf returns the bits of a string as text.
func bitsOf(value []byte) (text string) {
	for _, b := range value {
		text += fmt.Sprintf("%08b", b)
	}
	return text
}

func TestBitCountAndFindMatchText(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		value := make([]byte, 1+rnd.IntN(40))
		for i := range value {
			value[i] = [...]byte{0, 0xff, byte(rnd.Uint32())}[rnd.IntN(3)]
		}
		text := bitsOf(value)
		from := rnd.IntN(len(text) + 1)
		to := from + rnd.IntN(len(text)+1-from)
		require.EqualValues(
			t,
			bytes.Count([]byte(text[from:to]), []byte("1")),
			bitmap.Count(value, int64(from), int64(to)),
			"%s %d %d, seed %d",
			text,
			from,
			to,
			seed,
		)
		for bit, set := range []bool{false, true} {
			want := bytes.IndexByte([]byte(text[from:to]), byte('0'+bit))
			if want >= 0 {
				want += from
			}
			require.EqualValues(
				t,
				want,
				bitmap.Find(value, set, int64(from), int64(to)),
				"%t: %s %d %d, seed %d",
				set,
				text,
				from,
				to,
				seed,
			)
		}
	}
}

func TestChangeBitsMatchesText(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	log := new(recorder)
	o := Options{Shards: 1, Journal: log}
	c := newCaller(t, o)
	for range 20_000 {
		f := bitmap.Field{Offset: rnd.Int64N(100), Bits: 1 + rnd.IntN(63), Signed: rnd.IntN(2) == 0}
		if f.Signed {
			f.Bits = 1 + rnd.IntN(64)
		}
		n := int64(rnd.Uint64())
		c.with("k", func(k Key) {
			require.NoError(t, c.tx.Stretch(k, f.End()))
			value, _, _ := c.tx.Get(k)
			text := []byte(bitsOf(value))
			old, now, ok, err := c.tx.ChangeBits(k, bitmap.Change{Field: f, N: n})
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, integerOf(text[f.Offset:][:f.Bits], f.Signed), old, "%+v, seed %d", f, seed)
			copy(text[f.Offset:], fmt.Sprintf("%064b", uint64(n))[64-f.Bits:])
			value, _, _ = c.tx.Get(k)
			require.Equal(t, string(text), bitsOf(value), "%+v = %d, seed %d", f, n, seed)
			require.Equal(t, now, f.In(value))
			require.Equal(t, f.In(value), f.In(value[:f.End()]))
		})
	}
	requireSound(t, c.e)
	require.Equal(t, dump(c.e), dump(log.replayed(o)), "replayed, seed %d", seed)
}

func integerOf(text []byte, signed bool) int64 {
	n, _ := new(big.Int).SetString(string(text), 2)
	if signed && text[0] == '1' {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(text))))
	}
	return n.Int64()
}

// An effect on bits contains the changed bytes, and a call that changes nothing has no effect.
func TestBitChangesRecordOnlyChangedBytes(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	bit := func(offset int64, on bool) func(Key) { return func(k Key) { c.tx.SetBit(k, offset, on) } }
	for _, step := range []struct {
		what  string
		do    func(k Key)
		bytes int
	}{
		{"a new key", bit(9, false), 1},
		{"the same again", bit(9, false), 0},
		{"set", bit(9, true), 1},
		{"stretched", bit(8*8, false), 1},
		{"not lengthened", func(k Key) { c.tx.Stretch(k, 9) }, 0},
		{"a field", func(k Key) {
			c.tx.ChangeBits(k, bitmap.Change{Field: bitmap.Field{Offset: 4, Bits: 8}, N: 0xff})
		}, 2},
		{"the same field again", func(k Key) {
			c.tx.ChangeBits(k,
				bitmap.Change{Field: bitmap.Field{Offset: 4, Bits: 8}, N: 0xff})
		}, 0},
		{"a field that fails on overflow", func(k Key) {
			c.tx.ChangeBits(k, bitmap.Change{Field: bitmap.Field{Offset: 4, Bits: 8}, N: 1, Add: true,
				Overflow: bitmap.OverflowFail})
		}, 0},
	} {
		log.calls = nil
		c.with("k", step.do)
		size := 0
		for _, f := range log.effects() {
			require.Equal(t, effect.Splice, f.Kind, step.what)
			size += len(f.Value)
		}
		assert.Equal(t, step.bytes, size, step.what)
	}
	c.with("k", func(k Key) {
		value, _, _ := c.tx.Get(k)
		assert.Equal(t, "\x0f\xf0\x00\x00\x00\x00\x00\x00\x00", string(value))
	})
}

// Shared values do not change when the key changes.
func TestSharedStringsDoNotChange(t *testing.T) {
	c := newCaller(t, Options{})
	for _, length := range []int{10, object.SmallBytes + 1} {
		c.with("k", func(k Key) {
			c.tx.Set(k, make([]byte, length), SetMode{})
			value, ok, err := c.tx.Share(k)
			require.NoError(t, err)
			require.True(t, ok)
			c.tx.SetBit(k, 1, true)
			c.tx.Append(k, []byte("x"))
			c.tx.SetRange(k, 0, []byte("abc"))
			assert.Equal(t, make([]byte, length), value)
		})
	}
}

// A string is not lengthened beyond the budget of all keys.
func TestStretchRespectsTheBudget(t *testing.T) {
	c := newCaller(t, Options{})
	c.e.SetBudget(10 << 20)
	c.with("k", func(k Key) {
		_, err := c.tx.SetBit(k, 8*(10<<20), true)
		assert.Equal(t, ErrOutOfMemory, err)
		assert.Equal(t, ErrOutOfMemory, c.tx.Stretch(k, 11<<20))
		assert.Equal(t, ErrOutOfMemory, c.tx.MayStretch(k, 11<<20))
		_, err = c.tx.SetRange(k, 11<<20, []byte("x"))
		assert.Equal(t, ErrOutOfMemory, err)
		assert.False(t, c.tx.Exists(k))
		_, err = c.tx.SetBit(k, 8*(6<<20), true)
		assert.NoError(t, err)
	})
	to, from := c.e.Key([]byte("to")), c.e.Key([]byte("k"))
	c.tx.Begin(c.now, 0, []Key{to, from}, true)
	_, err := c.tx.BitOp(bitmap.Not, to, []Key{from})
	c.tx.End()
	assert.Equal(t, ErrOutOfMemory, err)

	c.tx.MakeRoomFor(c.now, 11<<20)
	assert.EqualValues(t, 6<<20+1, c.e.StringLength(0, from), "nothing is evicted for more than the budget")
	c.e.SetEviction(eviction.AllKeysRandom, 5)
	c.tx.MakeRoomFor(c.now, 6<<20)
	assert.Zero(t, c.e.StringLength(0, from))
}

// A bound below the budget is none: what fits the budget fits.
func TestMakeRoomForEndsWhateverTheBound(t *testing.T) {
	for _, policy := range []eviction.Policy{eviction.NoEviction, eviction.AllKeysRandom} {
		c := newCaller(t, Options{})
		c.e.SetEviction(policy, 5)
		c.e.SetBudget(10 << 20)
		c.e.SetBound(1 << 20)
		c.with("k", func(k Key) { c.tx.Set(k, make([]byte, 3<<20), SetMode{}) })
		done := make(chan bool, 1)
		go func() { done <- c.tx.MakeRoomFor(c.now, 5<<20) }()
		select {
		case room := <-done:
			assert.True(t, room)
		case <-time.After(10 * time.Second):
			t.Fatal("MakeRoomFor does not return")
		}
		assert.False(t, c.e.Memory().Full())
		c.e.SetBudget(10 << 20)
		c.e.SetBound(20 << 20)
		assert.EqualValues(t, 3<<20, c.e.StringLength(0, c.e.Key([]byte("k"))))
		assert.True(t, c.tx.MakeRoomFor(c.now, 9<<20), "the bound is above the budget")
	}
}
