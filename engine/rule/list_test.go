package rule

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rules are kept for other keys unless their text is long, and always parsed alike.
func TestParsedRulesAreKept(t *testing.T) {
	for text, kept := range map[string]bool{
		"SLIDE 5 1m": true,
		"SLIDE 5 1m" + strings.Repeat(",SLIDE 5 1m", 1000): false,
	} {
		rules, err := ParseRules([]byte(text))
		require.NoError(t, err)
		again, err := ParseRules([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, rules, again)
		assert.Equal(t, kept, &rules[0] == &again[0])
		assert.Equal(t, text, string(AppendRules(nil, rules)))
	}
}
