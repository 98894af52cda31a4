package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// do sends a command, given as words separated by spaces, and returns the reply as text.
func do(t *testing.T, rdb *redis.Client, line string) string {
	t.Helper()
	answer, err := rdb.Do(t.Context(), words(line)...).Result()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(answer)
}

// Policies survive a crash and an orderly stop, with and without a snapshot.
func TestPoliciesSurviveRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, "--dir", dir, "--appendfsync", "always")
	rdb := s.connect(t)
	require.Equal(t, "OK", do(t, rdb, "RL.POLICY SET login SLIDE 2 1h"))
	require.Equal(t, "OK", do(t, rdb, "RL.POLICY SET gone SLIDE 2 1h"))
	require.Equal(t, "OK", do(t, rdb, "RL.POLICY SET quota FIXED 9 month TZ Europe/Berlin SHADOW"))
	require.Equal(t, "1", do(t, rdb, "RL.POLICY DEL gone"))
	require.Regexp(t, `^\[1 2 1 0 `, do(t, rdb, "RL.CHECK ann login quota"))
	s.kill(t)

	for round := range 3 {
		s = startServer(t, "--dir", dir, "--appendfsync", "always")
		rdb = s.connect(t)
		require.Equal(t, "SLIDE 2 1h", do(t, rdb, "RL.POLICY GET login"))
		require.Equal(t, "FIXED 9 month TZ Europe/Berlin SHADOW", do(t, rdb, "RL.POLICY GET quota"))
		require.Equal(t, "redis: nil", do(t, rdb, "RL.POLICY GET gone"))
		require.Regexp(t, fmt.Sprintf(`^\[%d 2 0 `, max(0, 1-round)), do(t, rdb, "RL.CHECK ann login quota"))
		if round == 1 {
			require.Equal(t, "OK", do(t, rdb, "SAVE"))
		}
		s.stop(t)
	}
}

// The policy file is read at the start and at each SIGHUP, and a file with an error changes
// nothing.
func TestPolicyFileReload(t *testing.T) {
	t.Parallel()
	path, dir := filepath.Join(t.TempDir(), "policies.yaml"), t.TempDir()
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("policies:\n  login: {slide: {limit: 2, window: 1h}}\n  api: {token: {capacity: 5, refill: 1, period: 1h}}\n")
	s := startServer(t, "--dir", dir, "--policies", path)
	rdb := s.connect(t)
	require.Equal(t, "SLIDE 2 1h", do(t, rdb, "RL.POLICY GET login"))
	require.Equal(t, "OK", do(t, rdb, "RL.POLICY SET own SLIDE 7 1h"))
	require.Regexp(t, `^\[1 2 0 `, do(t, rdb, "RL.CHECK ann login api COST 2"))

	write("policies:\n  login: {slide: {limit: 3, window: 1h}}\n  new: {lease: {limit: 1, ttl: 10}}\n")
	require.NoError(t, syscall.Kill(s.pid, syscall.SIGHUP))
	await(t, func() bool { return do(t, rdb, "RL.POLICY GET login") == "SLIDE 3 1h" })
	require.Equal(t, "LEASE 1 10s", do(t, rdb, "RL.POLICY GET new"))
	require.Equal(t, "TOKEN 5 1 1h", do(t, rdb, "RL.POLICY GET api"), "a policy that is no longer in the file stays")
	require.Regexp(t, `^\[1 3 0 `, do(t, rdb, "RL.CHECK ann login"), "usage is kept")
	await(t, func() bool { return strings.Contains(s.output(), `changed="login new"`) })

	before := do(t, rdb, "RL.POLICY LIST")
	write("policies:\n  login: {slide: {limit: 4, window: 1h}}\n  new: {lease: {limit: 0, ttl: 10}}\n")
	fault := path + ":3: policy new: limit must be from 1 to 9007199254740991"
	require.Equal(t, "ERR no policy was changed: "+fault, do(t, rdb, "RL.POLICY RELOAD"))
	require.NoError(t, syscall.Kill(s.pid, syscall.SIGHUP))
	await(t, func() bool { return strings.Count(s.output(), "no policy was changed") == 2 })
	require.Equal(t, before, do(t, rdb, "RL.POLICY LIST"))

	write("policies:\n  login: {token: {capacity: 4, refill: 1, period: 1h}}\n")
	require.Equal(t, "OK", do(t, rdb, "RL.POLICY RELOAD"))
	require.Regexp(t, `^\[1 4 3 `, do(t, rdb, "RL.CHECK ann login"))
	require.Equal(t, "OK", do(t, rdb, "RL.POLICY SET login SLIDE 1 1h SHADOW")[:2])
	s.stop(t)

	s = startServer(t, "--dir", dir, "--policies", path)
	rdb = s.connect(t)
	assert.Equal(t, "TOKEN 4 1 1h", do(t, rdb, "RL.POLICY GET login"), "the file takes precedence over the log")
	assert.Equal(t, "SLIDE 7 1h", do(t, rdb, "RL.POLICY GET own"), "policies that the file does not name stay")
	assert.Regexp(t, `^\[1 4 3 `, do(t, rdb, "RL.CHECK ann login"), "the keys of the previous algorithm are deleted")
}
