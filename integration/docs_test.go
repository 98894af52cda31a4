package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operate = "../docs/OPERATE.md"

const migrate = "../docs/MIGRATE.md"

const commandsDocument = "../docs/COMMANDS.md"

func documentText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func readmeText(t *testing.T) string {
	t.Helper()
	return documentText(t, "../README.md")
}

// TestCommandsDocumentIsCurrent compares docs/COMMANDS.md with the output of rlserver docs.
func TestCommandsDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(commandsDocument)
	require.NoError(t, err)
	generated, err := rlserver(t, "docs").Output()
	require.NoError(t, err)
	assert.True(t, string(generated) == string(written), "%s is not the output of rlserver docs: run 'make docs'",
		commandsDocument)
}

// TestReadmeSession sends the commands of the README's session and compares the replies.
func TestReadmeSession(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	command := regexp.MustCompile(`^    127\.0\.0\.1:6379> (.+)$`)
	integer := regexp.MustCompile(`^    \d\) \(integer\) (\d+)`)
	var commands, at int
	var reply []int64 // to the last command
	for line := range strings.Lines(readmeText(t)) {
		line = strings.TrimRight(line, "\n")
		if match := command.FindStringSubmatch(line); match != nil {
			got, err := rdb.Do(t.Context(), words(match[1])...).Int64Slice()
			require.NoError(t, err, match[1])
			if at > 0 {
				require.Len(t, reply, at, "the reply before %s is shown in part", match[1])
			}
			reply, at = got, 0
			commands++
		} else if match := integer.FindStringSubmatch(line); match != nil {
			require.Less(t, at, len(reply), line)
			assert.Equal(t, match[1], strconv.FormatInt(reply[at], 10), line)
			at++
		}
	}
	assert.GreaterOrEqual(t, commands, 4)
}

// TestReadmeCommands sends all commands of the README, and those of docs/MIGRATE.md and its tables,
// in order: no key is used with two types of limiter.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).connect(t)
	for text, least := range map[string]int{readmeText(t): 12, documentText(t, migrate): 40} {
		inLines, inTables := `^    (?:127\.0\.0\.1:6379> )?(RL\..+)$`, "`(RL\\.[A-Z]+ [^ `]+ \\d[^`]*)`"
		commands := regexp.MustCompile("(?m)"+inLines+"|"+inTables).FindAllStringSubmatch(text, -1)
		for _, match := range commands {
			command := match[1] + match[2] // of a session, or of a table
			require.NoError(t, rdb.Do(t.Context(), words(command)...).Err(), command)
		}
		assert.GreaterOrEqual(t, len(commands), least)
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
	}
}

// TestReadmeGo runs the Go snippet with the address of a test server.
func TestReadmeGo(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	match := regexp.MustCompile("(?s)```go\n(.+?)```").FindStringSubmatch(readmeText(t))
	require.NotNil(t, match)
	require.Contains(t, match[1], "localhost:6379")
	snippet := strings.ReplaceAll(match[1], "localhost:6379", s.addr)
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, []byte(`package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	for range 6 {
		`+snippet+`
	}
}
`), 0o600))
	out, err := exec.Command("go", "run", program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(
		t,
		`^come back in \d+ ms\n$`,
		string(out),
		"five calls are admitted, the sixth is denied",
	)
}

// TestDocumentsPointToWhatExists checks that the files and headings that the documents link to
// exist, and the flags that they name.
func TestDocumentsPointToWhatExists(t *testing.T) {
	t.Parallel()
	help, err := rlserver(t, "--help").Output()
	require.NoError(t, err)
	importFlags, err := rlserver(t, "import", "--help").Output()
	require.NoError(t, err)
	help = append(help, importFlags...)
	for _, document := range []string{"../README.md", guide, operate, migrate, contributing, commandsDocument} {
		text := regexp.MustCompile(`rlserver [a-z]+ --[a-z]+ DIR`).
			ReplaceAllStringFunc(documentText(t, document), func(tool string) string {
				assert.Contains(t, string(help), tool)
				return ""
			})
		// it has flags of its own
		text = regexp.MustCompile("`rlserver healthcheck [^`]*`").ReplaceAllString(text, "")
		// redis-cli has other flags
		text = regexp.MustCompile(`(?m)^    redis-cli .*$`).ReplaceAllString(text, "")
		for _, flag := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(text, -1) {
			if flag != "--help" {
				assert.Regexp(t, flag+`(=|  )`, string(help), document)
			}
		}
		for _, match := range regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]+))?\)`).FindAllStringSubmatch(text, -1) {
			file, heading := filepath.Join(filepath.Dir(document), match[1]), match[2]
			if match[1] == "" {
				file = document
			}
			if assert.FileExists(t, file, document) && heading != "" {
				assert.Contains(t, anchors(documentText(t, file)), heading, document)
			}
		}
	}
}

// anchors returns the anchors of a document's headings.
func anchors(text string) (names []string) {
	removed := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, match := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(removed.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}
