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

	"rlserver/cluster/clustertest"
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
func TestANodeWithoutUsersIsHandedNoGroup(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	users := make([]fakeUsers, 5)
	f := newFleet(t, 5, func(i int, o *Options) { o.Users = &users[i] })
	f.startAll()
	f.stable()
	f.matches("a", "b", "c", "d", "e")
	index := func(name string) int { return int(name[0] - 'a') }
	replicas := f.nodes[0].Map().Replicas
	down := replicas[0][:2]
	number := slices.IndexFunc(replicas, func(names []string) bool {
		return !slices.ContainsFunc(down, func(name string) bool { return names[0] == name || names[1] == name })
	})
	require.Positive(t, number, "%v", replicas)
	first, second := index(replicas[number][0]), index(replicas[number][1])
	f.stop(index(down[0]))
	f.stop(index(down[1]))
	f.stop(first)
	leads := func() error {
		if led := f.nodes[second].led(); !slices.Contains(led, number) {
			return fmt.Errorf("it leads %v", led)
		}
		return nil
	}
	f.eventually("the second node leads the group", leads)
	require.NoError(t, f.start(first))
	id, _ := f.nodes[first].replicaOn(number, f.nodes[first].Name())
	f.eventually("the first one has kept up for longer than it takes to be handed the group", func() error {
		if kept := f.nodes[second].Group(number).KeptUp(id); kept < 10*balanceAfter*100*time.Millisecond {
			return fmt.Errorf("for %v", kept)
		}
		return nil
	})
	require.NoError(t, leads())
	require.NoError(t, f.nodes[second].Group(number).HandOver(t.Context(), "a test"))
	f.eventually("it leads, and hands the group over", leads)
	require.NoError(t, f.start(index(down[0])))
	f.eventually("it knows the users, and is handed the group", func() error {
		if led := f.nodes[first].led(); !slices.Contains(led, number) {
			return fmt.Errorf("it leads %v", led)
		}
		return nil
	})
}
