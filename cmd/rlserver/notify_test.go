package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// systemd is notified when the server is ready and when it stops.
func TestSystemdIsNotifiedAndTheLogIsJSON(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	ln, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer ln.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	p := start(t, "--log-format", "json")
	message := func() string {
		b := make([]byte, 100)
		n, err := ln.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	require.Equal(t, "READY=1", message())
	require.Equal(t, []string{"+OK"}, firstLines(t, p.connect(), "SAVE"))
	p.Process.Signal(syscall.SIGTERM)
	require.Equal(t, "STOPPING=1", message())
	require.NoError(t, p.waitForExit())
	var messages []string
	for line := range strings.Lines(p.stderr.String()) {
		var entry struct{ Level, Msg string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		messages = append(messages, entry.Msg)
	}
	assert.Contains(t, p.stderr.String(), `s"}`, "a duration has its unit")
	assert.Subset(t, messages, []string{"listening", "ready", "stopping", "stopped"})
}
