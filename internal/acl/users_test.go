package acl

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newUsers returns Users with only the default user, and a catalog of two commands.
func newUsers() (*Users, *Settings) {
	s := new(Settings)
	s.Init()
	c := NewCatalog([]Command{{Name: "get", Categories: []string{"read"}}, {Name: "set"}}, matchGlob)
	return NewUsers(c, s), s
}

func TestLogin(t *testing.T) {
	u, _ := newUsers()
	require.NoError(t, u.Set("ann", []string{"on", ">one", ">two"}))
	require.NoError(t, u.Set("off", []string{">one"}))
	require.NoError(t, u.Set("any", []string{"on", "nopass"}))
	for _, step := range []struct {
		name, password string
		accepted       bool
	}{
		{"ann", "one", true}, {"ann", "two", true}, {"ann", "three", false}, {"ann", "", false},
		{"off", "one", false}, {"any", "whatever", true}, {"nobody", "one", false}, {"default", "", true},
	} {
		a := u.Login(step.name, []byte(step.password))
		assert.Equal(t, step.accepted, a != nil, "%s %s", step.name, step.password)
	}
	u.SetDefaultPassword("sesame")
	assert.Nil(t, u.Login("default", []byte("")))
	assert.NotNil(t, u.Login("default", []byte("sesame")))
	assert.True(t, u.Default().User().NeedsLogin())
	assert.True(t, u.Default().User().Unrestricted())

	path := filepath.Join(t.TempDir(), "users.acl")
	require.NoError(t, os.WriteFile(path, []byte("user ann on\n"), 0o600))
	require.NoError(t, u.Load(path))
	assert.True(t, u.Default().User().NeedsLogin(), "the file does not define the default user")
	require.NoError(t, os.WriteFile(path, []byte("user default on nopass\n"), 0o600))
	require.NoError(t, u.Load(path))
	assert.False(t, u.Default().User().NeedsLogin())
	assert.False(t, u.Default().User().Unrestricted())
	u.SetDefaultPassword("")
	assert.False(t, u.Default().User().NeedsLogin())
}

func TestDeletedUserHasNoPermissions(t *testing.T) {
	u, _ := newUsers()
	require.NoError(t, u.Set("ann", []string{"on", "nopass", "+@all", "~*", "&*"}))
	former := u.Find("ann")
	_, err := u.Delete([]string{"ann", "default"})
	require.ErrorIs(t, err, ErrDefaultStays)
	require.False(t, former.Deleted())
	n, err := u.Delete([]string{"ann", "bob"})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.True(t, former.Deleted())
	v, _ := former.User().Check(&Call{})
	assert.Equal(t, DeniedCommand, v)
	require.NoError(t, u.Set("ann", []string{"+@all"}))
	assert.NotSame(t, former, u.Find("ann"))
	assert.True(t, former.Deleted())
}

func TestUserLimits(t *testing.T) {
	u, s := newUsers()
	s.MaxUsers.Store(3)
	s.MaxUserSize.Store(1000)
	require.NoError(t, u.Set("a", nil))
	require.NoError(t, u.Set("b", nil))
	require.ErrorContains(t, u.Set("c", nil), "acl-max-users is 3")
	require.NoError(t, u.Set("b", []string{"on"}))
	require.ErrorContains(t, u.Set("b", []string{"~" + strings.Repeat("x", 1000)}), "acl-max-user-size is 1000")
	var rules []string
	for i := range 20 {
		rules = append(rules, fmt.Sprint("+get|", i))
	}
	require.ErrorContains(t, u.Set("b", rules), "acl-max-user-size")
	require.ErrorContains(t, u.Set("b", slices.Repeat([]string{"+get"}, 300)), "too many rules: they have 1500 bytes")
	require.ErrorContains(t, u.Set(strings.Repeat("n", 1000), nil), "acl-max-user-size")
	users, bytes := u.Size()
	assert.Equal(t, 3, users)
	assert.InDelta(t, 3*selectorSize, bytes, 100)

	path := filepath.Join(t.TempDir(), "acl")
	require.NoError(t, os.WriteFile(path, []byte("user x on\nuser y on\nuser z on\n"), 0o600))
	require.ErrorContains(t, u.Load(path), "acl-max-users is 3")
	require.NoError(t, os.WriteFile(path, []byte("user x ~"+strings.Repeat("x", 950)), 0o600))
	require.ErrorContains(t, u.Load(path), path+":1: The user is too large")
	require.NoError(t, os.WriteFile(path, []byte("user x ~"+strings.Repeat("x", 1000)), 0o600))
	require.ErrorContains(t, u.Load(path), path+":1: There are too many rules")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("nonsense\n", 1000)), 0o600))
	require.ErrorContains(t, u.Load(path), "And 950 more errors.")
}

