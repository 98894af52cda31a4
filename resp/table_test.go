package resp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accessForms are what a key specification may say, in Redis' words.
var accessForms = regexp.MustCompile(`^(RO|RW|OW|RM)( (access|update|insert|delete|variable_flags))*$`)

func TestEveryCommandIsDeclaredWhole(t *testing.T) {
	groups := []string{"generic", "string", "bitmap", "hash", "sorted-set", "connection", "server", "transactions", "scripting", "ratelimit"}
	eachCommand(t, func(t *testing.T, c *command) {
		assert.Equal(t, strings.ToLower(c.name), c.name)
		assert.LessOrEqual(t, len(c.name), 32, "find looks no further")
		assert.NotEmpty(t, c.summary)
		assert.NotEmpty(t, c.complexity)
		assert.Regexp(t, `^\d+\.\d+\.\d+$`, c.since)
		assert.Contains(t, groups, c.group)
		assert.True(t, c.run != nil || len(c.subs) > 0, "nothing to run")
		assert.Equal(t, c.deprecated == "", c.replacedBy == "")
		if strings.Contains(c.syntax, "WAIT timeout") {
			assert.NotZero(t, c.flags&blocking, "it may hold the connection")
		}
		if c.group == "ratelimit" && c.run != nil && !slices.Contains(withoutExample, c.fullName()) {
			assert.NotEmpty(t, c.example)
		}
	})
}

// withoutExample are commands of ours that a server by itself cannot show, or that show themselves.
var withoutExample = []string{"rl.policy|help", "rl.policy|reload"}

func TestArityAgreesWithSyntax(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command) {
		if len(c.subs) > 0 {
			assert.Negative(t, c.arity)
			return
		}
		least, most := countWords(c.arguments())
		name := 1 + strings.Count(c.fullName(), "|")
		want := least + name
		if least != most {
			want = -want
		}
		assert.Equal(t, slices.Contains(otherArities, c.fullName()), c.arity != want, "%d, not %d", c.arity, want)
	})
}

// otherArities are commands whose arity in Redis 7.0.15 is not what their syntax says.
var otherArities = []string{"client|kill", "command|getkeys", "command|getkeysandflags", "quit"}

// countWords tells how many words arguments take at least and at most, where any number is a great one.
func countWords(args []argument) (least, most int) {
	const any = 1 << 20
	for _, a := range args {
		lo, hi := 1, 1
		switch a.kind {
		case pureToken:
			lo, hi = 0, 0 // its token is counted below
		case block:
			lo, hi = countWords(a.parts)
		case oneOf:
			lo, hi = any, 0
			for _, part := range a.parts {
				l, h := countWords([]argument{part})
				lo, hi = min(lo, l), max(hi, h)
			}
		}
		if a.token != "" {
			lo, hi = lo+1, hi+1
		}
		if a.optional {
			lo = 0
		}
		if a.multiple {
			hi = any
		}
		least, most = least+lo, most+hi
	}
	return least, most
}

func TestKeysAgreeWithSyntaxAndFlags(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command) {
		var keys []argument
		collectKeys(c.arguments(), &keys)
		require.Len(t, keys, len(c.syntaxKeys().next), "as many keys in the syntax as in the specifications")
		changes := c.flags & (write | readonly)
		if len(c.keys) > 0 && c.group != "transactions" {
			assert.True(t, changes == write || changes == readonly, "write or readonly, not both")
		}
		first := make(map[int]argument)
		for i := len(keys) - 1; i >= 0; i-- {
			first[c.syntaxKeys().next[i]] = keys[i]
		}
		for i, spec := range c.keys {
			assert.Regexp(t, accessForms, spec.access)
			assert.Positive(t, spec.step)
			assert.Less(t, spec.begin, max(c.arity, -c.arity), "hash looks at it without asking")
			assert.True(t, changes != readonly || strings.HasPrefix(spec.access, "RO"), "%s for a command that only reads", spec.access)
			assert.Equal(t, first[i].multiple || spec.last < 0 || spec.counted, spec.last < 0 || spec.counted)
		}
		if changes == readonly {
			assert.Zero(t, c.flags&denyOOM, "what only reads takes no memory")
		}
		if changes != 0 && len(c.keys) > 0 || c.flags&wholeKeyspace != 0 {
			assert.Zero(t, c.flags&(loading|noAuth), "needs the keyspace")
		}
	})
}

func collectKeys(args []argument, keys *[]argument) {
	for _, a := range args {
		if a.kind == "key" {
			*keys = append(*keys, a)
		}
		collectKeys(a.parts, keys)
	}
}

// TestExamples sends every example of the documentation to a server of its own.
func TestExamples(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command) {
		if c.example == "" {
			return
		}
		client := startServer(t, Defaults{}).dial()
		var got strings.Builder
		for line := range strings.Lines(c.example) {
			if call, ok := strings.CutPrefix(line, "> "); ok {
				fmt.Fprint(client, strings.TrimSpace(call)+"\r\n")
				got.WriteString("> " + strings.TrimSpace(call) + "\n" + printed(readValue(t, client.r)))
			}
		}
		assert.Equal(t, c.example+"\n", got.String())
	})
}

// printed is a reply as redis-cli prints it.
func printed(reply any) string {
	switch reply := reply.(type) {
	case int64:
		return fmt.Sprintf("(integer) %d\n", reply)
	case []any:
		var text strings.Builder
		for i, each := range reply {
			fmt.Fprintf(&text, "%d) %s", i+1, printed(each))
		}
		return text.String()
	}
	return fmt.Sprintf("%q\n", reply)
}
