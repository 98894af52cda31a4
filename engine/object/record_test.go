package object

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/effect"
)

// Each kind of effect that sets a state is of one form, and each form has one.
func TestFormsOfEffects(t *testing.T) {
	forms := map[Form]bool{}
	for _, k := range effect.Kinds() {
		form := FormSetBy(k)
		_, isState := fitsState(&effect.Effect{Kind: k}, nil)
		assert.Equal(t, isState, form != 0, k)
		forms[form] = true
	}
	assert.Len(t, forms, int(Forms)-1) // the hits of a Log are added
}

// A record has its name, however long, and keeps its state under another.
func TestRecordsHaveTheirNames(t *testing.T) {
	for form := Form(1); form < Forms; form++ {
		for _, n := range []int{0, 1, 12, 30, 31, 254, 255, 256, 100_000} {
			name := strings.Repeat("n", n)
			o := NewRecord(form, []byte(name))
			assert.Equal(t, form, FormOf(o))
			assert.Equal(t, name, o.Name())
			assert.Len(t, RecordOf(o), form.Size(n))
			o.SetDeadline(17)
			o.Touch(3)

			c := Rename(o, name+"x")
			assert.Equal(t, name, o.Name())
			assert.Equal(t, name+"x", c.Name())
			assert.EqualValues(t, 17, c.Deadline())
			assert.EqualValues(t, 3, c.Accessed())
			if state, ok := o.(State); ok {
				assert.Equal(t, state.Numbers(), c.(State).Numbers())
			}
			assert.InDelta(t, form.Size(n), o.Weight(), 8)
		}
	}
	s := NewString([]byte("name"))
	assert.Same(t, s, Rename(s, "other"))
	assert.Equal(t, "other", s.Name())
	assert.Nil(t, RecordOf(s))
}

// The weight of a limiter is what docs/OPERATE.md says for sizing.
func TestWeightOfALimiter(t *testing.T) {
	for _, n := range []int{0, 1, 7, 12, 15, 16, 40, 200} {
		weight := int64(10 + (33+n+7)/8*8)
		name := []byte(strings.Repeat("n", n))
		assert.Equal(t, weight, Weigh(NewRecord(FormToken, name)))
		assert.Equal(t, weight, Weigh(NewRecord(FormFixed, name)))
		assert.Equal(t, weight+8, Weigh(NewRecord(FormCounter, name)))
	}
}
