package engine

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// modelString is the expected content of a key.
type modelString struct {
	value    string
	expireAt int64 // 0: never
}

// stringModel is a reference model of a keyspace of strings.
type stringModel map[string]modelString

// at removes the expired keys.
func (m stringModel) at(now int64) {
	for name, s := range m {
		if s.expireAt != 0 && now > s.expireAt {
			delete(m, name)
		}
	}
}

func (m stringModel) set(name, value string, mode SetMode) bool {
	old, exists := m[name]
	if mode.NX && exists || mode.XX && !exists {
		return false
	}
	s := modelString{value, mode.ExpireAt}
	if mode.KeepTTL && old.expireAt != 0 {
		s.expireAt = old.expireAt
	}
	m[name] = s
	return true
}

func (m stringModel) write(name string, offset int, value string) int {
	s := m[name]
	if end := offset + len(value); end > len(s.value) {
		s.value += string(make([]byte, end-len(s.value)))
	}
	s.value = s.value[:offset] + value + s.value[offset+len(value):]
	m[name] = s
	return len(s.value)
}

func TestStringsMatchModel(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	log := new(recorder)
	o := Options{Shards: 4, Seed: [2]uint64{seed, 1}, Journal: log}
	c, model := newCaller(t, o), make(stringModel)
	text := func() string { return "abcdefgh"[:rnd.IntN(9)] }

	for step := range 20_000 {
		c.now += rnd.Int64N(3)
		model.at(c.now)
		name := fmt.Sprint("k", rnd.IntN(6))
		at := fmt.Sprintf("step %d of seed %d", step, seed)
		c.with(name, func(k Key) {
			switch rnd.IntN(6) {
			case 0:
				value, ok, err := c.tx.Get(k)
				require.NoError(t, err, at)
				want, exists := model[name]
				require.Equal(t, exists, ok, at)
				require.Equal(t, want.value, string(value), at)
			case 1, 2:
				mode := SetMode{NX: rnd.IntN(3) == 0, KeepTTL: rnd.IntN(3) == 0}
				mode.XX = !mode.NX && rnd.IntN(3) == 0
				if rnd.IntN(2) == 0 {
					mode.ExpireAt = c.now + rnd.Int64N(50) - 5
				}
				value := text()
				require.Equal(t, model.set(name, value, mode), c.tx.Set(k, []byte(value), mode), at)
			case 3:
				value := text()
				length, err := c.tx.Append(k, []byte(value))
				require.NoError(t, err, at)
				require.Equal(t, model.write(name, len(model[name].value), value), length, at)
			case 4:
				value, offset, want := text(), rnd.IntN(20), len(model[name].value)
				if value != "" {
					want = model.write(name, offset, value)
				}
				length, err := c.tx.SetRange(k, int64(offset), []byte(value))
				require.NoError(t, err, at)
				require.Equal(t, want, length, at)
			case 5:
				_, exists := model[name]
				require.Equal(t, exists, c.tx.Delete(k), at)
				delete(model, name)
			}
		})
	}
	requireSound(t, c.e)
	require.Equal(t, dump(c.e), dump(log.replayed(o)), "replayed, seed %d", seed)
}

// A call has the smallest possible effect, and none if it changes nothing.
func TestStringEffectsAreMinimal(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	set := func(value string, mode SetMode) func(Key) {
		return func(k Key) { c.tx.Set(k, []byte(value), mode) }
	}
	for _, step := range []struct {
		what string
		do   func(k Key)
		want []effect.Kind
	}{
		{"a new key", set("one", SetMode{}), []effect.Kind{effect.String}},
		{"the same value", set("one", SetMode{}), nil},
		{"a value of the same length", set("two", SetMode{}), []effect.Kind{effect.Splice}},
		{"a longer value", set("three", SetMode{}), []effect.Kind{effect.String}},
		{"a deadline", set("three", SetMode{ExpireAt: epoch + 9}), []effect.Kind{effect.String}},
		{"a kept deadline", set("seven", SetMode{KeepTTL: true}), []effect.Kind{effect.Splice}},
		{"the same value and a kept deadline", set("seven", SetMode{KeepTTL: true, ExpireAt: 1}), nil},
		{"without the deadline", set("seven", SetMode{}), []effect.Kind{effect.String}},
		{"NX for an existing key", set("x", SetMode{NX: true}), nil},
		{"an empty append", func(k Key) { c.tx.Append(k, nil) }, nil},
		{"appended", func(k Key) { c.tx.Append(k, []byte("ty")) }, []effect.Kind{effect.Splice}},
		{"an empty write past the end", func(k Key) { c.tx.SetRange(k, 1<<40, nil) }, nil},
		{"a write past the largest size", func(k Key) { c.tx.SetRange(k, object.MaxString, []byte("x")) }, nil},
		{"written", func(k Key) { c.tx.SetRange(k, 9, []byte("x")) }, []effect.Kind{effect.Splice}},
	} {
		log.calls = nil
		c.with("k", step.do)
		var kinds []effect.Kind
		for _, f := range log.effects() {
			kinds = append(kinds, f.Kind)
		}
		assert.Equal(t, step.want, kinds, step.what)
	}
	c.with("k", func(k Key) {
		value, _, _ := c.tx.Get(k)
		assert.Equal(t, "seventy\x00\x00x", string(value))
	})
	c.with("k2", func(k Key) {
		c.tx.Append(k, nil)
		assert.True(t, c.tx.Exists(k), "an empty append to a missing key creates an empty string")
	})
}

