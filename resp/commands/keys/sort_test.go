package keys_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// SORT with BY or GET patterns reads keys that are not known before the call, so it locks all
// shards, also in a transaction.
func TestSortWithPatternsLocksAllShards(t *testing.T) {
	for line, want := range map[string]bool{
		"SORT z": false, "SORT z BY nosort GET #": false, "SORT z BY w*": true, "SORT z GET w*->f": true,
		"SORT_RO z LIMIT 0 1 GET *": true,
	} {
		var words [][]byte
		for _, w := range strings.Fields(line) {
			words = append(words, []byte(w))
		}
		p := command.Prepared{Command: command.Table.Find(words[0]), Words: words}
		assert.Equal(t, want, p.WantsAll(), line)
	}
}

// Calls that lock all, some and one of the shards do not deadlock, and SORT reads a consistent
// state.
func TestSortWithConcurrentWrites(t *testing.T) {
	server := resptest.Start(t, config.Defaults{})
	setup := server.Dial()
	ask := func(c *resptest.Client, line string) any {
		fmt.Fprint(c, line+"\r\n")
		return c.ReadValue()
	}
	ask(setup, "ZADD z 0 1 0 2 0 3 0 4")
	ask(setup, "MSET w1 0 w2 0 w3 0 w4 0")
	var all sync.WaitGroup
	for i := range 4 {
		client := server.Dial()
		all.Go(func() {
			for n := range 200 {
				switch i {
				case 0:
					assert.Equal(t, "OK", ask(client, fmt.Sprintf("MSET w1 %d w2 %d w3 %d w4 %d", n, n, n, n)))
				case 1:
					ask(client, "ZINCRBY z 1 3")
				default:
					got := ask(client, "SORT z BY w* GET w*").([]any)
					assert.Len(t, got, 4)
					for _, value := range got {
						assert.Equal(t, got[0], value)
					}
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, []any{"4", "3", "2", "1"}, ask(setup, "SORT z DESC"))
}
