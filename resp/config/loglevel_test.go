package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLogLevelWarn(t *testing.T) {
	s, p := NewSettings(Defaults{}), Lookup("loglevel")
	for _, value := range []string{"warn", "WARN", "warning"} {
		s.logLevel.Set(0)
		put, err := p.Start(s, value)
		require.NoError(t, err)
		put()
		assert.Equal(t, "warning", p.Get(s), value)
	}
	_, err := p.Start(s, "loud")
	assert.ErrorContains(t, err, "debug, verbose, notice, warning")
	_, err = p.Set(s, "warn")
	assert.ErrorContains(t, err, "debug, verbose, notice, warning", "as Redis")
}
