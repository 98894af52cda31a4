package limits_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// In a cluster the walk of ids goes through the groups in order, from any cursor.
func TestIDsOfAllGroupsAreWalked(t *testing.T) {
	var visited []string
	cursor := []byte("0")
	for range 10 {
		m := command.Merger{Groups: []int{1, 4}, Reply: new(wire.Reply),
			Words: [][]byte{[]byte("rl.policy"), []byte("ids"), []byte("p"), []byte("count"), []byte("1"),
				[]byte("Cursor"), cursor}}
		if string(cursor) == "0" {
			m.Words = m.Words[:5]
		}
		m.On = func(group int, words [][]byte) wire.Value {
			visited = append(visited, fmt.Sprintf("%d:%s", group, bytes.Join(words[3:], []byte(" "))))
			next := "0"
			if words[6][0] == '0' {
				next = "7"
			}
			return wire.ParseValue([]byte("*2\r\n$1\r\n" + next + "\r\n*0\r\n"))
		}
		command.Table["rl.policy"].Sub([]byte("ids")).Merge(&m)
		reply := wire.ParseValue(m.Reply.B)
		if cursor = bytes.Clone(reply.Elements()[0].Text); string(cursor) == "0" {
			break
		}
	}
	assert.Equal(t, []string{"1:count 1 CURSOR 0", "1:count 1 Cursor 7", "4:count 1 Cursor 0", "4:count 1 Cursor 7"},
		visited)
}
