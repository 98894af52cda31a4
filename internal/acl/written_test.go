package acl

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostile are parts of names, patterns, passwords and first arguments.
var hostile = []string{
	"a", "b", "", " ", "\t", "\n", "\r", "\v", "\f", "\x00", "\x85", "\xa0", "\u00a0", "\u0085", "\u2028", "\u3000",
	"(", ")", "~", "&", "%R~", "+", "-", "@", "|", "#", "\"", "'", "\\", "*", "?", "[", "user", "+@all", "\ufeff",
	"\nuser evil on nopass ~* &* +@all", ") ~* +@all",
}

func hostileWord(r *rand.Rand) (word string) {
	for range r.IntN(4) {
		word += hostile[r.IntN(len(hostile))]
	}
	return word
}

// hostileRule returns a rule that a hostile administrator may try.
func hostileRule(r *rand.Rand) string {
	word := hostileWord(r)
	switch r.IntN(14) {
	case 0:
		return "~" + word
	case 1:
		return []string{"%R~", "%W~", "%RW~"}[r.IntN(3)] + []string{word, "*"}[r.IntN(2)]
	case 2:
		return "&" + word
	case 3:
		return []string{"+get|", "+sort|", "+config|", "+acl|"}[r.IntN(4)] + word
	case 4:
		return ">" + word
	case 5:
		return "(" + hostileRule(r) + " " + hostileRule(r) + ")"
	case 6:
		return "(" + hostileRule(r)
	case 7:
		return hostileRule(r) + ")"
	case 8:
		return []string{"on", "off", "nopass", "resetpass", "reset", "sanitize-payload"}[r.IntN(6)]
	case 9:
		return []string{"+", "-"}[r.IntN(2)] + []string{"@" + Categories[r.IntN(len(Categories))], "@all"}[r.IntN(2)]
	case 10:
		return []string{"+", "-"}[r.IntN(2)] + []string{"get", "config", "config|get", "sort", "ping"}[r.IntN(5)]
	case 11:
		return []string{"allkeys", "resetkeys", "allchannels", "resetchannels", "~*", "&*"}[r.IntN(6)]
	}
	return word
}

// randomUsers returns users with the rules of many attempts, most of which are refused.
func randomUsers(t *testing.T, r *rand.Rand) *Users {
	var settings Settings
	settings.Init()
	settings.AllChannels.Store(int64(r.IntN(2)))
	users := NewUsers(redisCatalog(), &settings)
	for range 60 {
		var rules []string
		for range 1 + r.IntN(3) {
			rules = append(rules, hostileRule(r))
		}
		name := []string{"ann", "bob", Default, hostileWord(r)}[r.IntN(4)]
		err := users.Set(name, rules)
		assert.Equal(t, err == nil && name != "", err == nil && users.Find(name) != nil, "%q %q", name, rules)
	}
	return users
}

// A written file of users gives the same users when it is read back.
func TestSavedUsersAreReadBack(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		users := randomUsers(t, r)
		path := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, users.Save(path))
		read := NewUsers(users.catalog, users.settings)
		require.NoError(t, read.Load(path), "%d: %q", seed, users.Describe())
		require.Equal(t, users.Describe(), read.Describe(), seed)

		defined := NewUsers(users.catalog, users.settings)
		for _, line := range users.Defined() {
			words := strings.FieldsFunc(line, IsSeparator)
			require.NoError(t, defined.Define(words[0], words[1:]), "%q", line)
		}
		require.Equal(t, users.Describe(), defined.Describe(), seed)
	}
}

// A user is refused as soon as its line in the file would be too long to be read.
func TestLinesOfUsersAreShortEnoughToBeReadBack(t *testing.T) {
	for kind, rule := range map[string]string{
		"passwords": ">%d", "selectors": "(~%d +@all -@write +set -@fast +@geo)",
	} {
		var settings Settings
		settings.Init()
		settings.MaxUserSize.Store(16 << 10)
		users := NewUsers(redisCatalog(), &settings)
		var err error
		for i := 0; err == nil; i++ {
			err = users.Set("ann", []string{fmt.Sprintf(rule, i)})
		}
		assert.ErrorContains(t, err, "The user is too large", kind)
		path := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, users.Save(path), kind)
		require.NoError(t, users.Load(path), kind)
		rules := strings.Split(users.Find("ann").User().Describe(), " ")
		require.NoError(t, NewUsers(users.catalog, &settings).Define("ann", rules), kind)
	}
}

// Rules that a file of users could not hold are refused when they are set.
func TestRulesThatCannotBeWrittenAreRefused(t *testing.T) {
	var settings Settings
	settings.Init()
	users := NewUsers(redisCatalog(), &settings)
	for _, rule := range []string{
		"+sort|a b", "+get|a\nuser evil on nopass ~* &* +@all", "+get|) ~* +@all", "+get|a\x00", "+get|a\rb",
		"(~a) ~b)", "(~a ~b) )", "(+get|a) )",
	} {
		assert.EqualError(t, users.Set("ann", []string{rule}), "Error in ACL SETUSER modifier '"+rule+"': Syntax error")
	}
	assert.Equal(t, ErrNoUserName, users.Set("", []string{"on"}))
	assert.Len(t, users.All(), 1)
}
