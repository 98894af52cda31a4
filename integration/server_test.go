package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// patience is the time after which a test fails if something that should happen at once has not. No
// passing test depends on it.
const patience = time.Minute

// buildDir is where the binary is built for all tests.
var buildDir string

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "RLSERVER_") {
			os.Unsetenv(name) // only the tests set flags
		}
	}
	os.Unsetenv("GOGC") // make test sets it for the tests; the servers are as without it
	// A server built with the race detector would sleep for a second before it exits.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=10"))
	redis.SetLogger(quiet{})
	var err error
	if buildDir, err = os.MkdirTemp("", "rlserver-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(buildDir)
	os.Exit(code)
}

// quiet drops the messages of the client library, which logs each refused connection to a killed
// node.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// builtBefore is set in the environment of a test that another one runs: the path of the binary.
const builtBefore = "TEST_BINARY"

// built returns the path of the binary, which the first caller builds: with the race detector if
// the tests run with it. make test has compiled its packages before this one begins.
var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(builtBefore); path != "" {
		return path, nil
	}
	path := filepath.Join(buildDir, "rlserver")
	args := []string{"build", "-o", path}
	if withRaceDetector() {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "rlserver/cmd/rlserver")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// withRaceDetector reports whether the tests run with the race detector.
func withRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// rlserver returns a command that runs the binary with these arguments.
func rlserver(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	return exec.Command(path, args...)
}

// startServer runs the binary with these flags on a free port until the test ends.
func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	return startOnFreePort(t, func(port string) *exec.Cmd {
		return rlserver(t, append([]string{"--bind", "127.0.0.1", "--port", port}, flags...)...)
	})
}

// A server is a process that listens on a TCP port of the loopback interface.
type server struct {
	*process
	addr string // host:port
}

// startOnFreePort starts a server, waits until it is ready, and stops it at the end of the test. A
// free port may be taken before the server opens it: then another is tried.
func startOnFreePort(t *testing.T, command func(port string) *exec.Cmd) *server {
	t.Helper()
	var p *process
	for range 20 {
		port := freePort(t)
		p = start(t, command(port))
		if p.becomesReady() {
			t.Cleanup(func() { p.stop(t) })
			return &server{p, net.JoinHostPort("127.0.0.1", port)}
		}
		if !strings.Contains(strings.ToLower(p.output()), "address already in use") {
			break
		}
	}
	require.FailNow(t, "the server did not start", "%s\n%s", p.cmd, p.output())
	return nil
}

// freePort returns a port that no process listens on. It is below the range of ephemeral ports: an
// outgoing connection could take one of these before the server listens.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		if _, taken := portsGiven.LoadOrStore(port, true); taken {
			continue
		}
		if listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			listener.Close()
			return fmt.Sprint(port)
		}
	}
	require.FailNow(t, "no port is free")
	return ""
}

// portsGiven holds the ports that freePort has returned.
var portsGiven sync.Map

// A process is a started command and its output so far.
type process struct {
	cmd            *exec.Cmd
	pid            int
	stdout, stderr clustertest.Text
	terminate      func()        // sends SIGTERM, once: a second signal would interrupt the stop
	killed         bool          // by SIGKILL: stop then does not check the exit code
	ended          chan struct{} // closed when the process has ended
}

// start runs a command in a new directory. If it still runs at the end of the test, it is killed.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return startBy(t, cmd, func(run func() error) error { return run() })
}

// startBy is start by a function that may run on another thread.
func startBy(t *testing.T, cmd *exec.Cmd, by func(run func() error) error) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &p.stdout, &p.stderr
	require.NoError(t, by(cmd.Start))
	p.pid = cmd.Process.Pid
	p.terminate = sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	go func() {
		_ = cmd.Wait() // the exit code is in cmd.ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// becomesReady waits until the process logs that it is ready. It returns false if the process ends
// instead.
func (p *process) becomesReady() bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if strings.Contains(strings.ToLower(p.output()), "ready") {
			return true
		}
		select {
		case <-p.ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

// stop stops the process, if it still runs, and fails the test if its exit code is not 0 or it has
// logged a panic or a data race.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.killed {
		return
	}
	p.terminate()
	code, output := p.exitCode(t), p.output()
	if code != 0 || strings.Contains(output, "DATA RACE") || strings.Contains(output, "panic") {
		t.Errorf("%s: exit code %d\n%.8000s", p.cmd, code, output)
	}
}

// exitCode waits for the end of the process and returns its exit code.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.FailNow(t, "the process does not end", "%s\n%s", p.cmd, p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) output() string { return p.stdout.String() + p.stderr.String() }
