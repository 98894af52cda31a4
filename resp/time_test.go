package resp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

func TestTime(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ts.advance(1234)
	require.Equal(t, "*2 $10 1767225601 $6 234000", ts.dial().do("TIME"))
}
