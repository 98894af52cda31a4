package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// program is the path of the server's executable, which is built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	os.Unsetenv("GOGC") // make test sets it for the tests; the servers are as without it
	dir, err := os.MkdirTemp("", "rlserver")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "rlserver")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// patience is how long tests wait for what a server does.
const patience = 2 * time.Minute

// child is a server process that listens on a Unix socket, so that tests do not compete for ports.
type child struct {
	*exec.Cmd
	t      *testing.T
	socket string
	stderr bytes.Buffer
	exited chan error
}

func start(t *testing.T, flags ...string) *child {
	p := &child{t: t, socket: filepath.Join(t.TempDir(), "s"), exited: make(chan error, 1)}
	p.Cmd = exec.Command(program, append([]string{"--port", "0", "--unixsocket", p.socket}, flags...)...)
	p.Stderr, p.Dir = &p.stderr, t.TempDir()
	require.NoError(t, p.Start())
	go func() { p.exited <- p.Wait() }()
	t.Cleanup(func() { p.Process.Kill() })
	return p
}

// connect connects once the server listens and has loaded its data.
func (p *child) connect() net.Conn {
	p.t.Helper()
	return p.connectAfter("")
}

// connectAfter is connect for a server that requires commands such as AUTH before PING.
func (p *child) connectAfter(first string) net.Conn {
	p.t.Helper()
	for by := time.Now().Add(patience); time.Now().Before(by); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("unix", p.socket); err == nil {
			p.t.Cleanup(func() { conn.Close() })
			fmt.Fprint(conn, first+"PING\r\n")
			r := bufio.NewReader(conn)
			for range strings.Count(first, "\n") {
				r.ReadString('\n')
			}
			if line, _ := r.ReadString('\n'); line == "+PONG\r\n" {
				return conn
			}
		}
	}
	require.FailNow(p.t, "the server does not answer", "%s", p.stderr.String())
	return nil
}

// waitForExit waits for the end of the process and returns its error.
func (p *child) waitForExit() error {
	p.t.Helper()
	select {
	case err := <-p.exited:
		return err
	case <-time.After(patience):
		require.FailNow(p.t, "the process does not exit", "%s", p.stderr.String())
		return nil
	}
}

func TestSignalsAndShutdownStopTheServer(t *testing.T) {
	for name, end := range map[string]func(p *child, conn net.Conn){
		"SIGTERM":         func(p *child, _ net.Conn) { p.Process.Signal(syscall.SIGTERM) },
		"SIGINT":          func(p *child, _ net.Conn) { p.Process.Signal(os.Interrupt) },
		"SHUTDOWN":        func(_ *child, conn net.Conn) { fmt.Fprint(conn, "SHUTDOWN\r\n") },
		"SHUTDOWN NOSAVE": func(_ *child, conn net.Conn) { fmt.Fprint(conn, "SHUTDOWN NOSAVE NOW FORCE\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			conn := p.connect()
			r := bufio.NewReader(conn)
			fmt.Fprint(conn, "PING\r\n")
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "+PONG\r\n", line)

			end(p, conn)
			rest, _ := io.ReadAll(r)
			assert.Empty(t, rest, "the server sends nothing before it closes the connection")
			assert.NoError(t, p.waitForExit())
			assert.NoFileExists(t, p.socket)
		})
	}
}

func TestInvalidShutdownIsRejected(t *testing.T) {
	p := start(t)
	conn := p.connect()
	fmt.Fprint(conn, "SHUTDOWN ABORT\r\nSHUTDOWN SAVE NOSAVE\r\nSHUTDOWN ABORT NOW\r\nQUIT\r\n")
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "-ERR No shutdown in progress.\r\n-ERR syntax error\r\n-ERR syntax error\r\n+OK\r\n", string(got))
}

