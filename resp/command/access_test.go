package command_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/acl"
	"rlserver/resp/command"
	"rlserver/resp/command/commandtest"
)

// accessRules has random rules over all commands and categories of Redis 7.0.15, and what ACL
// SETUSER and ACL LIST reply to them. Recorded by
// go test ./resp/command -run TestAccessRulesMatchRedis -record 127.0.0.1:6379
const accessRules = "testdata/access-rules-7.0.15.txt"

// sortedWords makes texts comparable: Redis lists single commands in the order of a hash table.
func sortedWords(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

func recordAccessRules(t *testing.T) {
	send := commandtest.Dial(t, *record).Ask
	words := slices.Sorted(maps.Keys(ask(t, *record)))
	categories := slices.DeleteFunc(slices.Clone(acl.Categories), func(s string) bool { return s == "ratelimit" })
	rng, file := rand.New(rand.NewPCG(1, 2)), bytes.Buffer{}
	for range 120 {
		var rules []string
		for range 1 + rng.IntN(6) {
			rule := words[rng.IntN(len(words))]
			if rng.IntN(2) == 0 {
				rule = "@" + categories[rng.IntN(len(categories))]
			}
			rules = append(rules, []string{"+", "-"}[rng.IntN(2)]+rule)
		}
		line := []string{"-@all", "+@all"}[rng.IntN(2)] + " " + strings.Join(rules, " ")
		require.Equal(t, "OK", send("ACL SETUSER u reset "+line))
		list := send("ACL LIST").([]any)
		file.WriteString(line + "\t" + sortedWords(list[len(list)-1].(string)) + "\n")
	}
	send("ACL DELUSER u")
	require.NoError(t, os.WriteFile(accessRules, file.Bytes(), 0o644))
}

// ownCommand reports whether Redis does not have a command.
func ownCommand(t *testing.T) func(name string) bool {
	redis, err := os.ReadFile(golden)
	require.NoError(t, err)
	return func(name string) bool {
		return command.Table.Named([]byte(name)) != nil && !bytes.Contains(redis, []byte(`{"name":"`+name+`",`))
	}
}

// Rules may name every command and category of Redis, also those that this server does not have:
// they are kept as in Redis, and described as there.
func TestAccessRulesMatchRedis(t *testing.T) {
	if *record != "" {
		recordAccessRules(t)
	}
	file, err := os.ReadFile(accessRules)
	require.NoError(t, err)
	var settings acl.Settings
	settings.Init()
	users := acl.NewUsers(command.AccessCatalog(), &settings)
	own := ownCommand(t)
	for line := range strings.Lines(string(file)) {
		rules, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.NoError(t, users.Set("u", append([]string{"reset"}, strings.Fields(rules)...)))
		text := users.Find("u").User().Describe()
		described := slices.DeleteFunc(strings.Fields("user u "+text), func(rule string) bool {
			return rule[1:] == "@ratelimit" || own(rule[1:])
		})
		assert.Equal(t, want, sortedWords(strings.Join(described, " ")), rules)

		require.NoError(t, users.Set("copy", append([]string{"reset"}, strings.Fields(text)...)))
		assert.Equal(t, text, users.Find("copy").User().Describe(), "does not read back")
	}
}
