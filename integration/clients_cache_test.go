package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClientCaches runs redis-py with copies of values that the server tells it to drop, and with
// subscriptions: with RESP3 on this server, also over TLS, and on a real redis-server. `make
// clients` runs it.
func TestClientCaches(t *testing.T) {
	dir := os.Getenv("CLIENTS_DIR")
	if dir == "" {
		t.Skip("make clients runs it")
	}
	encrypted, certificates := startTLSServer(t)
	real := startOnFreePort(t, func(port string) *exec.Cmd {
		return exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	})
	for name, at := range map[string][]string{
		"rlserver": {startServer(t).addr}, "rlserver, TLS": {encrypted.addr, certificates}, "Redis": {real.addr},
	} {
		_, port, err := net.SplitHostPort(at[0])
		require.NoError(t, err)
		args := append([]string{filepath.Join("clients", "caching.py"), port}, at[1:]...)
		out, err := exec.CommandContext(t.Context(), dir+"/python/bin/python", args...).CombinedOutput()
		assert.NoError(t, err, "%s: %s", name, out)
		assert.Equal(t, "ok\n", string(out), name)
	}
}
