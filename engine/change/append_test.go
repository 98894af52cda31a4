package change

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/effect"
)

// A call that changes a million elements of a key has two changes, the first and the last.
func TestChangesOfElementsAreJoined(t *testing.T) {
	var list []Change
	for i := range 1000 {
		list = Append(list, Change{Kind: effect.Add, Key: "k", Created: i == 0, ExpireAt: int64(i)})
	}
	assert.Equal(t, []Change{
		{Kind: effect.Add, Key: "k", Created: true}, {Kind: effect.Add, Key: "k", ExpireAt: 999},
	}, list)
	for _, c := range []Change{
		{Kind: effect.Add, Key: "k", Event: "zadd"}, {Kind: effect.Add, Key: "k"}, {Kind: effect.Remove, Key: "k"},
		{Kind: effect.Remove, Key: "other"}, {Kind: effect.Remove, Key: "other", DB: 1},
		{Kind: effect.String, Key: "k"}, {Kind: effect.String, Key: "k"}, {Kind: effect.String, Key: "k"},
	} {
		before := len(list)
		list = Append(list, c)
		if c.Event == "" {
			assert.Len(t, list, before+1)
		}
	}
}
