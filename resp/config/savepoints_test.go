package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSavePointsAsText(t *testing.T) {
	for text, want := range map[string]SavePoints{
		"": nil, "900 1": {{Seconds: 900, Changes: 1}}, "900 0": {{Seconds: 900, Changes: 0}},
		"+900 +1": {{Seconds: 900, Changes: 1}},
		"3600 1 300 100 60 10000": {{Seconds: 3600, Changes: 1}, {Seconds: 300, Changes: 100},
			{Seconds: 60, Changes: 10000}},
	} {
		got, err := ParseSavePoints(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, strings.ReplaceAll(text, "+", ""), got.String())
	}
	for _, text := range []string{"900", " ", " 900 1", "900 1 ", "900  1", "0 1", "-1 1", "900 -1", "900 x", "x 1",
		"900 1 5", "900 1.5", "9223372036854775808 1"} {
		_, err := ParseSavePoints(text)
		assert.Equal(t, ErrSavePoints, err, text)
	}
}
