package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inDirectory writes files to a temporary directory and makes it the current one.
func inDirectory(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// checkConfig runs --check-config and returns its output, with single spaces, and its error.
func checkConfig(t *testing.T, argv ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(append(argv, "--check-config"), &out)
	return regexp.MustCompile(` {2,}`).ReplaceAllString(out.String(), " "), err
}

const exampleFile = `# an example
port 7000
timeout 5
Timeout 6
save 3600 1
save 300 100
client-output-buffer-limit normal 1mb 0 0
client-output-buffer-limit pubsub 2mb 0 0
bind 127.0.0.1 -::1
requirepass "open sesame"
hash-max-ziplist-value 32
activedefrag no
maxmemory 100mb
dir "a b"
`

func TestCheckConfigPrintsValuesAndOrigins(t *testing.T) {
	inDirectory(t, map[string]string{"a.conf": exampleFile})
	t.Setenv("RLSERVER_MAXMEMORY", "200mb")
	t.Setenv("RLSERVER_PORT", "7001")
	for _, argv := range [][]string{{"a.conf"}, {"--config", "a.conf"}, {"--config=a.conf"}} {
		out, err := checkConfig(t, append(argv, "--port", "7002", "--save", "7 8", "--save", "9 10")...)
		require.NoError(t, err)
		for _, line := range []string{
			"SETTING VALUE FROM",
			"port 7002 --port, instead of a.conf:2, RLSERVER_PORT",
			"timeout 6 a.conf:4, instead of a.conf:3",
			`save "7 8 9 10" --save, instead of a.conf:5, a.conf:6`,
			`client-output-buffer-limit "normal 1048576 0 0 slave 268435456 67108864 60 pubsub 2097152 0 0"` +
				" a.conf:7, a.conf:8",
			`bind "127.0.0.1 -::1" a.conf:9`,
			"requirepass (hidden) a.conf:10",
			"hash-max-listpack-value 32 a.conf:11",
			"maxmemory 209715200 RLSERVER_MAXMEMORY, instead of a.conf:13",
			`dir "a b" a.conf:14`,
			"databases 16 default",
		} {
			assert.Contains(t, out, line+"\n")
		}
		assert.NotContains(t, out, "sesame")
	}
	t.Setenv("RLSERVER_CONFIG", "a.conf")
	out, err := checkConfig(t)
	require.NoError(t, err)
	assert.Contains(t, out, "timeout 6 a.conf:4")
	require.NoError(t, os.WriteFile("b.yaml", []byte("{"), 0o600))
	out, err = checkConfig(t, "--policies", "b.yaml")
	assert.ErrorContains(t, err, "--policies cannot be read: b.yaml")
	assert.Contains(t, out, "policies b.yaml --policies\n", "the report is printed despite the error")
	for flags, want := range map[string]string{
		"--http-port 1 --http-token-file none": "--http-token-file cannot be read: open none: " +
			"no such file or directory",
		"--tls-port 1 --tls-cert-file none --tls-key-file none": "open none: no such file or directory",
		"--aclfile b.yaml": "--aclfile: b.yaml:1",
	} {
		_, err := checkConfig(t, strings.Fields(flags)...)
		assert.ErrorContains(t, err, want)
	}
}

func TestEmptySaveDiscardsEarlierLines(t *testing.T) {
	inDirectory(t, map[string]string{"a.conf": "save 1 2\nsave \"\"\nsave 3 4\n", "b.conf": "save 1 2\nsave ''\n"})
	c, _, err := parse([]string{"a.conf"}, new(bytes.Buffer))
	require.NoError(t, err)
	assert.Equal(t, "3 4", values(c.Settings)["save"])
	c, _, err = parse([]string{"b.conf"}, new(bytes.Buffer))
	require.NoError(t, err)
	assert.Equal(t, "", values(c.Settings)["save"])
}

// All errors of a file are reported with their lines, and no server starts.
func TestAllErrorsOfAConfigurationFileAreReported(t *testing.T) {
	inDirectory(t, map[string]string{
		"a.conf": "daemonize no\n\nport x\nmaxmemory much\nprot 1\nappendonly\ntimeout 1 2\n" +
			"cluster-slave-no-failover yes\n" +
			"requirepass a b\ninclude b.conf\nclient-output-buffer-limit normal 1\n",
		"b.conf": "databases 0\nhz 10\n",
		"c.conf": "port 1\nbind \"x\n",
	})
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	require.NoError(t, os.WriteFile("large", nil, 0o600))
	require.NoError(t, os.Truncate("large", 16<<20+1))
	unknown := []string{
		"a.conf:1: daemonize is a directive of Redis that rlserver does not have",
		"a.conf:5: prot is not a directive",
	}
	all := []string{
		"a.conf:6: appendonly has the wrong number of arguments",
		"a.conf:7: timeout has the wrong number of arguments",
		"a.conf:9: requirepass has the wrong number of arguments",
		`a.conf:3: port "x": argument couldn't be parsed into an integer`,
		`b.conf:1: databases "0": argument must be between 1 and 65536 inclusive`,
		`a.conf:4: maxmemory "much": argument must be a memory value; an example is 256mb`,
		`a.conf:11: client-output-buffer-limit "normal 1": ` +
			"Wrong number of arguments in buffer limit configuration; an example is 'normal 64mb 16mb 60'",
	}
	_, err := checkConfig(t, "a.conf")
	assert.ElementsMatch(t, append(append(unknown,
		"a.conf:8: cluster-slave-no-failover is a directive of Redis that rlserver does not have",
		"b.conf:2: hz is a directive of Redis that rlserver does not have",
		"--ignore-unknown-config starts without the directives that rlserver does not have"), all...),
		strings.Split(err.Error(), "\n"))
	out, err := checkConfig(t, "a.conf", "--ignore-unknown-config")
	for _, line := range unknown {
		assert.Contains(t, out, "ignored: "+line+"\n")
	}
	assert.ElementsMatch(t, all, strings.Split(err.Error(), "\n"))
	for file, want := range map[string]string{
		"c.conf": "c.conf:2: the quotes are not balanced, or something follows a closing quote",
		"none":   "open none: no such file or directory",
		"pipe":   "pipe must be a regular file, but is a named pipe",
		".":      ". must be a regular file, but is a directory",
		"large":  "large is too large: at most 16777216 bytes are read",
	} {
		_, _, err := parse([]string{file}, new(bytes.Buffer))
		assert.EqualError(t, err, want)
	}
	status := exec.Command(program, "--check-config", "c.conf")
	assert.Error(t, status.Run())
	assert.Equal(t, 1, status.ProcessState.ExitCode())
	assert.NoDirExists(t, "rlserver-data")
}

func TestIgnoredDirectivesAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	require.NoError(t, os.WriteFile(path, []byte("daemonize no\n"), 0o600))
	p := start(t, "--ignore-unknown-config", path)
	p.connect()
	p.Process.Signal(syscall.SIGTERM)
	require.NoError(t, p.waitForExit())
	assert.Contains(t, p.stderr.String(), "a directive of the configuration file is ignored")
	assert.Contains(t, p.stderr.String(), path+":1: daemonize is a directive of Redis")
}