// Whatever is done at the same time, the file has the users of the last save.
func TestFilesAndChangesTakeTurns(t *testing.T) {
	u, _ := newUsers()
	path := filepath.Join(t.TempDir(), "users.acl")
	for i := range 100 { // so that a file takes long
		require.NoError(t, u.Set(fmt.Sprint("user", i), []string{"on", "~a*", "+get"}))
	}
	require.NoError(t, u.Save(path))
	for _, other := range []func(string) error{u.Save, u.Load} {
		for range 30 {
			require.NoError(t, u.Set("bob", []string{"on"}))
			require.NoError(t, u.Save(path))
			var others sync.WaitGroup
			for range 3 {
				others.Go(func() { assert.NoError(t, other(path)) })
			}
			_, err := u.Delete([]string{"bob"})
			require.NoError(t, err)
			require.NoError(t, u.Save(path))
			others.Wait()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, strings.Join(u.Describe(), "\n")+"\n", string(text))
		}
	}
}

func TestSaveAndLoad(t *testing.T) {
	u, _ := newUsers()
	path := filepath.Join(t.TempDir(), "users.acl")
	require.NoError(t, u.Set("ann", []string{"on", ">secret", "%R~a*", "~b", "&news", "+get", "(~c +@read)"}))
	require.NoError(t, u.Set("default", []string{"-set"}))
	require.NoError(t, u.Save(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "secret")

	before, ann, def := u.Describe(), u.Find("ann"), u.Default()
	other, _ := newUsers()
	require.NoError(t, other.Load(path))
	assert.Equal(t, before, other.Describe())

	require.NoError(t, u.Set("eve", nil))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, u.Load(path))
	assert.Equal(t, before, u.Describe())
	assert.True(t, ann.Deleted(), "as in Redis, all connections but those of the default user are closed")
	assert.False(t, def.Deleted())
	assert.Same(t, def, u.Find(Default))
	require.NoError(t, u.Save(path))
	info, err = os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode(), "an existing file keeps its permissions")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestLoadReportsWrongLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "users.acl")
	for _, step := range []struct{ text, want string }{
		{"user a on\n\nusr b\n", path + ":3 should start with user keyword followed by the username."},
		{"user\n", path + ":1 should start with user"},
		{"user a\nuser b\nuser a\n", "Duplicate user 'a' found on line 3."},
		{"user a +nosuch", path + ":1: Error in applying operation '+nosuch': Unknown command or category name in " +
			"ACL."},
		{"user a #secret", path + ":1: The password hash must be exactly 64 characters"},
		{"user a <secret", path + ":1: The password you are trying to remove"},
		{"user a (~x", path + ":1: Unmatched parenthesis in selector definition."},
		{"user a\x00b on", "contains invalid characters"},
		{"user a ~* ~b", path + ":1: Adding a pattern after the * pattern"},
		{"user default off\nuser a +nosuch\nuser b nosuch", path + ":3: Syntax error."},
	} {
		u, _ := newUsers()
		require.NoError(t, u.Set("kept", []string{"on"}))
		before := u.Describe()
		require.NoError(t, os.WriteFile(path, []byte(step.text), 0o600))
		err := u.Load(path)
		require.ErrorContains(t, err, step.want)
		assert.NotContains(t, err.Error(), "secret")
		assert.Equal(t, before, u.Describe())
	}
}

func TestLoadAndSaveRequireRegularFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	u, _ := newUsers()
	require.ErrorContains(t, u.Load(fifo), "a named pipe")
	require.ErrorContains(t, u.Load(dir), "a directory")
	require.ErrorContains(t, u.Load(filepath.Join(dir, "none")), "no such file")
	require.ErrorContains(t, u.Save(fifo), "not a regular file")
	require.ErrorContains(t, u.Save(dir), "not a regular file")
	require.Error(t, u.Save(filepath.Join(dir, "none", "users.acl")))
}

func TestLogMergesTruncatesAndCounts(t *testing.T) {
	var l Log
	denied := func(object string, at int64) Entry {
		return Entry{Reason: DeniedKey, Context: "toplevel", Object: object, User: "ann", At: at}
	}
	l.Add(denied("a", 1000), 3)
	l.Add(denied("b", 1001), 3)
	l.Add(denied("a", 61000), 3)
	l.Add(denied("b", 62000), 3)
	got := l.Latest(10)
	require.Len(t, got, 3)
	assert.Equal(t, "b", got[0].Object)
	assert.EqualValues(t, 1, got[0].Count, "entries more than a minute apart are not merged")
	assert.EqualValues(t, 2, got[1].Count)
	l.Add(denied(strings.Repeat("x", 1000), 62000), 3)
	require.Len(t, l.Latest(10), 3)
	assert.Len(t, l.Latest(1)[0].Object, maxName)
	assert.EqualValues(t, 5, l.Count(DeniedKey))
	assert.Zero(t, l.Count(DeniedAuth))
	l.Add(denied("c", 62000), 0)
	assert.Empty(t, l.Latest(10))
	l.Reset()
	assert.EqualValues(t, 6, l.Count(DeniedKey))
	l.ResetCounts()
	assert.Zero(t, l.Count(DeniedKey))
}

func TestChecksDoNotAllocate(t *testing.T) {
	u, _ := newUsers()
	require.NoError(t, u.Set("ann", []string{"+get", "~login:*", "%R~x", "(+set ~b)"}))
	user := u.Find("ann").User()
	call := Call{Command: 0, Keys: []Key{{Name: []byte("login:{ann}"), Access: Read | Write}}}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if v, _ := user.Check(&call); v != Allowed {
			t.Error(v)
		}
	}))
}

func TestAllowsAnyKeyRequiresAPatternForAllKeys(t *testing.T) {
	u, _ := newUsers()
	for rules, allowed := range map[string]bool{
		"+get ~a":       false,
		"+get ~a ~b*":   false,
		"+get ~a %W~*":  false,
		"+get %R~*":     true,
		"+get ~*":       true,
		"(+get ~a) ~*":  false,
		"(+get %R~*)":   true,
		"-get allkeys":  false,
		"+@read %RW~*":  true,
		"+@read %R~a**": false,
	} {
		made, err := NewUser(u.Catalog(), false).Apply(strings.Fields(rules), false)
		require.NoError(t, err)
		call := Call{Keys: []Key{{Name: []byte("a"), Access: Read}}}
		assert.Equal(t, allowed, made.AllowsAnyKey(&call, Read), rules)
	}
}

func BenchmarkCheck(b *testing.B) {
	u, _ := newUsers()
	require.NoError(b, u.Set("ann", []string{"+get", "~other:*", "~login:*"}))
	user := u.Find("ann").User()
	call := Call{Command: 0, Keys: []Key{{Name: []byte("login:{ann}"), Access: Read | Write}}}
	for b.Loop() {
		user.Check(&call)
	}
}
