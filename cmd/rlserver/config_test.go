package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// values returns all settings as CONFIG GET * does.
func values(s *config.Settings) map[string]string {
	all := make(map[string]string)
	for _, p := range config.Parameters {
		all[p.Name] = p.Get(s)
	}
	return all
}

func TestDefaultsOfAllSettings(t *testing.T) {
	c, done, err := parse(nil, new(bytes.Buffer))
	require.NoError(t, err)
	require.False(t, done)
	assert.Equal(t, map[string]string{
		"bind": "127.0.0.1 -::1", "port": "6379", "unixsocket": "", "unixsocketperm": "0", "tcp-keepalive": "300",
		"requirepass": "", "requirepass-file": "", "preauth-timeout": "10", "protected-mode": "yes",
		"enable-debug-command": "local", "aclfile": "", "user": "", "acl-pubsub-default": "resetchannels",
		"acl-max-users": "10000", "acl-max-user-size": "65536", "acllog-max-len": "128",
		"databases": "16", "maxclients": "10000", "reserved-clients": "8", "timeout": "0",
		"loglevel": "notice", "log-format": "text", "policies": "",
		"login-failures": "30", "login-failures-total": "600", "login-failures-addresses": "16384",
		"login-failures-exempt": "",
		"proto-max-bulk-len":    "536870912", "proto-max-key-len": "65536", "client-query-buffer-limit": "1073741824",
		"maxmemory": "0", "maxmemory-clients": "20%", "preauth-memory": "4194304",
		"client-output-buffer-limit": "normal 67108864 16777216 60 slave 268435456 67108864 60 " +
			"pubsub 33554432 8388608 60",
		"maxmemory-policy": "ratelimit", "maxmemory-samples": "5",
		"max-overrides": "2000000", "max-reservations": "100000", "settled-retention": "10m",
		"dir": "./rlserver-data", "appendonly": "yes", "appendfsync": "everysec",
		"auto-aof-rewrite-percentage": "100", "auto-aof-rewrite-min-size": "67108864", "save": "",
		"on-disk-failure": "refuse",
		"lua-time-limit":  "5000", "lua-memory-limit": "67108864",
		"lua-memory-total": "268435456", "lua-cache-limit": "67108864",
		"lua-undeclared-keys": "no",
		"http-port":           "0", "http-bind": "127.0.0.1 -::1", "http-token-file": "", "debug-http": "no",
		"http-tls":         "yes",
		"http-max-clients": "128", "http-health-clients": "32", "http-max-streams": "32",
		"hash-max-listpack-entries": "512", "hash-max-listpack-value": "64",
		"zset-max-listpack-entries": "128", "zset-max-listpack-value": "64", "set-max-intset-entries": "512",
		"notify-keyspace-events": "", "notify-max-queued": "65536",
		"tracking-max-prefixes": "10000", "tracking-max-prefixes-per-client": "1000",
		"tracking-table-max-keys": "1000000",
		"slowlog-log-slower-than": "10000", "slowlog-max-len": "128",
		"latency-tracking": "yes", "latency-tracking-info-percentiles": "50 99 99.9", "latency-monitor-threshold": "0",
		"activedefrag": "no", "replica-read-only": "yes",
		"tls-port": "0", "tls-auth-clients": "yes", "tls-ca-cert-file": "", "tls-cert-file": "", "tls-key-file": "",
		"tls-protocols":   "",
		"cluster-enabled": "no", "node-id": "", "cluster-port": "0", "join": "", "bootstrap-expect": "3",
		"cluster-groups": "0", "cluster-timeout": "1000", "failover-hold": "0", "force-recover": "no",
		"cluster-announce-host":               "",
		"pubsub-max-subscriptions-per-client": "100000", "pubsub-max-subscriptions": "1000000",
		"pubsub-max-patterns": "10000", "pubsub-node-queue": "16777216",
		"proxy-port": "0", "proxy-max-links": "256",
		"cluster-announce-port": "0", "cluster-secret-file": "", "cluster-announce-tls-port": "0",
	}, values(c.Settings))
}

func TestFlagsOverrideTheEnvironment(t *testing.T) {
	t.Setenv("RLSERVER_PORT", "7000")
	t.Setenv("RLSERVER_REQUIREPASS", "sesame")
	t.Setenv("RLSERVER_MAXCLIENTS", "5")
	t.Setenv("RLSERVER_CLUSTER_NODE_TIMEOUT", "700") // the other name of cluster-timeout
	// set by many images; it must not act as --version
	t.Setenv("RLSERVER_VERSION", "7.1")
	argv := []string{"--maxclients", "6", "--timeout=9", "--maxmemory", "256mb", "--bind", "10.0.0.1 -::1,10.0.0.2"}
	c, done, err := parse(argv, new(bytes.Buffer))
	require.NoError(t, err)
	require.False(t, done)
	assert.Equal(t, 7000, c.Ports().Port)
	assert.Equal(t, "sesame", c.Password())
	assert.EqualValues(t, 256<<20, c.MaxMemory())
	assert.EqualValues(t, 6, c.MaxClients.Load(), "a flag takes precedence over the environment")
	assert.Equal(t, 9*time.Second, c.Timeout())
	assert.Equal(t, 700, c.Start.Cluster.Timeout)
	assert.Equal(t, []string{"10.0.0.1", "-::1", "10.0.0.2"}, c.Ports().Bind)
}

