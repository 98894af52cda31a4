package integration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBlockedTranscripts plays the files in testdata/blocked, whose calls wait for keys that calls
// of other clients change, and compares the replies with those of a real Redis.
//
// A line "a> BLPOP l 0" is a call by the client a; $a in it is that client's id. The lines below it
// are the replies that it brings: of the client itself, unless it waits now, and of those that it
// wakes. A line "== …" begins anew, without keys and with new clients.
//
// TRANSCRIPT_LIVE and TRANSCRIPT_RECORD do what they do for TestTranscripts; TRANSCRIPT_LIVE also
// compares random calls.
func TestBlockedTranscripts(t *testing.T) {
	const path = "testdata/blocked/pops.txt"
	script := readBlocked(t, path)
	switch {
	case os.Getenv("TRANSCRIPT_RECORD") != "":
		playBlocked(t, startRedis(t), nil, script)
		var out strings.Builder
		for _, s := range script {
			out.WriteString(strings.Join(append([]string{s.line}, s.want...), "\n") + "\n")
		}
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	case os.Getenv("TRANSCRIPT_LIVE") != "":
		redis := startRedis(t)
		live := readBlocked(t, path)
		playBlocked(t, redis, nil, live)
		require.Equal(t, script, live)
		for range 20 {
			seed := rand.Uint64()
			t.Log("seed", seed)
			random := randomBlocked(seed, 250)
			playBlocked(t, redis, nil, random)
			playBlocked(t, nil, startServer(t), random)
		}
	}
	playBlocked(t, nil, startServer(t), script)
}

// blockedStep is a line of a file, and the replies that it brings, by the name of the client.
type blockedStep struct {
	line string
	want []string
}

func readBlocked(t *testing.T, path string) (steps []*blockedStep) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		name, _, _ := strings.Cut(line, " ")
		if line == "" || line[0] == '#' || name == "==" || strings.HasSuffix(name, ">") {
			steps = append(steps, &blockedStep{line: line})
			continue
		}
		last := steps[len(steps)-1]
		last.want = append(last.want, line)
	}
	return steps
}

// stage is a server with clients, each of which waits for at most one reply.
type stage struct {
	t       *testing.T
	addr    string
	admin   *blockedClient
	clients map[string]*blockedClient
}

type blockedClient struct {
	net.Conn
	in    *bufio.Reader
	id    string
	waits bool
}

// playBlocked plays steps. Replies of redis are stored in them; those of ours are compared.
func playBlocked(t *testing.T, redis, ours *server, steps []*blockedStep) {
	s := &stage{t: t}
	if redis != nil {
		s.addr = redis.addr
	} else {
		s.addr = ours.addr
	}
	s.admin = s.client()
	defer func() { s.begin() }()
	s.begin()
	for _, step := range steps {
		name, call, isCall := strings.Cut(step.line, "> ")
		switch {
		case strings.HasPrefix(step.line, "=="):
			s.begin()
		case !isCall || step.line[0] == '#':
		case redis != nil:
			s.send(name, call)
			step.want = s.replies(name)
		default:
			s.send(name, call)
			s.check(name, step)
		}
	}
}

func (s *stage) client() *blockedClient {
	conn, err := dial(s.addr)
	require.NoError(s.t, err)
	c := &blockedClient{Conn: conn, in: bufio.NewReader(conn)}
	c.id = s.do(c, "CLIENT", "ID").text
	return c
}

func (s *stage) do(c *blockedClient, words ...string) reply {
	_, err := io.WriteString(c, frame(words...))
	require.NoError(s.t, err)
	r, err := readReply(c.in)
	require.NoError(s.t, err)
	return r
}

// begin disconnects all clients and deletes all keys.
func (s *stage) begin() {
	for _, c := range s.clients {
		c.Close()
		s.do(s.admin, "CLIENT", "KILL", "ID", c.id)
	}
	s.clients = make(map[string]*blockedClient)
	s.do(s.admin, "FLUSHALL")
}

func (s *stage) send(name, call string) {
	c := s.clients[name]
	if c == nil {
		c = s.client()
		s.clients[name] = c
	}
	require.False(s.t, c.waits, "%s> %s", name, call)
	for other, id := range s.clients {
		call = strings.ReplaceAll(call, "$"+other, id.id)
	}
	words, err := splitArgs(call)
	require.NoError(s.t, err)
	_, err = io.WriteString(c, frame(words...))
	require.NoError(s.t, err)
	c.waits = true
}

// blocked returns the ids of the clients that the server says are blocked.
func (s *stage) blocked() (ids []string) {
	for line := range strings.Lines(s.do(s.admin, "CLIENT", "LIST").text) {
		if fields := strings.Fields(line); strings.Contains(line, " flags=b ") || strings.Contains(line, " flags=bx ") {
			ids = append(ids, strings.TrimPrefix(fields[0], "id="))
		}
	}
	return ids
}

