package main

import (
	"bytes"
	"crypto/tls"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaultsAreThoseOfRedisButForDebug(t *testing.T) {
	c, done, err := parse(nil, new(bytes.Buffer))
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, flags{
		Port: 6379, Bind: []string{"127.0.0.1", "-::1"}, TcpKeepalive: 300,
		ProtectedMode: "yes", EnableDebugCommand: "local",
		Maxclients: 10000, Maxmemory: "0", MaxmemoryClients: "20%", PreauthMemory: "4mb",
		MaxmemoryPolicy: "ratelimit", Databases: 16, Loglevel: "notice",
		Appendonly: "yes", Appendfsync: "everysec", Dir: "./rlserver-data", OnDiskFailure: "refuse",
		AutoAofRewritePercentage: 100, AutoAofRewriteMinSize: "64mb",
		rewriteMinSize: 64 << 20, PreauthTimeout: 10, ReservedClients: 8, ProtoMaxKeyLen: "64kb",
		maxKey: 64 << 10, clientMemory: -20, preauthMemory: 4 << 20,
	}, c)
}

func TestFlagsAndEnvironment(t *testing.T) {
	t.Setenv("RLSERVER_PORT", "7000")
	t.Setenv("RLSERVER_REQUIREPASS", "sesame")
	t.Setenv("RLSERVER_MAXCLIENTS", "5")
	t.Setenv("RLSERVER_VERSION", "7.1") // images set such variables: it does not ask for --version
	argv := []string{"--maxclients", "6", "--timeout=9", "--maxmemory", "256mb", "--bind", "10.0.0.1 -::1,10.0.0.2"}
	c, done, err := parse(argv, new(bytes.Buffer))
	require.NoError(t, err)
	require.False(t, done)
	assert.Equal(t, 7000, c.Port)
	assert.Equal(t, "sesame", c.Requirepass)
	assert.EqualValues(t, 256<<20, c.maxmemory)
	assert.Equal(t, 6, c.Maxclients, "a flag takes precedence over the environment")
	assert.Equal(t, 9, c.Timeout)
	assert.Equal(t, []string{"10.0.0.1", "-::1", "10.0.0.2"}, c.addresses())
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"--port", "x"}, `--port: expected a valid 64 bit int but got "x"`},
		{[]string{"--port", "70000"}, "--port must be from 0 to 65535, not 70000"},
		{[]string{"--port", "0"}, "--port 0 leaves nothing to listen on: give --unixsocket"},
		{[]string{"--bind", ""}, "--bind names no address"},
		{[]string{"--maxclients", "0"}, "--maxclients must be from 1 to 4294967295, not 0"},
		{[]string{"--databases", "0"}, "--databases must be from 1 to 65536, not 0"},
		{[]string{"--timeout=-1"}, "--timeout must be from 0 to 2147483647, not -1"},
		{[]string{"--maxmemory", "much"}, `--maxmemory must be a number of bytes such as 256mb, not "much"`},
		{[]string{"--proto-max-key-len", "0"},
			`--proto-max-key-len must be a number of bytes from 1 to 512mb, not "0"`},
		{[]string{"--proto-max-key-len", "1gb"},
			`--proto-max-key-len must be a number of bytes from 1 to 512mb, not "1gb"`},
		{[]string{"--protected-mode", "maybe"}, `--protected-mode must be one of "yes","no" but got "maybe"`},
		{[]string{"--unixsocketperm", "rwx"}, `--unixsocketperm must be octal permissions such as 770, not "rwx"`},
		{[]string{"--requirepass", "a", "--requirepass-file", "b"},
			"--requirepass and --requirepass-file exclude each other"},
		{[]string{"--unknown"}, "unknown flag --unknown"},
		{[]string{"stray"}, "unexpected argument stray"},
	} {
		_, _, err := parse(test.argv, new(bytes.Buffer))
		assert.EqualError(t, err, test.want, "%v", test.argv)
	}
}

func TestPasswordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	for _, test := range []struct{ content, password, fault string }{
		{"sesame", "sesame", ""},
		{"sesame\n", "sesame", ""},
		{"open sesame \r\nremark\n", "open sesame ", ""},
		{"", "", "--requirepass-file " + path + ": its first line is empty, a password is needed"},
		{"\nsesame\n", "", "--requirepass-file " + path + ": its first line is empty, a password is needed"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
		password, err := (&flags{RequirepassFile: path}).password()
		assert.Equal(t, test.password, password)
		if test.fault != "" {
			assert.EqualError(t, err, test.fault)
		} else {
			assert.NoError(t, err)
		}
	}
	_, err := (&flags{RequirepassFile: path + "x"}).password()
	assert.EqualError(t, err, "--requirepass-file cannot be read: open "+path+"x: no such file or directory")
}

func TestPlaces(t *testing.T) {
	for _, test := range []struct {
		address, network, place string
		optional                bool
	}{
		{"127.0.0.1", "tcp4", "127.0.0.1:1", false},
		{"0.0.0.0", "tcp4", "0.0.0.0:1", false},
		{"::1", "tcp6", "[::1]:1", false},
		{"-::1", "tcp6", "[::1]:1", true},
		{"*", "tcp", ":1", false},
		{"-::*", "tcp6", "[::]:1", true},
		{"localhost", "tcp", "localhost:1", false},
	} {
		network, place, optional := place(test.address, 1)
		assert.Equal(t, []any{test.network, test.place, test.optional}, []any{network, place, optional}, test.address)
	}
}

func TestVersionHelpAndDocs(t *testing.T) {
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"--version"}, "rlserver " + version + "\n"},
		{[]string{"--help"}, "--requirepass-file=FILE"},
		{[]string{"docs"}, "### RL.SLIDE\n\n    RL.SLIDE key limit window [COST cost] [ID id]"},
	} {
		var out bytes.Buffer
		assert.NoError(t, run(test.argv, &out))
		assert.Contains(t, out.String(), test.want)
	}
}

func TestPasswordFileMustBeASmallRegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, large := dir+"/pipe", dir+"/large"
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(large, make([]byte, maxPasswordFile+1), 0o600))
	for path, want := range map[string]string{
		pipe:  pipe + " must be a regular file, but is a named pipe",
		large: large + " is too large: at most 65536 bytes are read",
	} {
		_, err := (&flags{RequirepassFile: path}).password()
		assert.EqualError(t, err, "--requirepass-file cannot be read: "+want)
	}
}

func TestGenCert(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	var out bytes.Buffer
	require.NoError(t, run([]string{"gen-cert", dir, "limits.example"}, &out))
	assert.Contains(t, out.String(), "--tls-cert-file "+dir+"/server.crt")
	_, err := tls.LoadX509KeyPair(dir+"/server.crt", dir+"/server.key")
	assert.NoError(t, err)
	assert.ErrorContains(t, run([]string{"gen-cert", dir}, &out), "exists already")
	for _, args := range [][]string{{"gen-cert"}, {"gen-cert", ""}, {"gen-cert", "--force", dir}} {
		assert.ErrorContains(t, run(args, &out), "name the directory of the certificates")
	}
}

// Each flag has a help text, and no text is left of a flag that is gone.
func TestEachFlagHasHelp(t *testing.T) {
	parser, err := kong.New(new(flags), kong.Vars{"policies": ""})
	require.NoError(t, err)
	var flags []string
	for _, flag := range parser.Model.Flags {
		if flag.Name != "help" {
			flags = append(flags, flag.Name)
		}
	}
	assert.ElementsMatch(t, flags, slices.Collect(maps.Keys(flagHelp)))
}
