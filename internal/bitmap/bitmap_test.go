package bitmap

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBitCountAndFindReadBits(t *testing.T) {
	value := []byte{0b1000_0001, 0b0000_0011}
	assert.True(t, Bit(value, 0))
	assert.False(t, Bit(value, 1))
	assert.True(t, Bit(value, 15))
	assert.False(t, Bit(value, 16), "bits behind the end are 0")
	assert.EqualValues(t, 4, Count(value, 0, 16))
	assert.EqualValues(t, 1, Count(value, 1, 8))
	assert.EqualValues(t, 7, Find(value, true, 1, 16))
	assert.EqualValues(t, -1, Find(value, true, 8, 14))
}

func TestChangeHandlesOverflow(t *testing.T) {
	unsigned, signed := Field{Bits: 8}, Field{Bits: 8, Signed: true}
	for _, c := range []struct {
		change   Change
		old, now int64
		ok       bool
	}{
		{Change{Field: unsigned, N: 10, Add: true, Overflow: OverflowWrap}, 250, 4, true},
		{Change{Field: unsigned, N: 10, Add: true, Overflow: OverflowSat}, 250, 255, true},
		{Change{Field: unsigned, N: 10, Add: true, Overflow: OverflowFail}, 250, 0, false},
		{Change{Field: signed, N: -10, Add: true, Overflow: OverflowSat}, -125, -128, true},
		{Change{Field: signed, N: 200, Overflow: OverflowWrap}, 0, -56, true},
		{Change{Field: Field{Bits: 64, Signed: true}, N: 1, Add: true, Overflow: OverflowSat}, math.MaxInt64,
			math.MaxInt64, true},
	} {
		now, ok := c.change.Result(c.old)
		assert.Equal(t, c.ok, ok, "%+v", c)
		assert.Equal(t, c.now, now, "%+v", c)
	}
	value := []byte{0xff, 0x0f}
	field := Field{Offset: 4, Bits: 8}
	assert.EqualValues(t, 0xf0, field.In(value))
	assert.Equal(t, []byte{0xfa, 0xbf}, field.With(value, 0xab))
}
