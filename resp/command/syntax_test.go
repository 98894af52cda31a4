package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
)

type argument = command.Argument

const pure, oneOf, block = command.PureToken, command.OneOf, command.Block

func TestSyntaxTrees(t *testing.T) {
	for _, step := range []struct {
		syntax string
		want   []argument
	}{
		{"", nil},
		{"key", []argument{{Name: "key"}}},
		{"[NX | XX]", []argument{{Name: "nx_xx", Kind: oneOf, Optional: true, Parts: []argument{
			{Name: "nx", Kind: pure, Token: "NX"}, {Name: "xx", Kind: pure, Token: "XX"}}}}},
		{"[COST cost]", []argument{{Name: "cost", Token: "COST", Optional: true}}},
		{"FIELD field", []argument{{Name: "field", Token: "FIELD"}}},
		{"score member [score member ...]",
			[]argument{{Name: "score_member", Kind: block, Multiple: true, Parts: []argument{
				{Name: "score"}, {Name: "member"}}}}},
		{"[LIMIT offset count]", []argument{{Name: "offset_count", Kind: block, Token: "LIMIT", Optional: true,
			Parts: []argument{
				{Name: "offset"}, {Name: "count"}}}}},
		{"[WEIGHTS weight [weight ...]]",
			[]argument{{Name: "weight", Token: "WEIGHTS", Optional: true, Multiple: true}}},
		{"[GET pattern [GET pattern ...]]",
			[]argument{{Name: "pattern", Token: "GET", Optional: true, Multiple: true, Again: true}}},
		{"[AGGREGATE <SUM | MIN>]", []argument{{Name: "sum_min", Kind: oneOf, Token: "AGGREGATE", Optional: true,
			Parts: []argument{
				{Name: "sum", Kind: pure, Token: "SUM"}, {Name: "min", Kind: pure, Token: "MIN"}}}}},
		{"[section [section ...]]", []argument{{Name: "section", Optional: true, Multiple: true}}},
		{"<EX seconds | KEEPTTL>", []argument{{Name: "seconds_keepttl", Kind: oneOf, Parts: []argument{
			{Name: "seconds", Token: "EX"}, {Name: "keepttl", Kind: pure, Token: "KEEPTTL"}}}}},
	} {
		args, err := command.ParseSyntax(step.syntax)
		require.NoError(t, err, step.syntax)
		require.Equal(t, step.want, args, step.syntax)
		require.Equal(t, step.syntax, command.Join(args, " "))
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, syntax := range []string{"[key", "key]", "<a | b", "a >", "[]", "<>", "[a | ]", "[key ...]",
		"key [other ...]", "a ...", "a [b c ...]"} {
		_, err := command.ParseSyntax(syntax)
		require.Error(t, err, syntax)
	}
}
