package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1b": 1, "2k": 2000, "2kb": 2048, "2K": 2000, "3m": 3_000_000, "3Mb": 3 << 20,
		"4g": 4_000_000_000, "4GB": 4 << 30,
		"9223372036854775807": 1<<63 - 1, "8796093022207mb": 8796093022207 << 20,
	} {
		got, err := ParseMemory(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "b", "k", "1x", "1bb", "1 k", "1.5k", "-1", "+1", "9223372036854775808",
		"8796093022208mb", "0x10", "1tb"} {
		_, err := ParseMemory(text)
		assert.Equal(t, ErrNotMemory, err, text)
	}
}
