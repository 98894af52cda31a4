package command_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// accessForms matches the access flags of Redis' key specifications.
var accessForms = regexp.MustCompile(`^(RO|RW|OW|RM)( (access|update|insert|delete|variable_flags))*$`)

func TestEveryCommandIsDeclaredCompletely(t *testing.T) {
	manual, err := command.Documentation()
	require.NoError(t, err)
	eachCommand(t, func(t *testing.T, c *command.Command) {
		assert.Equal(t, strings.ToLower(c.Name), c.Name)
		assert.LessOrEqual(t, len(c.Name), 32, "longer names are not found")
		assert.NotEmpty(t, c.Summary)
		assert.True(t, c.Complexity != "" || c.Name == "monitor" || c.Name == "lolwut", "as in Redis")
		assert.Regexp(t, `^\d+\.\d+\.\d+$`, c.Since)
		assert.True(t, c.Run != nil || len(c.Subs) > 0, "nothing to run")
		assert.Equal(t, c.Run != nil, strings.Contains(manual, "\n### "+c.Title()+"\n"), "documented in a section")
		assert.Equal(t, c.Deprecated == "", c.ReplacedBy == "")
		if strings.Contains(c.Syntax, "WAIT timeout") {
			assert.NotZero(t, c.Flags&command.Blocking, "the call may wait")
		}
	})
}

func TestArityAgreesWithSyntax(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command.Command) {
		if len(c.Subs) > 0 {
			assert.Negative(t, c.Arity)
			return
		}
		least, most := countWords(c.Arguments())
		name := 1 + strings.Count(c.FullName(), "|")
		want := least + name
		if least != most {
			want = -want
		}
		assert.Equal(t, slices.Contains(otherArities, c.FullName()), c.Arity != want, "%d, not %d", c.Arity, want)
	})
}

// otherArities are commands whose arity in Redis 7.0.15 differs from their syntax.
var otherArities = []string{"client|kill", "command|getkeys", "command|getkeysandflags", "quit"}

// countWords returns the minimum and maximum number of words of arguments. A large maximum means
// that there is none.
func countWords(args []command.Argument) (least, most int) {
	const any = 1 << 20
	for _, a := range args {
		lo, hi := 1, 1
		switch a.Kind {
		case command.PureToken:
			lo, hi = 0, 0 // the token is counted below
		case command.Block:
			lo, hi = countWords(a.Parts)
		case command.OneOf:
			lo, hi = any, 0
			for _, part := range a.Parts {
				l, h := countWords([]command.Argument{part})
				lo, hi = min(lo, l), max(hi, h)
			}
		}
		if a.Token != "" {
			lo, hi = lo+1, hi+1
		}
		if a.Optional {
			lo = 0
		}
		if a.Multiple {
			hi = any
		}
		least, most = least+lo, most+hi
	}
	return least, most
}

func TestKeysAgreeWithSyntaxAndFlags(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command.Command) {
		if c.Group == "pubsub" {
			return // shard channels are routed like keys, and are none
		}
		var keys []command.Argument
		collectKeys(c.Arguments(), &keys)
		require.Len(
			t,
			keys,
			len(c.SyntaxKeys().Next),
			"the syntax and the key specifications have the same number of keys",
		)
		changes := c.Flags & (command.Write | command.Readonly)
		if len(c.Keys) > 0 && c.Group != "transactions" && c.Flags&command.AnyKeys == 0 {
			assert.True(t, changes == command.Write || changes == command.Readonly, "write or readonly, not both")
		}
		first := make(map[int]command.Argument)
		for i := len(keys) - 1; i >= 0; i-- {
			first[c.SyntaxKeys().Next[i]] = keys[i]
		}
		for i, spec := range c.Keys {
			assert.Regexp(t, accessForms, spec.Access)
			assert.Positive(t, spec.Step)
			assert.Less(t, spec.Begin, max(c.Arity, -c.Arity), "the first key is read without a check of the length")
			assert.True(
				t,
				changes != command.Readonly || strings.HasPrefix(spec.Access, "RO"),
				"%s for a command that only reads",
				spec.Access,
			)
			assert.Equal(t, first[i].Multiple || spec.Last < 0 || spec.Counted, spec.Last < 0 || spec.Counted)
		}
		if changes == command.Readonly {
			assert.Zero(t, c.Flags&command.DenyOOM, "commands that only read take no memory")
		}
		if changes != 0 && len(c.Keys) > 0 || c.Flags&command.WholeKeyspace != 0 {
			assert.Zero(t, c.Flags&(command.Loading|command.NoAuth), "needs the keyspace")
		}
	})
}

func collectKeys(args []command.Argument, keys *[]command.Argument) {
	for _, a := range args {
		if a.Kind == "key" {
			*keys = append(*keys, a)
		}
		collectKeys(a.Parts, keys)
	}
}

// notRun are commands whose example cannot be run on a new server.
var notRun = []string{"rl.policy|help", "rl.policy|reload"}

// TestExamples sends each example of a limiter to a new server.
func TestExamples(t *testing.T) {
	examples := command.Examples()
	eachCommand(t, func(t *testing.T, c *command.Command) {
		if c.Group != "ratelimit" || c.Run == nil || slices.Contains(notRun, c.FullName()) {
			return
		}
		example := examples[c.Title()]
		client := resptest.Start(t, config.Defaults{}).Dial()
		var got strings.Builder
		for line := range strings.Lines(example) {
			if call, ok := strings.CutPrefix(line, "> "); ok {
				fmt.Fprint(client, strings.TrimSpace(call)+"\r\n")
				got.WriteString("> " + strings.TrimSpace(call) + "\n" + printed(client.ReadValue()))
			}
		}
		assert.Equal(t, example+"\n", got.String())
	})
}

// printed formats a reply as redis-cli prints it.
func printed(reply any) string {
	switch reply := reply.(type) {
	case int64:
		return fmt.Sprintf("(integer) %d\n", reply)
	case []any:
		var text strings.Builder
		for i, each := range reply {
			number := fmt.Sprintf("%d) ", i+1)
			lines := strings.TrimSuffix(printed(each), "\n")
			text.WriteString(number + strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", len(number))) + "\n")
		}
		return text.String()
	}
	return fmt.Sprintf("%q\n", reply)
}

// eachCommand visits all declared commands and subcommands.
func eachCommand(t *testing.T, check func(t *testing.T, c *command.Command)) {
	for _, c := range command.Table.Sorted() {
		t.Run(c.Name, func(t *testing.T) { check(t, c.Quoted()) })
		for _, sub := range c.Subs {
			t.Run(sub.FullName(), func(t *testing.T) { check(t, sub.Quoted()) })
		}
	}
}

func TestSyntaxParsesAndPrintsTheSame(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command.Command) {
		args, err := command.ParseSyntax(c.Syntax)
		require.NoError(t, err)
		require.Equal(t, c.Syntax, command.Join(args, " "))
	})
}
