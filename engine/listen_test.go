package engine

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/engine/eviction"
)

// told has what an engine has told, of calls and of nobody's.
type told struct{ calls, others []string }

func (h *told) Hear(c Changes) { h.calls = append(h.calls, texts(c)...) }

func texts(c Changes) (list []string) {
	for _, x := range append(c.Named, c.Rest...) {
		list = append(list, fmt.Sprint(x.Kind, " ", x.Key, " ", x.Reason))
	}
	return list
}

func listen(c *caller) *told {
	h := new(told)
	c.e.Memory().Listen(func(_ *Engine, x Changes, _ Position) { h.others = append(h.others, texts(x)...) })
	c.tx.Listener = h
	return h
}

// Nothing is told while nobody listens, nor of what has happened elsewhere.
func TestChangesAreTold(t *testing.T) {
	c := newCaller(t, Options{Shards: 4})
	h := listen(c)
	set := func(name string, at int64) {
		c.with(name, func(k Key) { c.tx.Set(k, make([]byte, 100), SetMode{ExpireAt: at}) })
	}
	set("quiet", 0)
	assert.Empty(t, h.calls)
	c.e.Memory().Tell(true, false)
	set("a", c.now+10)
	set("a", c.now+10)
	assert.Equal(t, []string{"string a 0", "string a 0"}, h.calls, "also if nothing has changed")
	assert.NoError(t, c.e.Apply(c.now, []effect.Effect{{Kind: effect.Delete, Key: c.e.Key([]byte("quiet"))}}))
	assert.Empty(t, h.others)

	watch(c.e.NewSweeper()).round(c.now + 1000)
	assert.Equal(t, []string{fmt.Sprint("delete a ", change.Expired)}, h.others)
	h.calls = nil
	c.now += 2000
	set("b", c.now+10)
	c.now += 1000
	c.with("b", func(k Key) { c.tx.Exists(k) })
	assert.Equal(t, []string{"string b 0"}, h.calls, "without background work nothing is deleted")

	c.with("c", func(k Key) { c.tx.Set(k, make([]byte, 8*reportGrain), SetMode{}) })
	c.e.SetEviction(eviction.AllKeysLRU, DefaultSamples)
	c.e.SetBudget(0)
	for c.e.Crowded() && c.tx.MakeRoom(c.now) {
	}
	c.e.SetBudget(math.MaxInt64)
	assert.Contains(t, h.calls, fmt.Sprint("delete c ", change.Evicted))
}
