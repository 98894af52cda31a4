package acl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChangesAreMadeElsewhere makes changes by lines, and takes them over.
func TestChangesAreMadeElsewhere(t *testing.T) {
	there, _ := newUsers()
	here, _ := newUsers()
	fresh, _ := newUsers()
	lines := there.Describe()
	apply := func(c Change) (deleted int, err error) {
		c.HideSecrets()
		assert.NotContains(t, strings.Join(c.Rules, " "), "secret")
		after, deleted, err := there.Change(lines, c)
		if err == nil {
			lines = after
			_, err = here.Sync(lines)
			require.NoError(t, err)
			assert.Equal(t, lines, here.Describe())
		}
		return deleted, err
	}
	_, err := apply(Change{Set: "ann", Rules: []string{"on", ">secret", "~a*", "+@all"}})
	require.NoError(t, err)
	ann := here.Login("ann", []byte("secret"))
	require.NotNil(t, ann)

	_, err = apply(Change{Set: "bob", Rules: []string{"on", ">secret", ">secret2", "<secret", "(~b* +get)"}})
	require.NoError(t, err)
	assert.Nil(t, here.Login("bob", []byte("secret")))
	assert.NotNil(t, here.Login("bob", []byte("secret2")))
	assert.Same(t, ann, here.Find("ann"), "the account of a user that stays is kept")
	assert.False(t, ann.Deleted())

	_, err = apply(Change{Set: "bob", Rules: []string{"nonsense"}})
	assert.Error(t, err)
	_, err = apply(Change{Delete: []string{Default}})
	assert.ErrorIs(t, err, ErrDefaultStays)
	deleted, err := apply(Change{Delete: []string{"ann", "nobody"}})
	require.NoError(t, err)
	assert.Equal(t, 1, deleted)
	assert.True(t, ann.Deleted())

	changed, err := here.Sync(lines)
	assert.NoError(t, err)
	assert.False(t, changed)
	_, err = here.Sync([]string{"user x nonsense"})
	assert.Error(t, err)
	assert.Equal(t, lines, here.Describe())
	_, err = apply(Change{Replace: []string{"user eve on nopass ~* &* +@all"}})
	require.NoError(t, err)
	assert.NotNil(t, here.Login("eve", nil))
	assert.Nil(t, here.Find("bob"))
	assert.Equal(t, []string{Default, "eve"}, []string{here.All()[0].Name(), here.All()[1].Name()})
	assert.Equal(t, fresh.Describe(), there.Describe(), "only the lines are changed")
}
