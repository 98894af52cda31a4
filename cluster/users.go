package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The map also has the users of the cluster: a change of them is committed by group 0 and reaches
// all nodes as a change of the members does.

// Users is what a node asks of the users, as lines of text that only it understands.
type Users interface {
	// DescribeUsers returns those of a new cluster.
	DescribeUsers() []string
	// ApplyUsers returns the users after a change, and how many were deleted. The text of an error
	// is for the client that has asked for the change.
	ApplyUsers(lines []string, change []byte) (after []string, deleted int, err error)
	// TakeUsers makes the users of this node those of the cluster.
	TakeUsers(lines []string)
}

// maxUsers is the size of all users together, in bytes: the map is one entry of the log.
const maxUsers = 8 << 20

// changeUsers changes the users, if this node leads group 0.
func (n *Node) changeUsers(change []byte) (deleted int, err error) {
	err = n.changeMap(func(m *Map) (bool, error) {
		if n.options.Users == nil {
			return false, errors.New("this node has no users")
		}
		n.giveUsers(m)
		after, gone, err := n.options.Users.ApplyUsers(m.Users, change)
		if err != nil {
			return false, err // its text is a reply
		}
		size := 0
		for _, line := range after {
			size += len(line)
		}
		if size > maxUsers {
			return false, fmt.Errorf("ERR the users of a cluster may take %d bytes together, and would take %d",
				maxUsers, size)
		}
		changed := !slices.Equal(after, m.Users)
		m.Users, deleted = after, gone
		return changed, nil
	})
	return deleted, err
}

// shareMap sends the map to all nodes that have reported a short time ago, without waiting for the
// next report, and returns when they have it or have not answered in time. The log names those: a
// node that was stopped or cut off just now gets the map when it is back.
func (n *Node) shareMap() {
	r := n.report(n.self.Name)
	r.Map = n.Map()
	var work sync.WaitGroup
	for i := range r.Map.Members {
		name := r.Map.Members[i].Name
		if name == n.self.Name || !n.up(name) {
			continue
		}
		work.Go(func() {
			var theirs Report
			own := r
			own.Wanted = n.wanted.Send(name, time.Now())
			err := n.callNode(name, "Exchange", own, &theirs, n.options.Timeout)
			if err == nil && theirs.MapVersion < r.Map.Version {
				err = fmt.Errorf("it has version %d of the map, and this is %d", theirs.MapVersion, r.Map.Version)
			}
			if err != nil {
				n.warnOften("node "+name+" does not have the changed users yet: it gets them when it is heard again",
					"error", err)
			}
		})
	}
	work.Wait()
}

// giveUsers gives the users of this node to a cluster that has none yet.
func (n *Node) giveUsers(m *Map) (changed bool) {
	if m.Users != nil || n.options.Users == nil {
		return false
	}
	m.Users = n.options.Users.DescribeUsers()
	return true
}

// usersRetry is how long a change of the users waits before it is tried again.
const usersRetry = 20 * time.Millisecond

// ChangeUsers changes the users of the cluster, and returns how many were deleted. Users.ApplyUsers
// understands the change. Nodes that cannot be reached now have it later. Without a leader of group
// 0 it tries again for some time. refused reports that the error is that of ApplyUsers.
func (n *Node) ChangeUsers(change []byte, within time.Duration) (deleted int, refused bool, err error) {
	for end := time.Now().Add(within); ; time.Sleep(usersRetry) {
		answer, err := n.ask(Request{Users: change})
		if err == nil {
			return answer.Deleted, false, nil
		}
		if refused := strings.HasPrefix(err.Error(), "ERR "); refused || !time.Now().Before(end) {
			return 0, refused, err
		}
	}
}

// confirmUsers notes that this node has the map that the leader of group 0 has: from now on it
// takes over the users of its map.
func (n *Node) confirmUsers() {
	if n.options.Users != nil && !n.confirmed.Load() && n.Map().Users != nil {
		n.confirmed.Store(true)
		n.takeUsers()
	}
}

// takeUsers takes over the users of the map.
func (n *Node) takeUsers() {
	if n.options.Users == nil || !n.confirmed.Load() {
		return
	}
	n.taking.Lock() // so that the latest map is the last
	defer n.taking.Unlock()
	if m := n.Map(); m.Users != nil {
		n.options.Users.TakeUsers(m.Users)
	}
}