func TestStringsAndHashesRefuseOtherTypes(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	c.with("h", func(k Key) { c.tx.HSet(k, [][]byte{[]byte("f"), []byte("v")}) })
	c.with("s", func(k Key) { c.tx.Set(k, []byte("v"), SetMode{}) })
	log.calls = nil
	c.with("h", func(k Key) {
		_, ok, err := c.tx.Get(k)
		assert.Equal(t, ErrWrongType, err)
		assert.False(t, ok)
		_, err = c.tx.Append(k, []byte("x"))
		assert.Equal(t, ErrWrongType, err)
		_, err = c.tx.SetRange(k, 0, nil)
		assert.Equal(t, ErrWrongType, err)
	})
	c.with("s", func(k Key) {
		_, err := c.tx.Hash(k)
		assert.Equal(t, ErrWrongType, err)
		_, err = c.tx.HSet(k, [][]byte{[]byte("f"), []byte("v")})
		assert.Equal(t, ErrWrongType, err)
		_, err = c.tx.HDel(k, [][]byte{[]byte("f")})
		assert.Equal(t, ErrWrongType, err)
	})
	assert.Empty(t, log.calls)
}

func TestLargestStringIsEnforced(t *testing.T) {
	assert.False(t, tooLong(object.MaxString-1, []byte("x")))
	assert.True(t, tooLong(object.MaxString, []byte("x")))
	assert.False(t, tooLong(object.MaxString, nil))

	c := newCaller(t, Options{})
	c.with("k", func(k Key) {
		for _, offset := range []int64{object.MaxString - 1, object.MaxString, math.MaxInt64} {
			_, err := c.tx.SetRange(k, offset, []byte("xy"))
			assert.Equal(t, ErrStringTooLong, err, offset)
		}
		length, err := c.tx.SetRange(k, math.MaxInt64, nil)
		assert.NoError(t, err)
		assert.Zero(t, length)
		assert.False(t, c.tx.Exists(k))
	})
}

// Appending byte by byte allocates when the capacity grows by a fraction of the length, not with
// every byte.
func TestAppendIsAmortised(t *testing.T) {
	const length = 100_000
	assert.Less(t, testing.AllocsPerRun(1, func() {
		c := newCaller(t, Options{Shards: 1})
		one := []byte("x")
		c.with("k", func(k Key) {
			for range length {
				c.tx.Append(k, one)
			}
			value, _, _ := c.tx.Get(k)
			require.Equal(t, bytes.Repeat(one, length), value)
		})
	}), 300.0)
}

func BenchmarkStrings(b *testing.B) {
	c := newCaller(b, Options{Journal: discard{}})
	k := c.e.Key([]byte("k"))
	values := [2][]byte{[]byte("1000000"), []byte("1000001")}
	run := func(name string, do func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.tx.Begin(epoch, 0, []Key{k}, true)
				do(i)
				c.tx.End()
			}
		})
	}
	run("Set", func(i int) { c.tx.Set(k, values[i&1], SetMode{}) })
	run("SetEX", func(i int) { c.tx.Set(k, values[0], SetMode{ExpireAt: epoch + int64(i)}) })
	run("Get", func(int) { c.tx.Get(k) })
	run("SetRange", func(i int) { c.tx.SetRange(k, 0, values[i&1]) })
}
