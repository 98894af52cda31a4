package cluster

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeUsers are users of which a change adds one.
type fakeUsers struct {
	mu    sync.Mutex
	lines []string
}

func (u *fakeUsers) DescribeUsers() []string { return []string{"default"} }

func (u *fakeUsers) ApplyUsers(lines []string, change []byte) ([]string, int, error) {
	if slices.Contains(lines, string(change)) {
		return lines, 0, nil
	}
	return append(slices.Clone(lines), string(change)), 0, nil
}

func (u *fakeUsers) TakeUsers(lines []string, _ bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lines = lines
}

func (u *fakeUsers) have(want ...string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.Equal(u.lines, want) {
		return fmt.Errorf("the users are %q, want %q", u.lines, want)
	}
	return nil
}

// A node that has reported a short time ago and does not answer may serve with the former users.
func TestTheLogNamesANodeWithoutTheChangedUsers(t *testing.T) {
	t.Parallel()
	users := make([]fakeUsers, 3)
	f := newFleet(t, 3, func(i int, o *Options) {
		o.Users = &users[i]
	})
	f.startAll()
	f.stable()
	all := func(want ...string) error {
		return errors.Join(users[0].have(want...), users[1].have(want...), users[2].have(want...))
	}
	f.eventually("the cluster has users", func() error { return all("default") })
	change := func(user string) {
		t.Helper()
		_, refused, err := f.nodes[1].ChangeUsers([]byte(user), patience)
		require.NoError(t, err)
		assert.False(t, refused)
	}
	change("ann")
	f.eventually("all have it", func() error { return all("default", "ann") })
	f.stop(2)
	for _, n := range f.nodes[:2] { // they have heard it a moment ago, and go on to think so
		n.mu.Lock()
		c := n.others["c"]
		c.at = time.Now().Add(time.Hour)
		n.others["c"] = c
		n.mu.Unlock()
	}
	change("ben")
	assert.Contains(t, f.log.get(), "level=WARN msg=\"node c does not have the changed users yet")
	require.NoError(t, f.start(2))
	f.eventually("it has them when it is back", func() error { return all("default", "ann", "ben") })
}

// A node that has started while group 0 has no leader does not know the users: it leads no group
// that another one can lead.
func TestANodeWithoutUsersDeclinesAllGroups(t *testing.T) {
	t.Parallel()
	users := make([]fakeUsers, 3)
	f := newFleet(t, 3, func(i int, o *Options) { o.Users = &users[i] })
	f.startAll()
	f.stable()
	f.eventually("it has the users", func() error { return users[0].have("default") })
	f.stop(1)
	f.stop(2)
	n := f.nodes[0]
	f.eventually("it leads no group, and confirms nothing by itself", func() error {
		if led := n.led(); len(led) > 0 {
			return fmt.Errorf("it leads %v", led)
		}
		return nil
	})
	n.confirmed.Store(false) // as after a restart: nobody is there who could tell
	assert.True(t, n.report("b").Unserving)
	f.eventually("it hands over what it leads", func() error {
		if !n.declines(0) {
			return errors.New("it does not yet")
		}
		return nil
	})
	n.confirmed.Store(true)
	assert.False(t, n.report("b").Unserving)
	assert.False(t, n.declines(0))

	for _, unserving := range []bool{true, false} {
		n.mu.Lock()
		n.others["b"] = other{report: Report{Node: "b", Unserving: unserving}, at: time.Now().Add(time.Hour)}
		n.mu.Unlock()
		assert.Equal(t, !unserving, slices.Contains(n.takers(0), "b"))
	}
}
