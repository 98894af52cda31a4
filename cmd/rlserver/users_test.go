package main

import (
	"bytes"
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
	withoutSanitize := func(lines []string) string {
		return strings.ReplaceAll(strings.Join(lines, "\n"), " sanitize-payload", "")
	}
	assert.Equal(t, withoutSanitize(c.Users.Describe()), withoutSanitize(again.Users.Describe()))
	assert.NotNil(t, again.Users.Login("bob", []byte("sesame")))

	out, err := checkConfig(t, "a.conf")
	require.NoError(t, err)
	assert.Contains(t, out, "user (hidden) ")
}
