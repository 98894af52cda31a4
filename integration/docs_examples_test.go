package integration

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests send the examples of the documents to a server and compare the replies.

const guide = "../docs/GUIDE.md"

// TestGuideExamples sends the examples of the guide, in the order of the page. An example is a
// command, an arrow and the leaves of the reply. The server reads the file of policies that the
// page shows.
func TestGuideExamples(t *testing.T) {
	t.Parallel()
	text := documentText(t, guide)
	yaml := regexp.MustCompile("(?s)```yaml\n(.+?)```").FindStringSubmatch(text)
	require.NotNil(t, yaml)
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(policies, []byte(yaml[1]), 0o600))
	client := newExampleClient(t, startServer(t, "--policies", policies).addr)

	examples := regexp.MustCompile(`(?m)^    (\S.*) → (.+)$`).FindAllStringSubmatch(text, -1)
	for _, example := range examples {
		command, shown := example[1], example[2]
		got := client.call(command).leaves()
		if strings.HasPrefix(command, "RL.") && len(got) >= 5 && len(got) <= 6 {
			compareDecision(t, command, strings.Fields(shown), got)
		} else {
			assert.Regexp(t, pattern(shown), strings.Join(got, " "), command)
		}
	}
	assert.Greater(t, len(examples), 50)
	commands := regexp.MustCompile(`(?m)^    [A-Z][A-Z.]+ .*$`).FindAllString(text, -1)
	assert.Len(t, commands, len(examples), "an example has no reply")
}

// compareDecision compares the integers of a limiter's reply. Time passes between two examples, so
// a time that is shown as positive may have become shorter, but not 0.
func compareDecision(t *testing.T, command string, shown, got []string) {
	t.Helper()
	require.Len(t, got, len(shown), command)
	for i := range shown {
		want, err := strconv.Atoi(shown[i])
		isTime := i == 3 || i == 4 || i == 5 && strings.HasPrefix(command, "RL.LEAKY")
		switch {
		case shown[i] == "…":
		case isTime && want > 0:
			n, err := strconv.Atoi(got[i])
			require.NoError(t, err, command)
			assert.Greater(t, n, 0, command)
			assert.LessOrEqual(t, n, want, command)
		default:
			require.NoError(t, err, "%s: an integer is shown as %s", command, shown[i])
			assert.Equal(t, shown[i], got[i], "%s: integer %d of %s", command, i+1, got)
		}
	}
}

// pattern returns a regular expression for a reply in which … stands for any text.
func pattern(shown string) string {
	return "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(shown), "…", ".*") + "$"
}

// TestCommandExamples sends the example of each command that Redis has too, except those of the
// cluster. The examples of the limiters are tested in package resp, which controls the clock.
func TestCommandExamples(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	admin := newExampleClient(t, s.addr)
	before, after, _ := strings.Cut(documentText(t, commandsDocument), "\n## Cluster\n")
	_, after, _ = strings.Cut(after, "\n## ")
	checked := 0
	for title, example := range redisExamples(t, before+"\n## "+after) {
		for _, reset := range []string{"FLUSHALL", `CONFIG SET requirepass "" timeout 0 maxmemory-policy noeviction`} {
			require.Equal(t, "OK", admin.call(reset).text)
		}
		// BGSAVE is refused beside a rewrite of the log
		await(t, func() bool {
			running := admin.call("INFO persistence").text
			return strings.Contains(running, "rdb_bgsave_in_progress:0") &&
				strings.Contains(running, "aof_rewrite_in_progress:0")
		})
		if title == "SHUTDOWN" {
			continue // it has no reply
		}
		compareSession(t, newExampleClient(t, s.addr), example)
		checked++
	}
	assert.Greater(t, checked, 150)
}

// TestClusterCommandExamples sends the examples of the cluster's commands to a cluster of one node.
func TestClusterCommandExamples(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	_, section, _ := strings.Cut(documentText(t, commandsDocument), "\n## Cluster\n")
	section, _, _ = strings.Cut(section, "\n## ")
	checked := 0
	for title, example := range redisExamples(t, section) {
		node := c
		if title == "CLUSTER FAILOVER" {
			node = startCluster(t, 3) // a node alone has no other to hand over to
		}
		compareSession(t, newExampleClient(t, "127.0.0.1:"+node.ports[0]), example)
		checked++
	}
	assert.Greater(t, checked, 10)
}

// redisExamples returns the examples in a text, by the titles of the commands that Redis has too.
func redisExamples(t *testing.T, text string) iter.Seq2[string, string] {
	return func(yield func(title, example string) bool) {
		for section := range strings.SplitSeq(text, "\n### ") {
			title, body, _ := strings.Cut(section, "\n")
			if !regexp.MustCompile(`(?m)^Redis \d`).MatchString(body) {
				continue
			}
			example := regexp.MustCompile(`(?m)^    > (?:.+\n)+`).FindString(body)
			require.NotEmpty(t, example, "%s has no example", title)
			if !yield(title, example) {
				return
			}
		}
	}
}

// compareSession sends the commands of a redis-cli session, and compares the replies with the
// session.
func compareSession(t *testing.T, client *exampleClient, session string) {
	t.Helper()
	var got strings.Builder
	for line := range strings.Lines(session) {
		if command, ok := strings.CutPrefix(line, "    > "); ok {
			command = strings.TrimSpace(command)
			got.WriteString("    > " + command + "\n")
			for line := range strings.Lines(client.call(command).printed("")) {
				got.WriteString("    " + line)
			}
		}
	}
	assert.Regexp(t, pattern(session), got.String())
}

// printed returns a reply in the format of redis-cli.
func (r reply) printed(indent string) string {
	switch {
	case r.null:
		return "(nil)\n"
	case r.kind == ':':
		return "(integer) " + r.text + "\n"
	case r.kind == '-':
		return "(error) " + r.text + "\n"
	case r.kind == '$':
		return quote(r.text) + "\n"
	case !r.aggregate():
		return r.text + "\n"
	case len(r.items) == 0:
		return "(empty array)\n"
	}
	var text strings.Builder
	width := len(strconv.Itoa(len(r.items)))
	for i, item := range r.items {
		number := fmt.Sprintf("%*d) ", width, i+1)
		if i > 0 {
			text.WriteString(indent)
		}
		text.WriteString(number + item.printed(indent+strings.Repeat(" ", len(number))))
	}
	return text.String()
}

// exampleClient sends commands in the form in which documents show them.
type exampleClient struct {
	t    *testing.T
	conn io.Writer
	in   *bufio.Reader
}

func newExampleClient(t *testing.T, addr string) *exampleClient {
	t.Helper()
	conn, err := dial(addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &exampleClient{t, conn, bufio.NewReader(conn)}
}

// call sends a command and returns the reply.
func (c *exampleClient) call(command string) reply {
	c.t.Helper()
	args, err := splitArgs(command)
	require.NoError(c.t, err, command)
	_, err = io.WriteString(c.conn, frame(args...))
	require.NoError(c.t, err, command)
	r, err := readReply(c.in)
	require.NoError(c.t, err, command)
	return r
}
