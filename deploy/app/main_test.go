package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Five requests a minute of each user are admitted, and all of them without rlserver.
func TestAppLimitsRequests(t *testing.T) {
	dir := t.TempDir()
	program, socket := filepath.Join(dir, "rlserver"), filepath.Join(dir, "s")
	build := exec.Command("go", "build", "-o", program, "./cmd/rlserver")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	server := exec.Command(program)
	server.Dir = dir
	server.Env = []string{"RLSERVER_PORT=0", "RLSERVER_UNIXSOCKET=" + socket, "RLSERVER_UNIXSOCKETPERM=770"}
	require.NoError(t, server.Start())
	defer server.Process.Kill()

	limits := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer limits.Close()
	answers := func() bool { return limits.Ping(context.Background()).Err() == nil }
	require.Eventually(t, answers, 20*time.Second, 10*time.Millisecond)
	app := httptest.NewServer(limited(limits))
	defer app.Close()
	get := func(user string) (status int, after, text string) {
		response, err := http.Get(app.URL + "/?user=" + user)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, response.Header.Get("Retry-After"), string(body)
	}
	for range 5 {
		status, _, text := get("ann")
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "hello, ann\n", text)
	}
	status, after, text := get("ann")
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.Regexp(t, `^[1-9]\d?$`, after)
	assert.Equal(t, "come back in "+after+" seconds\n", text)
	status, _, _ = get("bob")
	assert.Equal(t, http.StatusOK, status)

	require.NoError(t, server.Process.Kill())
	server.Wait()
	status, _, _ = get("ann")
	assert.Equal(t, http.StatusOK, status, "without rlserver all requests are admitted")
}
