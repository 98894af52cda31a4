package integration

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLibraries runs the programs in the folder libraries, which limit with libraries that run on
// Redis: on our server and on a real one. A program ends its first part with the line stop, and its
// second, in which the servers are stopped, with start. See libraries/go/main.go.
func TestLibraries(t *testing.T) {
	if os.Getenv("LIBRARIES_LIVE") == "" {
		t.Skip("needs libraries of other languages: make libraries")
	}
	dir := os.Getenv("LIBRARIES_DIR")
	folder, err := filepath.Abs("libraries")
	require.NoError(t, err)
	for name, command := range map[string][]string{
		"Go":     {dir + "/libraries"},
		"Python": {dir + "/python/bin/python", folder + "/libraries.py"},
		"Node":   {"node", folder + "/libraries.cjs"},
		"PHP":    {"php", folder + "/libraries.php"},
		"Ruby":   {"ruby", folder + "/libraries.rb"},
		"Rust":   {dir + "/rust/debug/libraries"},
		"Java":   {"java", "-XX:TieredStopAtLevel=1", "-cp", dir + "/jars/*", folder + "/java/Libraries.java"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, redis := startServer(t), startRedis(t)
			cmd := exec.Command(command[0], append(command[1:], ours.addr, redis.addr)...)
			cmd.Env = append(os.Environ(), "NODE_PATH="+dir+"/node_modules", "PYTHONDONTWRITEBYTECODE=1")
			input, err := cmd.StdinPipe()
			require.NoError(t, err)
			p := start(t, cmd)
			says := func(line string) {
				said := func() bool { return isClosed(p.ended) || strings.Contains(p.stdout.String(), line+"\n") }
				require.Eventually(t, said, 10*patience, 10*time.Millisecond)
				require.False(t, isClosed(p.ended), p.output())
			}
			says("stop")
			ours.stop(t)
			redis.stop(t)
			_, err = io.WriteString(input, "stopped\n")
			require.NoError(t, err)
			says("start")
			startAgain(t, ours, rlserver(t))
			startAgain(t, redis, exec.Command("redis-server", "--save", ""))
			_, err = io.WriteString(input, "started\n")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return isClosed(p.ended) }, 10*patience, 10*time.Millisecond)
			t.Log("\n" + p.stdout.String())
			require.True(t, cmd.ProcessState.Success(), p.output())
		})
	}
}

// startAgain starts a server at the address of one that has been stopped.
func startAgain(t *testing.T, stopped *server, cmd *exec.Cmd) {
	t.Helper()
	_, port, err := net.SplitHostPort(stopped.addr)
	require.NoError(t, err)
	cmd.Args = append(cmd.Args, "--bind", "127.0.0.1", "--port", port)
	p := start(t, cmd)
	require.True(t, p.becomesReady(), p.output())
	t.Cleanup(func() { p.stop(t) })
}
