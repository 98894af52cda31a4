package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/command"
)

func TestSyntaxTrees(t *testing.T) {
	for _, step := range []struct {
		syntax string
		want   []command.Argument
	}{
		{"", nil},
		{"key", []command.Argument{{Name: "key"}}},
		{"[NX | XX]", []command.Argument{{Name: "nx_xx", Kind: command.OneOf, Optional: true, Parts: []command.Argument{
			{Name: "nx", Kind: command.PureToken, Token: "NX"}, {Name: "xx", Kind: command.PureToken, Token: "XX"}}}}},
		{"[COST cost]", []command.Argument{{Name: "cost", Token: "COST", Optional: true}}},
		{"FIELD field", []command.Argument{{Name: "field", Token: "FIELD"}}},
		{"score member [score member ...]",
			[]command.Argument{{Name: "score_member", Kind: command.Block, Multiple: true, Parts: []command.Argument{
				{Name: "score"}, {Name: "member"}}}}},
		{"[LIMIT offset count]", []command.Argument{{Name: "offset_count", Kind: command.Block, Token: "LIMIT", Optional: true,
			Parts: []command.Argument{
				{Name: "offset"}, {Name: "count"}}}}},
		{"[WEIGHTS weight [weight ...]]",
			[]command.Argument{{Name: "weight", Token: "WEIGHTS", Optional: true, Multiple: true}}},
		{"[GET pattern [GET pattern ...]]",
			[]command.Argument{{Name: "pattern", Token: "GET", Optional: true, Multiple: true, Again: true}}},
		{"[AGGREGATE <SUM | MIN>]", []command.Argument{{Name: "sum_min", Kind: command.OneOf, Token: "AGGREGATE", Optional: true,
			Parts: []command.Argument{
				{Name: "sum", Kind: command.PureToken, Token: "SUM"}, {Name: "min", Kind: command.PureToken, Token: "MIN"}}}}},
		{"[section [section ...]]", []command.Argument{{Name: "section", Optional: true, Multiple: true}}},
		{"<EX seconds | KEEPTTL>", []command.Argument{{Name: "seconds_keepttl", Kind: command.OneOf, Parts: []command.Argument{
			{Name: "seconds", Token: "EX"}, {Name: "keepttl", Kind: command.PureToken, Token: "KEEPTTL"}}}}},
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
