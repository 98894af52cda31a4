package resp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// eachCommand goes through all that are declared, subcommands too.
func eachCommand(t *testing.T, check func(t *testing.T, c *command)) {
	for _, c := range commands.sorted() {
		t.Run(c.name, func(t *testing.T) { check(t, c) })
		for _, sub := range c.subs {
			t.Run(sub.fullName(), func(t *testing.T) { check(t, sub) })
		}
	}
}

func TestEverySyntaxIsReadAndWrittenAlike(t *testing.T) {
	eachCommand(t, func(t *testing.T, c *command) {
		args, err := parseSyntax(c.syntax)
		require.NoError(t, err)
		require.Equal(t, c.syntax, join(args, " "))
	})
}

func TestSyntaxTrees(t *testing.T) {
	for _, step := range []struct {
		syntax string
		want   []argument
	}{
		{"", nil},
		{"key", []argument{{name: "key"}}},
		{"[NX | XX]", []argument{{name: "nx_xx", kind: oneOf, optional: true, parts: []argument{
			{name: "nx", kind: pureToken, token: "NX"}, {name: "xx", kind: pureToken, token: "XX"}}}}},
		{"[COST cost]", []argument{{name: "cost", token: "COST", optional: true}}},
		{"FIELD field", []argument{{name: "field", token: "FIELD"}}},
		{"score member [score member ...]", []argument{{name: "score_member", kind: block, multiple: true, parts: []argument{
			{name: "score"}, {name: "member"}}}}},
		{"[LIMIT offset count]", []argument{{name: "offset_count", kind: block, token: "LIMIT", optional: true, parts: []argument{
			{name: "offset"}, {name: "count"}}}}},
		{"[WEIGHTS weight [weight ...]]", []argument{{name: "weight", token: "WEIGHTS", optional: true, multiple: true}}},
		{"[GET pattern [GET pattern ...]]", []argument{{name: "pattern", token: "GET", optional: true, multiple: true, again: true}}},
		{"[AGGREGATE <SUM | MIN>]", []argument{{name: "sum_min", kind: oneOf, token: "AGGREGATE", optional: true, parts: []argument{
			{name: "sum", kind: pureToken, token: "SUM"}, {name: "min", kind: pureToken, token: "MIN"}}}}},
		{"[section [section ...]]", []argument{{name: "section", optional: true, multiple: true}}},
		{"<EX seconds | KEEPTTL>", []argument{{name: "seconds_keepttl", kind: oneOf, parts: []argument{
			{name: "seconds", token: "EX"}, {name: "keepttl", kind: pureToken, token: "KEEPTTL"}}}}},
	} {
		args, err := parseSyntax(step.syntax)
		require.NoError(t, err, step.syntax)
		require.Equal(t, step.want, args, step.syntax)
		require.Equal(t, step.syntax, join(args, " "))
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, syntax := range []string{"[key", "key]", "<a | b", "a >", "[]", "<>", "[a | ]", "[key ...]", "key [other ...]", "a ...", "a [b c ...]"} {
		_, err := parseSyntax(syntax)
		require.Error(t, err, syntax)
	}
}
