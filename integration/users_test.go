package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// as connects as a user.
func (s *server) as(t *testing.T, user, password string) *redis.Client {
	return s.connect(t, func(o *redis.Options) { o.Username, o.Password = user, password })
}

// Users that a client creates are in the file after ACL SAVE, and can log in after a restart.
func TestACLFileIsSavedAndLoaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.acl")
	require.NoError(t, os.WriteFile(file, []byte("user default off\nuser admin on >master ~* &* +@all\n"), 0o600))
	s := startServer(t, "--aclfile", file)
	ctx, admin := t.Context(), s.as(t, "admin", "master")
	require.NoError(t, admin.Do(ctx, "RL.POLICY", "SET", "login", "SLIDE", "5", "1m").Err())
	require.NoError(t, admin.ACLSetUser(ctx, "front", "on", ">correct-horse", "+rl.check", "+hello", "+client", "+ping",
		"%RW~login:*").Err())
	require.NoError(t, admin.Do(ctx, "ACL", "SAVE").Err())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "correct-horse")
	assert.Contains(t, string(text), "user default off ")

	s = startServer(t, "--aclfile", file)
	front := s.as(t, "front", "correct-horse")
	require.ErrorContains(t, front.Do(ctx, "RL.CHECK", "ann", "login").Err(), "no such policy 'login'")
	require.ErrorContains(t, front.Do(ctx, "RL.CHECK", "ann", "mail").Err(), "NOPERM")
	require.ErrorContains(t, front.Get(ctx, "k").Err(), "NOPERM")
	require.ErrorContains(t, s.as(t, "front", "wrong").Ping(ctx).Err(), "WRONGPASS")
	require.ErrorContains(t, s.connect(t).Ping(ctx).Err(), "NOAUTH")

	admin = s.as(t, "admin", "master")
	entries, err := admin.ACLLog(ctx, 10).Result()
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	assert.Equal(t, "front", entries[0].Username)

	// An error in the file changes nothing.
	require.NoError(t, os.WriteFile(file, append(text, "user eve on +nosuch\n"...), 0o600))
	require.ErrorContains(t, admin.Do(ctx, "ACL", "LOAD").Err(), file+":4: Error in applying operation '+nosuch'")
	require.NoError(t, front.Ping(ctx).Err())
	users, err := admin.Do(ctx, "ACL", "USERS").StringSlice()
	require.NoError(t, err)
	assert.Equal(t, []string{"admin", "default", "front"}, users)
}
