package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRepliesAreCounted(t *testing.T) {
	for replies, want := range map[string]int{
		"": 0, "+OK\r\n": 1, "-ERR x\r\n:1\r\n": 2, "$-1\r\n$0\r\n\r\n": 2, "$4\r\n\r\n+a\r\n": 1,
		"*-1\r\n*0\r\n":                        2,
		"*2\r\n*1\r\n:1\r\n$1\r\na\r\n+OK\r\n": 2, "%1\r\n+a\r\n~2\r\n:1\r\n_\r\n#t\r\n": 2,
		"=5\r\ntxt:a\r\n,1.5\r\n": 2,
	} {
		assert.Equal(t, want, CountReplies([]byte(replies)), "%q", replies)
	}
}
