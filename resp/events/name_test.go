package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/resp/events"
)

// Which events the commands of Redis have, and their order, is recorded from Redis in package
// integration.

func named(call string, list ...change.Change) (text string) {
	var words [][]byte
	for _, w := range strings.Fields(call) {
		words = append(words, []byte(w))
	}
	for _, c := range events.Name(strings.ToLower(string(words[0])), words, list) {
		text += c.Event + " " + c.Key + "; "
	}
	return text
}

func TestEffectsOfACallAreOneEvent(t *testing.T) {
	add := change.Change{Kind: effect.Insert, Key: "s"}
	created := add
	created.Created = true
	assert.Equal(t, "new s; sadd s; ", named("SADD s a b", created, add))
	last := change.Change{Kind: effect.Remove, Key: "s", Gone: true}
	assert.Equal(t, "srem s; del s; ", named("SREM s a b", change.Change{Kind: effect.Remove, Key: "s"}, last))
}

// A limiter has one event for each call that changes it.
func TestLimitersHaveTheNameOfTheCommand(t *testing.T) {
	list := []change.Change{
		{Kind: effect.RemoveSpan, Key: "k"}, {Kind: effect.Add, Key: "k"}, {Kind: effect.Expire, Key: "k", ExpireAt: 9},
	}
	assert.Equal(t, "rl.lease k; ", named("RL.LEASE k 5 1m a", list...))
	gone := change.Change{Kind: effect.Delete, Key: "k", Gone: true}
	assert.Equal(t, "del k; ", named("RL.REFUND k 5", gone))
}

func TestChangesOfNobodysCalls(t *testing.T) {
	assert.Equal(t, "expired a; evicted b; ", func() (text string) {
		for _, c := range events.Name("", nil, []change.Change{
			{Kind: effect.Delete, Reason: change.Expired, Key: "a"},
			{Kind: effect.Delete, Reason: change.Evicted, Key: "b"},
		}) {
			text += c.Event + " " + c.Key + "; "
		}
		return text
	}())
}

func TestClassesAreShownAsInRedis(t *testing.T) {
	for letters, want := range map[string]string{
		"": "", "KEA": "AKE", "nK": "nK", "An": "A", "mA": "Am", "KEg$lshzxetdmn": "AKEm", "KElx": "lxKE",
	} {
		classes, ok := change.Parse(letters)
		assert.True(t, ok)
		assert.Equal(t, want, classes.String(), letters)
	}
	_, ok := change.Parse("KEq")
	assert.False(t, ok)
}
