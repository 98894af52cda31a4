package integration

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// as returns a plain client that logs in as a user.
func (c *nodes) as(port, user, password string) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + port, MaxRetries: -1, Username: user, Password: password,
	})
	c.t.Cleanup(func() { client.Close() })
	return client
}

// usersEverywhere waits until all nodes that run have the same users, and that the names say.
func (c *nodes) usersEverywhere(names ...string) {
	c.t.Helper()
	var lists []string
	ok := assert.Eventually(c.t, func() bool {
		lists = nil
		for i, p := range c.run {
			if p != nil {
				list, err := c.client(i).Do(c.t.Context(), "ACL", "LIST").StringSlice()
				if err != nil {
					return false
				}
				lists = append(lists, strings.Join(list, "\n"))
			}
		}
		for _, list := range lists {
			if list != lists[0] || strings.Count(list, "user ") != len(names) {
				return false
			}
		}
		for _, name := range names {
			if !strings.Contains(lists[0], "user "+name+" ") {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond)
	require.True(c.t, ok, "%q", lists)
}

// TestUsersReachAllNodes changes users on any node of a cluster.
func TestUsersReachAllNodes(t *testing.T) {
	t.Parallel()
	c := startCluster(
		t,
		3,
		append(
			slices.Clone(patient),
			"--user",
			"ann on >ann-secret ~* &* +@all",
			"--user",
			"default on nopass ~* &* +@all",
		)...)
	c.usersEverywhere("ann", "default")
	require.NoError(t, c.as(c.ports[0], "ann", "ann-secret").Ping(t.Context()).Err())

	// the node that has made a change has it at once
	set := func(i int, words ...any) error {
		return c.client(i).Do(t.Context(), append([]any{"ACL", "SETUSER"}, words...)...).Err()
	}
	require.NoError(t, set(1, "bob", "on", ">bob-secret", "~b*", "+@all"))
	require.NoError(t, c.as(c.ports[1], "bob", "bob-secret").Ping(t.Context()).Err())
	c.usersEverywhere("ann", "bob", "default")
	for i := range 3 {
		{
			bob := c.as(c.proxy[i], "bob", "bob-secret")
			for _, key := range []string{"b", "b1", "b2", "b3", "b4"} {
				assert.NoError(t, bob.Set(t.Context(), key, 1, 0).Err())
			}
			for _, key := range []string{"a", "a1", "a2", "a3"} {
				assert.ErrorContains(t, bob.Set(t.Context(), key, 1, 0).Err(), "NOPERM")
			}
		}
		assert.ErrorContains(t, c.as(c.ports[i], "bob", "wrong").Ping(t.Context()).Err(), "WRONGPASS")
	}
	assert.ErrorContains(t, set(0, "bob", "nonsense"), "ERR Error in ACL SETUSER modifier 'nonsense'")
	assert.ErrorContains(t, c.client(2).Do(t.Context(), "ACL", "DELUSER", "default").Err(), "cannot be removed")
	_, err := c.client(0).TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		return p.Do(t.Context(), "ACL", "SETUSER", "eve").Err()
	})
	assert.ErrorContains(t, err, "EXECABORT")

	// a deleted user is logged out everywhere
	ann := c.as(c.ports[2], "ann", "ann-secret").Conn()
	require.NoError(t, ann.Ping(t.Context()).Err())
	assert.Equal(t, int64(1), c.client(0).Do(t.Context(), "ACL", "DELUSER", "ann", "nobody").Val())
	c.usersEverywhere("bob", "default")
	await(t, func() bool { return ann.Ping(t.Context()).Err() != nil })

	// a node that was away serves nobody before it has the present users
	c.kill(2)
	require.NoError(t, set(0, "carl", "on", ">carl-secret", "~*", "+@all"))
	require.NoError(t, set(1, "bob", "resetpass", ">new-secret"))
	c.start(2)
	require.Error(t, c.as(c.ports[2], "bob", "bob-secret").Ping(t.Context()).Err(), "a former password")
	await(t, func() bool { return c.client(2).Ping(t.Context()).Err() == nil })
	require.Error(t, c.as(c.ports[2], "bob", "bob-secret").Ping(t.Context()).Err(), "a former password")
	assert.NoError(t, c.as(c.ports[2], "carl", "carl-secret").Ping(t.Context()).Err())
	assert.NoError(t, c.as(c.ports[2], "bob", "new-secret").Ping(t.Context()).Err())
	c.usersEverywhere("bob", "carl", "default")

	// they are those of the cluster after a restart of all, not those of the flags
	for i := range 3 {
		c.kill(i)
	}
	for i := range 3 {
		c.start(i)
	}
	c.usersEverywhere("bob", "carl", "default")
	assert.ErrorContains(t, c.as(c.ports[0], "ann", "ann-secret").Ping(t.Context()).Err(), "WRONGPASS")

	// only digests of passwords are written
	require.NoError(t, filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		assert.False(t, bytes.Contains(content, []byte("-secret")), path)
		return err
	}))
}

