package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUsersFromFlagsAndFiles(t *testing.T) {
	inDirectory(t, map[string]string{
		"users.acl": "user ann on >secret ~a* +get\n",
		"a.conf":    "requirepass sesame\nuser ann on >secret ~a* +get\nuser bob off\n",
	})
	for _, argv := range [][]string{
		{"--aclfile", "users.acl", "--requirepass", "sesame"},
		{"--user", "ann on >secret ~a* +get", "--user", "bob off", "--requirepass", "sesame"},
		{"a.conf"},
	} {
		c, _, err := parse(argv, new(bytes.Buffer))
		require.NoError(t, err, argv)
		assert.NotNil(t, c.Users.Login("ann", []byte("secret")))
		assert.Nil(t, c.Users.Login("ann", []byte("sesame")))
		assert.NotNil(t, c.Users.Login("default", []byte("sesame")))
		assert.True(t, c.Users.Default().User().NeedsLogin(), "none of them defines the default user")
		assert.Contains(t, strings.Join(c.Users.Describe(), "\n"), " ~a* resetchannels -@all +get")
	}
	c, _, err := parse([]string{"--user", "default on >other +ping", "--requirepass", "sesame"}, new(bytes.Buffer))
	require.NoError(t, err)
	assert.Nil(t, c.Users.Login("default", []byte("sesame")), "--user defines the default user")
	assert.NotNil(t, c.Users.Login("default", []byte("other")))
}

func TestInvalidUsersAreRejected(t *testing.T) {
	inDirectory(t, map[string]string{
		"bad.acl":  "user ann on >secret\nuser bob on >secret +nosuch\nuser cem on >secret )\n",
		"good.acl": "",
		"a.conf":   "user ann on >secret nonsense\n",
	})
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	for _, test := range []struct {
		argv string
		want string
	}{
		{"--aclfile bad.acl", "bad.acl:2: Error in applying operation '+nosuch'"},
		{"--aclfile bad.acl", "bad.acl:3: Syntax error."},
		{"--aclfile none.acl", "none.acl: no such file or directory"},
		{"--aclfile pipe", "pipe must be a regular file, but is a named pipe"},
		{"--aclfile .", ". must be a regular file, but is a directory"},
		{"--aclfile good.acl --user ann", "--aclfile and --user exclude each other"},
		{"--user ann --user ann", "--user: Duplicate user 'ann'"},
		{"--user default --user default", "--user: Duplicate user 'default'"},
		{"--user=ann,>secret,#secret", "--user ann: The password hash must be exactly 64 characters"},
		{"a.conf", "--user ann: Syntax error"},
		{"--acl-max-users 0", "argument must be between 1 and"},
		{"--user ann --acl-max-users 1", "There are too many users: acl-max-users is 1"},
		{"--acl-pubsub-default some", "argument(s) must be one of the following: resetchannels, allchannels"},
	} {
		argv := strings.Fields(test.argv)
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], ",", " ")
		}
		_, _, err := parse(argv, new(bytes.Buffer))
		require.ErrorContains(t, err, test.want, test.argv)
		assert.NotContains(t, err.Error(), "secret")
		_, err = checkConfig(t, argv...)
		require.ErrorContains(t, err, test.want, "--check-config %s", test.argv)
	}
}

func TestConfigRewriteWritesChangedUsers(t *testing.T) {
	inDirectory(t, map[string]string{"a.conf": "# ours\nport 7000\nuser ann on >secret ~a* +get\n"})
	c, _, err := parse([]string{"a.conf"}, new(bytes.Buffer))
	require.NoError(t, err)
	require.NoError(t, c.Rewrite())
	text, err := os.ReadFile("a.conf")
	require.NoError(t, err)
	assert.Contains(t, string(text), "user ann on >secret ~a* +get\n", "nothing has changed")

	require.NoError(t, c.Users.Set("bob", []string{"on", ">sesame", "(~b +get)"}))
	require.NoError(t, c.Users.Set("default", []string{"-flushall"}))
	require.NoError(t, c.Rewrite())
	text, err = os.ReadFile("a.conf")
	require.NoError(t, err)
	assert.Contains(t, string(text), "# ours\nport 7000\n")
	assert.NotContains(t, string(text), "secret")
	assert.NotContains(t, string(text), "sesame")
	again, _, err := parse([]string{"a.conf"}, new(bytes.Buffer))
	require.NoError(t, err)
	assert.Equal(t, c.Users.Describe(), again.Users.Describe())
	assert.NotNil(t, again.Users.Login("bob", []byte("sesame")))

	out, err := checkConfig(t, "a.conf")
	require.NoError(t, err)
	assert.Contains(t, out, "user (hidden) ")
}

// Users that are written to the configuration file are the same when it is read back, whatever
// bytes their names, patterns and rules have.
func TestRewrittenUsersAreReadBack(t *testing.T) {
	parts := []string{
		"a", "b", " ", "\t", "\n", "\r", "\v", "\x00", "\x85", "\u00a0", "\u0085", "\u2028", "(", ")", "~", "|",
		"#", `"`,
		"'", `\`, "*", "+@all", "\nuser evil on nopass ~* &* +@all", "\xff", "%", "&",
	}
	starts := []string{
		"~", "%R~", "%RW~", "&", "+get|", "+sort|", ">", "(~", "(+get|", "(~a\u00a0", "+config|get", "-ping",
	}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 8))
		word := func() (s string) {
			for range 1 + r.IntN(3) {
				s += parts[r.IntN(len(parts))]
			}
			return s
		}
		inDirectory(t, map[string]string{"a.conf": "port 7000\n"})
		c, _, err := parse([]string{"a.conf"}, new(bytes.Buffer))
		require.NoError(t, err)
		for range 60 {
			rule := starts[r.IntN(len(starts))] + word()
			if strings.HasPrefix(rule, "(") {
				rule += []string{")", " ~" + word() + ")"}[r.IntN(2)]
			}
			// most are refused
			_ = c.Users.Set([]string{"ann", "default", word()}[r.IntN(3)], []string{rule})
		}
		require.NoError(t, c.Rewrite())
		again, _, err := parse([]string{"a.conf"}, new(bytes.Buffer))
		require.NoError(t, err, "%q", c.Users.Describe())
		require.Equal(t, c.Users.Describe(), again.Users.Describe())
	}
}
