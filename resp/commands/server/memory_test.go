package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestHumanBytes(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	for n, want := range map[string]string{
		"0": "0B", "1023": "1023B", "1024": "1.00K", "1536": "1.50K", "1mb": "1.00M", "5gb": "5.00G",
		"1099511627776": "1.00T", "4611686018427387904": "4096.00P",
	} {
		require.Equal(t, "+OK", c.Do("CONFIG SET maxmemory "+n+" maxmemory-policy allkeys-lru"))
		assert.Equal(t, want, c.Info("maxmemory_human"), n)
	}
}