// TestUsersOfAFileReachAllNodes loads the file of one node.
func TestUsersOfAFileReachAllNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startClusterOf(t, 2, func(i int) []string {
		path := filepath.Join(dir, string(rune('0'+i)))
		require.NoError(t, os.WriteFile(path, []byte("user first on nopass ~* +@all\n"), 0o600))
		return []string{"--aclfile", path}
	})
	c.usersEverywhere("default", "first")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1"), []byte("user second on nopass ~* +@all\n"), 0o600))
	require.NoError(t, c.client(1).Do(t.Context(), "ACL", "LOAD").Err())
	c.usersEverywhere("default", "second")
	require.NoError(t, c.client(0).Do(t.Context(), "ACL", "SAVE").Err())
	saved, err := os.ReadFile(filepath.Join(dir, "0"))
	require.NoError(t, err)
	assert.Contains(t, string(saved), "user second on nopass")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0"), []byte("user third nonsense\n"), 0o600))
	assert.ErrorContains(t, c.client(0).Do(t.Context(), "ACL", "LOAD").Err(), "0:1: Syntax error")
	c.usersEverywhere("default", "second")
}

// TestANodeThatJoinsHasTheUsers starts a node with users of its own: they are not those of the
// cluster that it joins.
func TestANodeThatJoinsHasTheUsers(t *testing.T) {
	t.Parallel()
	own := func(i int) []string {
		if i == 1 {
			return []string{"--user", "ann on >ann-secret ~* &* +@all", "--user", "default on nopass ~* &* +@all"}
		}
		return nil
	}
	c := startClusterOf(t, 1, own, patient...)
	require.NoError(t, c.client(0).Do(t.Context(), "ACL", "SETUSER", "bob", "on", ">bob-secret", "~*", "+@all").Err())
	c.ports, c.bus = append(c.ports, freePort(t)), append(c.bus, freePort(t))
	c.proxy, c.run = append(c.proxy, freePort(t)), append(c.run, nil)
	c.start(1)
	require.Error(t, c.as(c.ports[1], "ann", "ann-secret").Ping(t.Context()).Err())
	await(t, func() bool { return c.client(1).Ping(t.Context()).Err() == nil })
	require.Error(t, c.as(c.ports[1], "ann", "ann-secret").Ping(t.Context()).Err())
	assert.NoError(t, c.as(c.ports[1], "bob", "bob-secret").Ping(t.Context()).Err())
	c.usersEverywhere("bob", "default")
	require.NoError(t, c.client(1).Do(t.Context(), "ACL", "DELUSER", "bob").Err())
	c.usersEverywhere("default")
	// the new node passes calls on, before it has replicas and afterwards
	for n := range 20 {
		assert.NoError(t, c.proxied(1, 2).Set(t.Context(), string(rune('a'+n)), n, 0).Err())
	}
}

// TestANodeThatIsAloneKnowsTheUsers starts a node again of whose cluster no majority is left: its
// clients log in as they did before, nobody changes users, and whoever has logged in as a user that
// is another one by now has to log in again.
func TestANodeThatIsAloneKnowsTheUsers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	require.NoError(t, c.client(0).Do(t.Context(), "ACL", "SETUSER", "ann", "on", ">before", "~*", "+@all").Err())
	require.NoError(t, c.client(0).Do(t.Context(), "ACL", "SETUSER", "default", "off").Err())
	has := func(i int, password string) bool {
		return c.as(c.ports[i], "ann", password).Do(t.Context(), "ACL", "WHOAMI").Err() == nil
	}
	await(t, func() bool { return has(2, "before") })
	c.stop(2)
	require.NoError(t, c.as(c.ports[0], "ann", "before").
		Do(t.Context(), "ACL", "SETUSER", "ann", "resetpass", ">after").Err())
	await(t, func() bool { return has(1, "after") })
	c.kill(0)
	c.kill(1)
	c.start(2)

	assert.ErrorContains(t, c.client(2).Info(t.Context()).Err(), "NOAUTH")
	ann := c.as(c.ports[2], "ann", "before").Conn()
	defer ann.Close()
	require.Contains(t, ann.Info(t.Context()).Val(), "loading:1")
	assert.ErrorContains(t, ann.Do(t.Context(), "ACL", "SETUSER", "eve", "on").Err(), "LOADING")
	assert.ErrorContains(t, ann.Get(t.Context(), "k").Err(), "LOADING")
	c.start(0)
	c.start(1)
	await(t, func() bool { return has(2, "after") })
	assert.Error(t, ann.Ping(t.Context()).Err())
	assert.False(t, has(2, "before"))
}
