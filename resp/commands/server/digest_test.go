package server_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/object"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// merged merges the digests of groups.
func merged(digests ...string) string {
	var r wire.Reply
	m := command.Merger{Reply: &r}
	for i := range digests {
		m.Groups = append(m.Groups, i)
	}
	m.On = func(group int, _ [][]byte) wire.Value { return wire.ParseValue([]byte(digests[group])) }
	command.Table["debug"].Sub([]byte("digest")).Merge(&m)
	return string(r.B)
}

func TestDigestsOfGroupsAreThatOfOneDatabase(t *testing.T) {
	var number, one, two, all object.Digest
	number.MixNumber(0)
	one.MixNumber(0)
	one.Add([]byte("a"))
	two.MixNumber(0)
	two.Add([]byte("b"))
	all.MixNumber(0)
	all.Add([]byte("b"))
	all.Add([]byte("a"))
	empty := "+" + strings.Repeat("0", 40) + "\r\n"
	text := func(d object.Digest) string { return "+" + hex.EncodeToString(d[:]) + "\r\n" }
	assert.Equal(t, empty, merged(empty, empty))
	assert.Equal(t, text(one), merged(empty, text(one)))
	assert.Equal(t, text(all), merged(text(one), text(two)))
}
