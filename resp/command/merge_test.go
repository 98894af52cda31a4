package command_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// replies merges the values of groups with fixed replies. The reply has spaces for line
// ends.
func replies(merge func(*command.Merger), words string, groups map[int]string) string {
	reply := wire.Reply{}
	j := command.Merger{Reply: &reply, Random: rand.New(rand.NewPCG(1, 2))}
	for _, word := range strings.Fields(words) {
		j.Words = append(j.Words, []byte(word))
	}
	for group := range 8 {
		if _, led := groups[group]; led {
			j.Groups = append(j.Groups, group)
		}
	}
	j.On = func(group int, words [][]byte) wire.Value {
		text := groups[group]
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, words[1])
		}
		return wire.ParseValue([]byte(strings.ReplaceAll(text, " ", "\r\n")))
	}
	j.Keys = func(group int) wire.Value {
		if text := groups[group]; strings.HasPrefix(text, "-BUSY") {
			return wire.ParseValue([]byte(strings.ReplaceAll(text, " ", "\r\n")))
		}
		return wire.Value{Kind: ':', Integer: int64(len(groups[group]) - len("$-1 "))}
	}
	merge(&j)
	return strings.ReplaceAll(string(reply.B), "\r\n", " ")
}

func TestValuesOfGroupsAreMerged(t *testing.T) {
	assert.Equal(t, ":7 ", replies(command.MergeSum, "DBSIZE", map[int]string{0: ":3 ", 5: ":4 "}))
	assert.Equal(t, ":0 ", replies(command.MergeSum, "DBSIZE", nil))
	assert.Equal(t, "-ERR_x ", replies(command.MergeSum, "DBSIZE", map[int]string{0: ":3 ", 5: "-ERR_x "}))
	assert.Equal(t, "*3 $1 a $1 b $1 c ",
		replies(command.MergeArrays, "KEYS *", map[int]string{0: "*2 $1 a $1 b ", 1: "*0 ", 5: "*1 $1 c "}))
	assert.Empty(t, replies(command.MergeArrays, "KEYS *", map[int]string{0: "*0 ", 1: ""}),
		"the client has disconnected")
	assert.Equal(t, "+OK ", replies(command.MergeFlush, "FLUSHALL", nil))
	assert.Equal(t, "-ERR_x ", replies(command.MergeFlush, "FLUSHALL", map[int]string{0: "-ERR_x ", 1: "+OK "}))
	assert.Equal(t, "-UNCERTAIN the keys of some slots are deleted, those of others are not: send the call again. "+
		"ERR_x ",
		replies(command.MergeFlush, "FLUSHALL", map[int]string{0: "+OK ", 1: "-ERR_x "}))
	assert.Equal(t, "$1 a ", replies(command.MergeDraw, "RANDOMKEY", map[int]string{0: "$-1 ", 3: "$1 a "}),
		"a group without keys is not drawn")
}

func TestScanWalksThroughGroups(t *testing.T) {
	cursor := func(group, within uint64) string { return fmt.Sprint(within<<10 | group) }
	reply := func(cursor string, names string) string {
		return fmt.Sprintf("*2 $%d %s %s", len(cursor), cursor, names)
	}
	groups := map[int]string{1: "*2 $1 7 *1 $3 k%s ", 4: "*2 $1 0 *1 $3 l%s "}
	scan := func(words string) string { return replies(command.MergeScan, words, groups) }
	assert.Equal(t, reply(cursor(1, 7), "*1 $3 k0 "), scan("SCAN 0"))
	assert.Equal(t, reply(cursor(1, 7), "*1 $3 k9 "), scan("SCAN "+cursor(1, 9)))
	assert.Equal(t, reply("0", "*1 $3 l5 "), scan("SCAN "+cursor(4, 5)), "the last group ends")
	assert.Equal(t, reply("0", "*1 $3 l0 "), scan("SCAN "+cursor(2, 5)),
		"a group that has moved away is left out")
	groups[1] = "*2 $1 0 *0 "
	assert.Equal(t, reply(cursor(4, 0), "*0 "), scan("SCAN 0"), "the next group follows")
}