// replies returns the replies after a call of Redis, where a call is over, and has woken all that
// it wakes, once its client has its reply or is blocked.
func (s *stage) replies(caller string) (lines []string) {
	c := s.clients[caller]
	for !c.ready() && !slices.Contains(s.blocked(), c.id) {
	}
	blocked := s.blocked()
	for name, c := range s.clients {
		if c.waits && !slices.Contains(blocked, c.id) {
			lines = append(lines, s.read(name))
		}
	}
	slices.Sort(lines)
	return lines
}

// ready reports whether a reply has arrived, or arrives within a moment.
func (c *blockedClient) ready() bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.in.Peek(1)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return err == nil
}

// read reads the reply of a client, and returns it as a line.
func (s *stage) read(name string) string {
	c := s.clients[name]
	r, err := readReply(c.in)
	if errors.Is(err, io.EOF) {
		delete(s.clients, name)
		return name + " gone"
	}
	require.NoError(s.t, err, name)
	c.waits = false
	lines := r.lines("")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(name+" "+strings.Join(lines, " "), `$"id" :`+c.id+" ", `$"id" :$`+name+" ")
}

// check compares the replies to a call with those that are wanted. A call that has a reply too many
// is found when its client is called again or disconnected.
func (s *stage) check(caller string, step *blockedStep) {
	var got []string
	for _, line := range step.want {
		name, _, _ := strings.Cut(line, " ")
		got = append(got, s.read(name))
	}
	require.Equal(s.t, step.want, got, step.line)
	for c := s.clients[caller]; c.waits && !slices.Contains(s.blocked(), c.id); {
		require.False(s.t, c.ready(), "%s is answered at once", step.line)
	}
}

// randomBlocked returns random calls by clients that wait, and by others.
func randomBlocked(seed uint64, n int) (steps []*blockedStep) {
	r := rand.New(rand.NewPCG(seed, seed))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	key := func() string { return pick("a", "b", "c", "d") }
	end := func() string { return pick("LEFT", "RIGHT") }
	waiting := []func() string{
		func() string { return "BLPOP " + key() + " " + key() + " 0" },
		func() string { return "BRPOP " + key() + " 0" },
		func() string { return "BLMOVE " + key() + " " + key() + " " + end() + " " + end() + " 0" },
		func() string { return "BRPOPLPUSH " + key() + " " + key() + " 0" },
		func() string {
			return "BLMPOP 0 2 " + key() + " " + key() + " " + end() + " COUNT " + pick("1", "2", "9")
		},
		func() string { return "BZPOPMIN " + key() + " " + key() + " 0" },
		func() string { return "BZMPOP 0 1 " + key() + " MAX COUNT 2" },
	}
	element := 0
	elements := func() (line string) {
		for range 1 + r.IntN(4) {
			element++
			line += fmt.Sprint(" ", element)
		}
		return line
	}
	changing := []func() string{
		func() string { return pick("LPUSH ", "RPUSH ") + key() + elements() },
		func() string { return pick("LPUSH ", "RPUSH ") + key() + elements() },
		func() string { return pick("LPUSHX ", "RPUSHX ") + key() + elements() },
		func() string { return "LMOVE " + key() + " " + key() + " " + end() + " " + end() },
		func() string { return pick("LPOP ", "RPOP ", "DEL ") + key() },
		func() string { return pick("RENAME ", "COPY ") + key() + " " + key() },
		func() string { return "SORT " + key() + " STORE " + pick("e", "f") },
		func() string { return "RENAMENX " + pick("e", "f") + " " + key() },
		func() string { return "RPUSH " + pick("e", "f") + elements() },
		func() string { return fmt.Sprint("ZADD ", key(), " ", r.IntN(9), " m", r.IntN(9)) },
		func() string { return pick("SADD ", "SREM ") + key() + " x" },
		func() string { return "LRANGE " + key() + " 0 -1" },
		func() string { return "LINSERT " + key() + " BEFORE " + fmt.Sprint(element) + elements()[:2] },
	}
	names := strings.Split("stuvw", "")
	for range n {
		name, call := "x", changing[r.IntN(len(changing))]()
		switch r.IntN(12) {
		case 0, 1, 2, 3: // clients that wait already are unblocked first, by both servers
			name = pick(names...)
			steps = append(steps, &blockedStep{line: "x> CLIENT UNBLOCK $" + name + pick("", " ERROR")})
			call = waiting[r.IntN(len(waiting))]()
		case 4:
			steps = append(steps, &blockedStep{line: "x> MULTI"})
			for range 1 + r.IntN(4) {
				steps = append(steps, &blockedStep{line: "x> " + changing[r.IntN(len(changing))]()})
			}
			call = "EXEC"
		}
		steps = append(steps, &blockedStep{line: name + "> " + call})
	}
	for _, name := range names {
		steps = append(steps, &blockedStep{line: "x> CLIENT UNBLOCK $" + name})
	}
	for _, key := range strings.Split("abcdef", "") {
		steps = append(steps, &blockedStep{line: "x> LRANGE " + key + " 0 -1"})
	}
	return steps
}
