package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recordedFrom is the version of Redis that the transcripts were recorded from; other versions have
// other error texts.
const recordedFrom = "7.0.15"

// TestTranscripts sends the commands of every transcript and compares the replies with those of a
// real Redis.
//
// With TRANSCRIPT_LIVE=1 a real redis-server is compared with the transcripts too, and the test
// fails if it is not installed. With TRANSCRIPT_RECORD=1 the replies are recorded again.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/transcripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	if os.Getenv("TRANSCRIPT_RECORD") != "" {
		replayAll(t, paths, startRedis, record)
		// finds replies that differ between runs and need an annotation
		replayAll(t, paths, startRedis, verify)
		return
	}
	if os.Getenv("TRANSCRIPT_LIVE") != "" {
		t.Run("redis", func(t *testing.T) { replayAll(t, paths, startRedis, verify) })
	}
	replayAll(t, paths, func(t *testing.T, flags ...string) *server {
		// failed logins are delayed
		return startServer(t, append(flags, "--preauth-timeout", "0")...)
	}, verify)
}

// A launcher starts a server that is stopped when the test ends.
type launcher func(t *testing.T, flags ...string) *server

// replayAll plays each transcript on a shared server, or on its own one.
func replayAll(t *testing.T, paths []string, start launcher, use func(*testing.T, *transcript, string)) {
	shared := start(t).addr
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script, err := readTranscript(path)
			require.NoError(t, err)
			addr := shared
			if script.flags != nil {
				addr = start(t, script.flags...).addr
			}
			use(t, script, addr)
		})
	}
}

func verify(t *testing.T, script *transcript, addr string) {
	player := newPlayer(t, script, addr)
	for _, step := range script.steps {
		where := fmt.Sprintf("%s:%d: %s", script.path, step.line, script.lines[step.after])
		require.NotEmpty(t, step.want, "%s: no reply is recorded", where)
		difference, err := player.check(step)
		require.NoError(t, err, where)
		if difference != "" {
			t.Errorf("%s\n     %s", where, difference)
		}
	}
}

func record(t *testing.T, script *transcript, addr string) {
	player := newPlayer(t, script, addr)
	for i, step := range script.steps {
		var err error
		if step.raw {
			script.steps[i].want, err = playRaw(addr, step.args[0])
		} else {
			script.steps[i].want, err = player.record(step)
		}
		require.NoError(t, err, "%s:%d: %q", script.path, step.line, step.args)
		require.NotContains(t, strings.Join(script.steps[i].want, " "), " is missing in ", "%s:%d", script.path,
			step.line)
	}
	require.NoError(t, script.write())
}

// A player sends commands to one server over one connection at a time.
type player struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

// newPlayer connects and, unless the transcript has a server of its own, deletes all keys.
func newPlayer(t *testing.T, script *transcript, addr string) *player {
	p := &player{addr: addr}
	require.NoError(t, p.connect())
	t.Cleanup(func() { p.conn.Close() })
	if script.flags == nil {
		r, err := p.play(step{args: []string{"FLUSHALL"}})
		require.NoError(t, err)
		require.Equal(t, "+OK", r.String())
	}
	return p
}

func (p *player) connect() (err error) {
	if p.conn != nil {
		p.conn.Close()
	}
	p.conn, err = dial(p.addr)
	p.in = bufio.NewReader(p.conn)
	return err
}

func dial(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(5 * patience)) // for all that the test does with it
	}
	return conn, err
}

func (p *player) play(s step) (reply, error) {
	if s.reconnect {
		if err := p.connect(); err != nil {
			return reply{}, err
		}
	}
	if _, err := io.WriteString(p.conn, frame(s.args...)); err != nil {
		return reply{}, err
	}
	return readReply(p.in)
}

// check plays a step and describes how the reply differs from the recorded one.
func (p *player) check(s step) (difference string, err error) {
	if s.raw {
		got, err := playRaw(p.addr, s.args[0])
		if err == nil && !slices.Equal(s.want, got) {
			difference = sideBySide(s.want, got)
		}
		return difference, err
	}
	r, err := p.play(s)
	if err != nil {
		return "", err
	}
	return differ(s.note, s.want, r)
}

// record plays a step and returns the reply to store: the recorded one if it still matches.
func (p *player) record(s step) ([]string, error) {
	r, err := p.play(s)
	if err != nil {
		return nil, err
	}
	if len(s.want) > 0 {
		if difference, err := differ(s.note, s.want, r); err == nil && difference == "" {
			return s.want, nil
		}
	}
	return essence(s.note, r)
}

// playRaw sends bytes and then a PING, which shows whether the connection is still open.
func playRaw(addr, request string) ([]string, error) {
	const sentinel = "still there"
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request+frame("PING", sentinel)); err != nil {
		return nil, err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return nil, err
	}
	in, lines := bufio.NewReader(conn), []string(nil)
	for {
		switch r, err := readReply(in); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		case err != nil: // EOF, or a reset by a server that closed before it read our PING
			return append(lines, "closed"), nil
		case r.text == sentinel:
			return append(lines, "open"), nil
		default:
			lines = append(lines, r.lines("")...)
		}
	}
}

// frame returns a command in wire format.
func frame(args ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out.String()
}

// startRedis starts a real redis-server of the version of the transcripts.
func startRedis(t *testing.T, flags ...string) *server {
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err, "install redis-server %s", recordedFrom)
	version, err := exec.Command(binary, "--version").Output()
	require.NoError(t, err)
	require.Contains(t, string(version), " v="+recordedFrom+" ", "the transcripts were recorded from another Redis")
	return startOnFreePort(t, func(port string) *exec.Cmd {
		return exec.Command(
			binary,
			append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"}, flags...)...)
	})
}
