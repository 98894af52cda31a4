package rule

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rule.String of every algorithm returns the text that ParsePolicy reads.
func TestRuleStringIsParsable(t *testing.T) {
	written := make(map[Kind]bool)
	for _, text := range []string{
		"SLIDE 5 1m", "TOKEN 100 10 1500ms", "FIXED 10 90s", "FIXED 20 day", "FIXED 20 week TZ Europe/Berlin",
		"LEASE 3 10m", "LEAKY 5 1s", "LEAKY 5 1s QUEUE 3", "COUNTER 1000 7d",
	} {
		words := strings.Fields(text)
		var list [][]byte
		for _, word := range words {
			list = append(list, []byte(word))
		}
		p, err := ParsePolicy([]byte("p"), list)
		require.NoError(t, err)
		assert.Equal(t, text, p.Rule.String())
		written[p.Rule.Kind] = true
	}
	assert.Len(t, written, len(algorithms))
}
