package acl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChangeAndSync applies changes to lines, and syncs other users with them.
func TestChangeAndSync(t *testing.T) {
	source, _ := newUsers()
	target, _ := newUsers()
	fresh, _ := newUsers()
	lines := source.Describe()
	apply := func(c Change) (deleted int, err error) {
		c.HideSecrets()
		assert.NotContains(t, strings.Join(c.Rules, " "), "secret")
		after, deleted, err := source.Change(lines, c)
		if err == nil {
			lines = after
			_, err = target.Sync(lines)
			require.NoError(t, err)
			assert.Equal(t, lines, target.Describe())
		}
		return deleted, err
	}
	_, err := apply(Change{Set: "ann", Rules: []string{"on", ">secret", "~a*", "+@all"}})
	require.NoError(t, err)
	ann := target.Login("ann", []byte("secret"))
	require.NotNil(t, ann)

	_, err = apply(Change{Set: "bob", Rules: []string{"on", ">secret", ">secret2", "<secret", "(~b* +get)"}})
	require.NoError(t, err)
	assert.Nil(t, target.Login("bob", []byte("secret")))
	assert.NotNil(t, target.Login("bob", []byte("secret2")))
	assert.Same(t, ann, target.Find("ann"), "a user that stays keeps its account")
	assert.False(t, ann.Deleted())

	_, err = apply(Change{Set: "bob", Rules: []string{"nonsense"}})
	assert.Error(t, err)
	_, err = apply(Change{Delete: []string{Default}})
	assert.ErrorIs(t, err, ErrDefaultStays)
	deleted, err := apply(Change{Delete: []string{"ann", "nobody"}})
	require.NoError(t, err)
	assert.Equal(t, 1, deleted)
	assert.True(t, ann.Deleted())

	changed, err := target.Sync(lines)
	assert.NoError(t, err)
	assert.False(t, changed)
	_, err = target.Sync([]string{"user x nonsense"})
	assert.Error(t, err)
	assert.Equal(t, lines, target.Describe())
	_, err = apply(Change{Replace: []string{"user eve on nopass ~* &* +@all"}})
	require.NoError(t, err)
	assert.NotNil(t, target.Login("eve", nil))
	assert.Nil(t, target.Find("bob"))
	assert.Equal(t, []string{Default, "eve"}, []string{target.All()[0].Name(), target.All()[1].Name()})
	assert.Equal(t, fresh.Describe(), source.Describe(), "Change does not change the users of its receiver")
}

// The users of a cluster are what they are, whatever limits this node has.
func TestSyncHasNoLimits(t *testing.T) {
	users, _ := newUsers()
	long := "user ann on nopass resetchannels +get"
	for i := range 5000 {
		long += fmt.Sprint(" ~key:of:some:length:", i)
	}
	lines := append(users.Describe(), long)
	_, _, err := users.Change(users.Describe(), Change{Set: "ann", Rules: strings.Fields(long)[2:]})
	require.Error(t, err, "it is beyond acl-max-user-size")
	changed, err := users.Sync(lines)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.NotNil(t, users.Login("ann", nil))
}