// firstLines sends commands to a server and returns the first line of each reply.
func firstLines(t *testing.T, conn net.Conn, commands ...string) (replies []string) {
	t.Helper()
	r := bufio.NewReader(conn)
	for _, command := range commands {
		fmt.Fprint(conn, command+"\r\n")
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		replies = append(replies, strings.TrimSpace(line))
	}
	return replies
}

// CONFIG REWRITE writes the settings that CONFIG SET has changed, but not the values of flags and
// the environment.
func TestConfigRewriteWritesChangedSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	before := "# mine\ntimeout 5\nmaxmemory 100mb\n# snapshots\nsave 3600 1\nsave 300 100\n\nhash-max-ziplist-value " +
		"32\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o640))
	text := func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	p := start(t, path, "--timeout", "7")
	conn := p.connect()
	c := &client{t, conn, bufio.NewReader(conn)}
	require.Contains(t, c.do("INFO server"), "config_file:"+path)
	require.Equal(t, []string{"+OK"}, firstLines(t, conn, "CONFIG REWRITE"))
	assert.Equal(t, before, text())
	require.Equal(t, []string{"+OK", "+OK"}, firstLines(t, conn,
		`CONFIG SET save "1 2 3 4 5 6" hash-max-listpack-value 33 loglevel warning maxmemory 200mb `+
			`client-output-buffer-limit "normal 1mb 0 0" requirepass "a \"b"`, "CONFIG REWRITE"))
	after := "# mine\ntimeout 5\nmaxmemory 209715200\n# snapshots\nsave 1 2\nsave 3 4\nsave 5 6\n\n" +
		"hash-max-listpack-value 33\n# Generated by CONFIG REWRITE\nrequirepass \"a \\\"b\"\nloglevel warning\n" +
		"client-output-buffer-limit normal 1048576 0 0\nclient-output-buffer-limit slave 268435456 67108864 60\n" +
		"client-output-buffer-limit pubsub 33554432 8388608 60\n"
	assert.Equal(t, after, text())
	require.Equal(t, []string{"+OK", "+OK"}, firstLines(t, conn, `CONFIG SET save "" timeout 9`, "CONFIG REWRITE"))
	after = strings.Replace(after, "save 1 2\nsave 3 4\nsave 5 6\n", "save \"\"\n", 1)
	after = strings.Replace(after, "timeout 5\n", "timeout 9\n", 1)
	assert.Equal(t, after, text())
	p.Process.Signal(syscall.SIGTERM)
	require.NoError(t, p.waitForExit())
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())

	p = start(t, path)
	conn = p.connectAfter("AUTH \"a \\\"b\"\r\n")
	require.Equal(t, []string{"+OK"}, firstLines(t, conn, "CONFIG REWRITE"))
	assert.Equal(t, after, text(), "the server reads back what it has written")
}

func TestConfigRewriteReportsErrors(t *testing.T) {
	dir := t.TempDir()
	path, password := filepath.Join(dir, "a.conf"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(path, []byte("timeout 5\n"), 0o600))
	require.NoError(t, os.WriteFile(password, []byte("x"), 0o600))
	p := start(t, path, "--requirepass-file", password)
	conn := p.connectAfter("AUTH x\r\n")
	require.Equal(
		t,
		[]string{"+OK", "-ERR Rewriting config file: requirepass was changed, but requirepass-file names " +
			"the file of the password: write it there", "+OK"},
		firstLines(t, conn, "CONFIG SET requirepass y", "CONFIG REWRITE", "CONFIG SET requirepass x timeout 6"),
	)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Equal(t, []string{"-ERR Rewriting config file: " + path + " must be a regular file, but is a directory"},
		firstLines(t, conn, "CONFIG REWRITE"))
	require.NoError(t, os.Remove(path))
	require.Equal(t, []string{"+OK"}, firstLines(t, conn, "CONFIG REWRITE"))
	for _, replaced := range []string{"", "# edited\n"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, replaced+"# Generated by CONFIG REWRITE\ntimeout 6\n", string(text),
			"a missing file is created")
		require.NoError(t, os.WriteFile(path, []byte("# edited\n"), 0o600))
		require.Equal(t, []string{"+OK"}, firstLines(t, conn, "CONFIG REWRITE"))
	}
}
