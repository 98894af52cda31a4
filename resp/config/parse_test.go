package config

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseSavePoints(t *testing.T) {
	for _, text := range []string{"", "3600 1", "3600 1 300 100"} {
		list, err := ParseSavePoints(text)
		require.NoError(t, err, text)
		assert.Equal(t, text, list.String())
	}
	for _, text := range []string{"1", "x 1", "1 x", "0 1", "1 -1", "1  1", " 1 1", "1 1 2"} {
		_, err := ParseSavePoints(text)
		assert.ErrorIs(t, err, ErrSavePoints, "%q", text)
	}
}

func TestParseMemoryShare(t *testing.T) {
	for text, want := range map[string]struct {
		shown string
		of    int64 // of 100 MB
	}{
		"0":    {"0", math.MaxInt64},
		"64mb": {"67108864", 64 << 20},
		"50%":  {"50%", 50 << 20},
		"1%":   {"1%", max(MinShare, 1<<20)},
	} {
		share, err := ParseMemoryShare(text)
		require.NoError(t, err, text)
		assert.Equal(t, want.shown, share.String(), text)
		assert.Equal(t, want.of, share.of(100<<20), text)
	}
	for _, text := range []string{"", "%", "x%", "-1%", "101%", "1.5%", "64xb"} {
		_, err := ParseMemoryShare(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestOutputLimits(t *testing.T) {
	for _, text := range []string{"", "normal 64mb 16mb 60", "normal 0 0 0 pubsub 32mb 8mb 60"} {
		_, err := defaultOutputLimits().with(text)
		assert.NoError(t, err, text)
	}
	for text, want := range map[string]error{
		"normal 1 1":    errOutputWords,
		"nobody 1 1 1":  errOutputClass,
		"normal x 1 1":  errOutputNumber,
		"normal 1 1 -1": errOutputNumber,
	} {
		_, err := defaultOutputLimits().with(text)
		assert.ErrorIs(t, err, want, text)
	}
}