func TestFlagWithoutAValueMeansYes(t *testing.T) {
	for want, argv := range map[string][]string{
		"yes no":  {"--debug-http", "--http-port", "8080", "--protected-mode", "no"},
		"yes yes": {"--http-port", "8080", "--debug-http", "yes", "--protected-mode"},
		"no yes":  {"--http-port", "8080", "--debug-http=no", "--protected-mode"},
	} {
		c, _, err := parse(argv, new(bytes.Buffer))
		require.NoError(t, err)
		all := values(c.Settings)
		assert.Equal(t, want, all["debug-http"]+" "+all["protected-mode"])
	}
}

func TestInvalidFlagsAreRejected(t *testing.T) {
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"--port", "x"}, `--port "x": argument couldn't be parsed into an integer`},
		{[]string{"--port", "70000"}, `--port "70000": argument must be between 0 and 65535 inclusive`},
		{[]string{"--port", "0"}, "--port 0 leaves nothing to listen on: give --tls-port or --unixsocket"},
		{[]string{"--bind", ""}, "--bind is empty: it needs an address"},
		{[]string{"--dir", ""}, "--dir is empty: it needs a directory"},
		{[]string{"--maxclients", "0"}, `--maxclients "0": argument must be between 1 and 4294967295 inclusive`},
		{[]string{"--databases", "0"}, `--databases "0": argument must be between 1 and 65536 inclusive`},
		{[]string{"--timeout=-1"}, `--timeout "-1": argument must be between 0 and 2147483647 inclusive`},
		{[]string{"--maxmemory", "much"}, `--maxmemory "much": argument must be a memory value; an example is 256mb`},
		{[]string{"--proto-max-key-len", "0"},
			`--proto-max-key-len "0": argument must be between 1 and 536870912 inclusive; an example is 64kb`},
		{[]string{"--maxmemory-clients", "101%"},
			`--maxmemory-clients "101%": percentage argument must be less or equal to 100; an example is 64mb or 20%`},
		{[]string{"--client-output-buffer-limit", "normal 1"}, `--client-output-buffer-limit "normal 1": ` +
			"Wrong number of arguments in buffer limit configuration; an example is 'normal 64mb 16mb 60'"},
		{[]string{"--save", "1"}, `--save "1": Invalid save parameters; an example is '3600 1 300 100'`},
		{[]string{"--protected-mode", "maybe"}, `--protected-mode "maybe": argument must be 'yes' or 'no'`},
		{[]string{"--enable-debug-command", "maybe"},
			`--enable-debug-command "maybe": argument(s) must be one of the following: no, local, yes`},
		{[]string{"--unixsocketperm", "rwx"},
			`--unixsocketperm "rwx": argument must be octal permissions; an example is 770`},
		{[]string{"--requirepass", "a", "--requirepass-file", "b"},
			"--requirepass and --requirepass-file exclude each other"},
		{[]string{"--unknown"}, "unknown flag --unknown"},
		{[]string{"stray"}, "open stray: no such file or directory"},
		{[]string{"a", "stray"}, "unexpected argument stray"},
		{[]string{"a", "--config", "b"}, "a and --config b: give one configuration file"},
		{[]string{"--port", "x", "--timeout", "y"}, `--port "x": argument couldn't be parsed into an integer` + "\n" +
			`--timeout "y": argument couldn't be parsed into an integer`},
	} {
		_, _, err := parse(test.argv, new(bytes.Buffer))
		assert.EqualError(t, err, test.want, "%v", test.argv)
	}
}

func TestPasswordIsTheFirstLineOfItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	for _, test := range []struct{ content, password, fault string }{
		{"sesame", "sesame", ""},
		{"sesame\n", "sesame", ""},
		{"open sesame \r\nremark\n", "open sesame ", ""},
		{"", "", "--requirepass-file " + path + ": its first line is empty, a password is needed"},
		{"\nsesame\n", "", "--requirepass-file " + path + ": its first line is empty, a password is needed"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
		password, err := readPassword(path)
		assert.Equal(t, test.password, password)
		if test.fault != "" {
			assert.EqualError(t, err, test.fault)
		} else {
			assert.NoError(t, err)
		}
	}
	_, err := readPassword(path + "x")
	assert.EqualError(t, err, "--requirepass-file cannot be read: open "+path+"x: no such file or directory")
}

func TestVersionHelpAndDocs(t *testing.T) {
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"--version"}, "rlserver " + version + "\n"},
		{[]string{"--help"}, "--requirepass-file=FILE"},
		{[]string{"docs"}, "### RL.SLIDE\n\n    RL.SLIDE key limit window [COST cost] [HOLD ttl] [ID id]"},
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
		_, err := readPassword(path)
		assert.EqualError(t, err, "--requirepass-file cannot be read: "+want)
	}
}

// Each setting has a help text, and works as a flag under each of its names.
func TestEachSettingIsAFlagWithHelp(t *testing.T) {
	var out bytes.Buffer
	_, done, err := parse([]string{"--help"}, &out)
	require.NoError(t, err)
	require.True(t, done)
	for _, p := range config.Parameters {
		if p.Group == "" {
			continue
		}
		assert.NotEmpty(t, helpOf(p.Name), p.Name)
		assert.Contains(t, out.String(), "--"+p.Name+"="+p.Form, p.Name)
		t.Setenv(environment(p.Name), p.Default)
		_, _, err := parse([]string{"--" + p.Name + "=" + p.Default}, new(bytes.Buffer))
		assert.NoError(t, err, p.Name)
		if p.Alias != "" {
			_, _, err := parse([]string{"--" + p.Alias + "=" + p.Default}, new(bytes.Buffer))
			assert.NoError(t, err, p.Alias)
		}
	}
	for name := range optionHelp {
		assert.NotEmpty(t, helpOf(name), name)
	}
}
