package clustering

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/object"
	"rlserver/resp/wire"
)

// replies runs a join on groups with fixed replies, and returns its reply with spaces for ends of
// lines.
func replies(join func(*Joined), words string, groups map[int]string) string {
	reply := wire.Reply{}
	j := Joined{Reply: &reply, Random: rand.New(rand.NewPCG(1, 2))}
	for _, word := range strings.Fields(words) {
		j.Words = append(j.Words, []byte(word))
	}
	for group := range 8 {
		if _, led := groups[group]; led {
			j.Groups = append(j.Groups, group)
		}
	}
	j.On = func(group int, words [][]byte) ([]byte, bool) {
		text := groups[group]
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, words[1])
		}
		return []byte(strings.ReplaceAll(text, " ", "\r\n")), strings.HasPrefix(text, "-")
	}
	j.Keys = func(group int) int { return len(groups[group]) - len("$-1 ") }
	join(&j)
	return strings.ReplaceAll(string(reply.B), "\r\n", " ")
}

func TestRepliesOfGroupsAreJoined(t *testing.T) {
	assert.Equal(t, ":7 ", replies(addUp, "DBSIZE", map[int]string{0: ":3 ", 5: ":4 "}))
	assert.Equal(t, ":0 ", replies(addUp, "DBSIZE", nil))
	assert.Equal(t, "-ERR_x ", replies(addUp, "DBSIZE", map[int]string{0: ":3 ", 5: "-ERR_x "}))
	assert.Equal(t, "*3 $1 a $1 b $1 c ",
		replies(joinArrays, "KEYS *", map[int]string{0: "*2 $1 a $1 b ", 1: "*0 ", 5: "*1 $1 c "}))
	assert.Empty(t, replies(joinArrays, "KEYS *", map[int]string{0: "*0 ", 1: ""}), "the client has disconnected")
	assert.Equal(t, "+OK ", replies(lastReply, "FLUSHALL", nil))
	assert.Equal(t, "-ERR_x ", replies(lastReply, "FLUSHALL", map[int]string{0: "-ERR_x ", 1: "+OK "}))
	assert.Equal(t, "$1 a ", replies(drawGroup, "RANDOMKEY", map[int]string{0: "$-1 ", 3: "$1 a "}),
		"a group without keys is not drawn")
}

func TestScanWalksThroughGroups(t *testing.T) {
	cursor := func(group, within uint64) string { return fmt.Sprint(within<<cursorGroupBits | group) }
	reply := func(cursor string, names string) string {
		return fmt.Sprintf("*2 $%d %s %s", len(cursor), cursor, names)
	}
	groups := map[int]string{1: "*2 $1 7 *1 $3 k%s ", 4: "*2 $1 0 *1 $3 l%s "}
	assert.Equal(t, reply(cursor(1, 7), "*1 $3 k0 "), replies(scanGroups, "SCAN 0", groups))
	assert.Equal(t, reply(cursor(1, 7), "*1 $3 k9 "), replies(scanGroups, "SCAN "+cursor(1, 9), groups))
	assert.Equal(t, reply("0", "*1 $3 l5 "), replies(scanGroups, "SCAN "+cursor(4, 5), groups), "the last group ends")
	assert.Equal(t, reply("0", "*1 $3 l0 "), replies(scanGroups, "SCAN "+cursor(2, 5), groups),
		"a group that has moved away is left out")
	groups[1] = "*2 $1 0 *0 "
	assert.Equal(t, reply(cursor(4, 0), "*0 "), replies(scanGroups, "SCAN 0", groups), "the next group follows")
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
	empty := "+" + strings.Repeat("0", 40) + " "
	text := func(d object.Digest) string { return "+" + hex.EncodeToString(d[:]) + " " }
	assert.Equal(t, empty, replies(addDigests, "DEBUG DIGEST", map[int]string{0: empty, 1: empty}))
	assert.Equal(t, text(one), replies(addDigests, "DEBUG DIGEST", map[int]string{0: empty, 1: text(one)}))
	assert.Equal(t, text(all), replies(addDigests, "DEBUG DIGEST", map[int]string{0: text(one), 3: text(two)}))
}