// A server that cannot start prints the reason in one line, and exits with 1.
func TestStartErrorIsOneLine(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	named := filepath.Join(dir, "policies.yaml")
	require.NoError(t, os.WriteFile(named, []byte("policies:\n  login:\n    slide: {limit: 5}\n"), 0o600))
	served := filepath.Join(dir, "served")
	listening, err := net.Listen("unix", served)
	require.NoError(t, err)
	defer listening.Close()

	for _, test := range []struct{ flags, want string }{
		{"--port " + port, "cannot listen on 127.0.0.1:" + port + ": address already in use"},
		{"--port " + port + " --bind=-192.0.2.1", "cannot listen: this machine has none of the addresses of --bind"},
		{"--port " + port + " --bind 192.0.2.1",
			"cannot listen on 192.0.2.1:" + port + ": cannot assign requested address"},
		{"--port 0 --unixsocket " + file, "cannot listen on " + file + ": the file is not a socket"},
		{"--port 0 --unixsocket " + served, "cannot listen on " + served + ": a server is listening there"},
		{"--port 0 --unixsocket " + dir + "/no/s", "cannot listen on " + dir + "/no/s: no such file or directory"},
		{"--requirepass-file " + dir + "/no",
			"--requirepass-file cannot be read: open " + dir + "/no: no such file or directory"},
		{"--port 0 --unixsocket " + dir + "/s --dir " + file,
			"the data directory cannot be created: mkdir " + file + ": file exists"},
		{"--appendfsync sometimes",
			`--appendfsync "sometimes": argument(s) must be one of the following: everysec, always, no`},
		{"--auto-aof-rewrite-min-size much",
			`--auto-aof-rewrite-min-size "much": argument must be a memory value; an example is 64mb`},
		{"--save 900", `--save "900": Invalid save parameters; an example is '3600 1 300 100'`},
		{"--policies " + named, "--policies cannot be read: " + named + ":3: slide lacks window"},
		{"--policies " + dir + "/no", "--policies cannot be read: open " + dir + "/no: no such file or directory"},
		{"--maxclients none", `--maxclients "none": argument couldn't be parsed into an integer`},
	} {
		cmd := exec.Command(program, strings.Fields(test.flags)...)
		var stderr bytes.Buffer
		cmd.Stderr, cmd.Dir = &stderr, t.TempDir()
		err := cmd.Run()
		require.Error(t, err, test.flags)
		assert.Equal(t, 1, cmd.ProcessState.ExitCode(), test.flags)
		assert.Equal(t, "rlserver: "+test.want+"\n", stderr.String(), test.flags)
	}
}

func TestToolsPrintTheirHelp(t *testing.T) {
	for name, tool := range tools {
		for _, flag := range []string{"--help", "-h"} {
			out, err := exec.Command(program, name, flag).Output()
			require.NoError(t, err, name)
			assert.Equal(t, tool.help, string(out))
			assert.Contains(t, string(out), "Usage: rlserver "+name)
		}
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	p := start(t)
	p.connect()
	require.NoError(t, p.Process.Kill())
	require.Error(t, p.waitForExit())
	require.FileExists(t, p.socket)

	second := exec.Command(program, "--port", "0", "--unixsocket", p.socket, "--unixsocketperm", "700")
	second.Dir = t.TempDir()
	require.NoError(t, second.Start())
	p.connect()
	info, err := os.Stat(p.socket)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, second.Wait())
}

func TestClientsLogInWithThePasswordOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
	p := start(t, "--requirepass-file", file)
	p.connectAfter("AUTH sesame\r\n")
	conn, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "PING\r\nAUTH sesame\r\nPING\r\nQUIT\r\n")
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n+OK\r\n", string(got))
}

// A transaction that would run for minutes delays the stop by at most drainTime. Acknowledged
// writes are kept.
func TestStopDoesNotWaitForLongCalls(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	p := start(t, "--dir", dir, "--save", "1 1")
	fill, long := p.connect(), p.connect()
	const members, calls = 20_000, 100_000
	for i := range members {
		fmt.Fprintf(fill, "ZADD a 1 m%d\r\nZADD b 1 m%d\r\n", i, i)
		if i%1000 == 999 {
			replies := bufio.NewReader(io.LimitReader(fill, 2000*int64(len(":1\r\n"))))
			_, err := io.Copy(io.Discard, replies)
			require.NoError(t, err)
		}
	}
	in := bufio.NewReader(long)
	fmt.Fprint(long, "MULTI\r\n")
	go fmt.Fprint(long, strings.Repeat("ZINTERCARD 2 a b\r\n", calls))
	for range calls + 1 {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, "+OK\r\n+QUEUED\r\n", line)
	}
	fmt.Fprint(long, "EXEC\r\n")
	for replies, runs := bufio.NewReader(fill), false; !runs; {
		fmt.Fprint(fill, "CLIENT LIST\r\n")
		for line := ""; line != "\r\n"; {
			var err error
			line, err = replies.ReadString('\n')
			require.NoError(t, err)
			runs = runs || strings.Contains(line, "cmd=exec")
		}
	}

	p.Process.Signal(syscall.SIGTERM)
	assert.NoError(t, p.waitForExit())

	second := start(t, "--dir", dir)
	conn := second.connect()
	fmt.Fprint(conn, "ZCARD a\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf(":%d\r\n", members), line)
}
