package overrides

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// A policy of a cluster that is deleted and set again, or has had another algorithm, does not get
// its former overrides back, and they are dropped in the background.
func TestFormerOverridesOfSharedPoliciesDoNotComeBack(t *testing.T) {
	shared := new(policy.Shared)
	e := engine.New(engine.Options{Policies: shared})
	parse := func(definition string) rule.Definition {
		d, err := rule.ParsePolicy([]byte("p"), bytes.Fields([]byte(definition)))
		require.NoError(t, err)
		return d
	}
	use := func(since uint64, definition string) {
		shared.Set(shared.Version()+1, []*policy.Policy{policy.NewSince(parse(definition), since)}, false)
	}
	key := func(id string) engine.Key { return e.Key([]byte("p:{" + id + "}")) }
	override := func(id, definition string) {
		require.NoError(t, Set(e, 1, key(id), []byte(id), parse(definition), 2000))
	}
	limitOf := func(id string) int64 {
		tx := e.NewTx()
		keys := []engine.Key{key(id)}
		tx.Begin(1, 0, keys, true)
		defer tx.End()
		d, err := tx.Check(engine.CheckCall{Names: [][]byte{[]byte("p")}, Keys: keys, Costs: []int64{0}})
		require.NoError(t, err)
		return d.Limit
	}
	sweeper := NewSweeper(e)
	left := func() int {
		for sweeper.Step(1) {
		}
		return int(e.Overrides().N)
	}
	use(1, "SLIDE 1 1h")
	for i := range 1000 {
		override(fmt.Sprint(i), "SLIDE 2 1h")
	}
	assert.EqualValues(t, 2, limitOf("7"))
	use(1, "SLIDE 3 1h")
	override("7", "SLIDE 4 1h")
	assert.EqualValues(t, 4, limitOf("7"))
	assert.Equal(t, 1000, left())
	use(3, "SLIDE 3 1h") // the policy was deleted meanwhile
	assert.EqualValues(t, 3, limitOf("7"))
	override("8", "SLIDE 5 1h")
	assert.Equal(t, 1, left())
	assert.EqualValues(t, 5, limitOf("8"))
	shared.Set(shared.Version()+1, nil, false)
	assert.Equal(t, 0, left())
}
