package acl

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/glob"
)

// These files are recorded from Redis 7.0.15: its commands with their categories and flags, and
// random rules with what ACL SETUSER, LIST and DRYRUN reply to them.
const (
	commandsFile = "redis_commands.txt"
	rulesFile    = "testdata/rules.txt"
)

func matchGlob(text, name []byte) bool {
	p := glob.New(text, false)
	return p.Match(name)
}

// redisCatalog returns the commands of Redis.
func redisCatalog() *Catalog { return NewCatalog(redisCommands(), matchGlob) }

// dryRuns are the calls that are checked for each recorded user.
var dryRuns = []string{
	"get a1", "set a1 x", "get c", "set c x", "mset a1 1 b 2", "config get x", "select 0", "select 1", "publish news x",
	"subscribe n1", "psubscribe n*", "acl whoami", "ping", "auth x", "getset d1 x", "debug sleep 1",
}

// describeCall finds the command and the keys of one of the dry runs.
func describeCall(c *Catalog, call string) (name string, described Call) {
	words := strings.Fields(call)
	name, first := words[0], 1
	if c.find(words[0]+"|"+words[min(1, len(words)-1)]) >= 0 {
		name, first = words[0]+"|"+words[1], 2
	}
	described.Command = c.find(name)
	if first < len(words) {
		described.FirstArg = []byte(words[first])
	}
	add := func(i int, k Key) {
		k.Name = []byte(words[i])
		described.Keys = append(described.Keys, k)
	}
	switch words[0] {
	case "get":
		add(1, Key{Access: Read})
	case "set":
		add(1, Key{Access: Write})
	case "getset":
		add(1, Key{Access: Read | Write})
	case "mset":
		add(1, Key{Access: Write})
		add(3, Key{Access: Write})
	case "publish", "subscribe":
		add(1, Key{Channel: true})
	case "psubscribe":
		add(1, Key{Channel: true, Pattern: true})
	}
	return name, described
}

// verdicts returns the first two letters of the verdict on each dry run.
func verdicts(u *User) (letters string) {
	for _, run := range dryRuns {
		_, call := describeCall(u.catalog, run)
		v, _ := u.Check(&call)
		letters += v.String()[:2] + " "
	}
	return strings.TrimSpace(letters)
}

// normalize sorts the words of a description: Redis lists single commands in the order of a hash
// table.
func normalize(line string) string {
	words := strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(line))
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestRulesMatchRedis(t *testing.T) {
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var settings Settings
	settings.Init()
	users := NewUsers(redisCatalog(), &settings)
	steps := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, fields, 5)
		name, rules := fields[0], strings.Split(fields[1], "·")
		reply := "OK"
		if err := users.Set(name, rules); err != nil {
			reply = err.Error()
		}
		require.Equal(t, fields[2], reply, "%q", rules)
		described, letters := "", ""
		if a := users.Find(name); a != nil {
			described, letters = normalize("user "+name+" "+a.User().Describe()), verdicts(a.User())
		}
		require.Equal(t, fields[3], described, "%q", rules)
		require.Equal(t, fields[4], letters, "%q: %s", rules, described)
		steps++
	}
	require.Greater(t, steps, 200)
}

// TestRecordRules rewrites the recorded files, using a Redis 7.0.15 at the address ACL_RECORD.
func TestRecordRules(t *testing.T) {
	addr := os.Getenv("ACL_RECORD")
	if addr == "" {
		_, err := os.Stat(rulesFile)
		require.NoError(t, err, "record it with ACL_RECORD=address")
		return
	}
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	r := &recorder{t: t, conn: conn, in: bufio.NewReader(conn)}
	r.commands()
	r.rules(250)
}

// recorder runs commands on a Redis server.
type recorder struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (r *recorder) do(words ...string) any {
	fmt.Fprintf(r.conn, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(r.conn, "$%d\r\n%s\r\n", len(w), w)
	}
	return r.read()
}

// read reads a reply: a string, which begins with - if it is an error, or a list.
func (r *recorder) read() any {
	line, err := r.in.ReadString('\n')
	require.NoError(r.t, err)
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '-':
		return line
	case '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r.in, text)
		require.NoError(r.t, err)
		return string(text[:n])
	case '*':
		list := make([]any, n)
		for i := range list {
			list[i] = r.read()
		}
		return list
	}
	return line[1:]
}

func (r *recorder) commands() {
	var lines []string
	var add func(any)
	add = func(v any) {
		e := v.([]any)
		words := []string{e[0].(string)}
		for _, category := range e[6].([]any) {
			words = append(words, strings.TrimPrefix(category.(string), "@"))
		}
		if slices.Contains(e[2].([]any), any("no_auth")) {
			words = append(words, "no_auth")
		}
		lines = append(lines, strings.Join(words, " "))
		for _, sub := range e[9].([]any) {
			add(sub)
		}
	}
	for _, v := range r.do("COMMAND").([]any) {
		add(v)
	}
	slices.Sort(lines)
	require.NoError(r.t, os.WriteFile(commandsFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

func (r *recorder) rules(steps int) {
	c, text := redisCatalog(), strings.Builder{}
	words, rng := ruleWords(), newRand()
	for i := range steps {
		name := fmt.Sprintf("u%d", i%7)
		var rules []string
		for range 1 + rng.IntN(5) {
			rules = append(rules, words[rng.IntN(len(words))])
		}
		if countUnclosed(rules) > 1 {
			continue // Redis ignores everything before the second one
		}
		reply := strings.TrimPrefix(r.do(append([]string{"ACL", "SETUSER", name}, rules...)...).(string), "-ERR ")
		described := ""
		for _, line := range r.do("ACL", "LIST").([]any) {
			if strings.HasPrefix(line.(string), "user "+name+" ") {
				described = normalize(line.(string))
			}
		}
		var letters []string
		for _, run := range dryRuns {
			verdict := r.do(append([]string{"ACL", "DRYRUN", name}, strings.Fields(run)...)...).(string)
			full, _ := describeCall(c, run)
			switch {
			case verdict == "OK":
				letters = append(letters, "al")
			case verdict == "This user has no permissions to run the '"+full+"' command":
				letters = append(letters, "co")
			case strings.HasSuffix(verdict, " key"):
				letters = append(letters, "ke")
			case strings.HasSuffix(verdict, " channel"):
				letters = append(letters, "ch")
			}
		}
		fmt.Fprintf(&text, "%s\t%s\t%s\t%s\t%s\n", name, strings.Join(rules, "·"), reply, described,
			strings.Join(letters, " "))
	}
	require.NoError(r.t, os.WriteFile(rulesFile, []byte(text.String()), 0o644))
}

// countUnclosed counts the rules that begin a selector and do not end it.
func countUnclosed(rules []string) (n int) {
	for _, rule := range rules {
		if strings.HasPrefix(rule, "(") && !strings.HasSuffix(rule, ")") {
			n++
		}
	}
	return n
}
