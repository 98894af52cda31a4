package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSyntaxTrees(t *testing.T) {
	for _, step := range []struct {
		syntax string
		want   []Argument
	}{
		{"", nil},
		{"key", []Argument{{Name: "key"}}},
		{"[NX | XX]", []Argument{{Name: "nx_xx", Kind: OneOf, Optional: true, Parts: []Argument{
			{Name: "nx", Kind: PureToken, Token: "NX"}, {Name: "xx", Kind: PureToken, Token: "XX"}}}}},
		{"[COST cost]", []Argument{{Name: "cost", Token: "COST", Optional: true}}},
		{"FIELD field", []Argument{{Name: "field", Token: "FIELD"}}},
		{"score member [score member ...]",
			[]Argument{{Name: "score_member", Kind: Block, Multiple: true, Parts: []Argument{
				{Name: "score"}, {Name: "member"}}}}},
		{"[LIMIT offset count]", []Argument{{Name: "offset_count", Kind: Block, Token: "LIMIT", Optional: true,
			Parts: []Argument{
				{Name: "offset"}, {Name: "count"}}}}},
		{"[WEIGHTS weight [weight ...]]",
			[]Argument{{Name: "weight", Token: "WEIGHTS", Optional: true, Multiple: true}}},
		{"[GET pattern [GET pattern ...]]",
			[]Argument{{Name: "pattern", Token: "GET", Optional: true, Multiple: true, Again: true}}},
		{"[AGGREGATE <SUM | MIN>]", []Argument{{Name: "sum_min", Kind: OneOf, Token: "AGGREGATE", Optional: true,
			Parts: []Argument{
				{Name: "sum", Kind: PureToken, Token: "SUM"}, {Name: "min", Kind: PureToken, Token: "MIN"}}}}},
		{"[section [section ...]]", []Argument{{Name: "section", Optional: true, Multiple: true}}},
		{"<EX seconds | KEEPTTL>", []Argument{{Name: "seconds_keepttl", Kind: OneOf, Parts: []Argument{
			{Name: "seconds", Token: "EX"}, {Name: "keepttl", Kind: PureToken, Token: "KEEPTTL"}}}}},
	} {
		args, err := ParseSyntax(step.syntax)
		require.NoError(t, err, step.syntax)
		require.Equal(t, step.want, args, step.syntax)
		require.Equal(t, step.syntax, Join(args, " "))
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, syntax := range []string{"[key", "key]", "<a | b", "a >", "[]", "<>", "[a | ]", "[key ...]",
		"key [other ...]", "a ...", "a [b c ...]"} {
		_, err := ParseSyntax(syntax)
		require.Error(t, err, syntax)
	}
}
