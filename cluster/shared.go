package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rlserver/engine/policy"
	"rlserver/engine/rule"
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
	// TakeUsers makes the users of this node those of the cluster. If they are not confirmed, they
	// may be older than the cluster's: they log in, but nothing of the cluster is theirs yet.
	TakeUsers(lines []string, confirmed bool)
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

// confirmUsers notes that this node has the map that the leader of group 0 has: from now on the
// users of its map are those of the cluster.
func (n *Node) confirmUsers() {
	if n.options.Users != nil && !n.confirmed.Load() && n.Map().Users != nil {
		n.confirmed.Store(true)
		n.takeUsers()
	}
}

// takeUsers takes over the users of the map.
func (n *Node) takeUsers() {
	if n.options.Users == nil {
		return
	}
	n.taking.Lock() // so that the latest map is the last
	defer n.taking.Unlock()
	if m := n.known(); m.Users != nil {
		n.options.Users.TakeUsers(m.Users, n.confirmed.Load())
	}
}

// serves reports whether clients are served here: this node knows the users.
func (n *Node) serves() bool { return n.options.Users == nil || n.confirmed.Load() }

// The map also has the policies of the cluster. All engines of a node use those of the latest map
// that it knows. The leaders of all groups are told of a change, and the log of each group says
// which version it has used: a later leader uses no older one, see group.PolicyNotes. So a call
// that begins after a change is complete uses it.

// ChangePolicies has change change the definitions of the policies, by name, if this node leads
// group 0. It returns when the leaders of all groups use them, unless change returns false, or when
// the context ends: then with the groups whose leaders may not yet, as they are not known or cannot
// be reached. refused reports that nothing was changed and the error is a reply.
func (n *Node) ChangePolicies(
	ctx context.Context, change func(definitions map[string]string) bool,
) (missing []int, refused bool, err error) {
	share := false
	err = n.changeMap(func(m *Map) (bool, error) {
		before, size := m.Policies, 0
		m.Policies = make(map[string]string) // an empty one comes as nil from other nodes
		maps.Copy(m.Policies, before)
		share = change(m.Policies)
		for name, definition := range m.Policies {
			size += len(name) + len(definition)
		}
		if size > policy.MaxBytes {
			refused = true
			return false, fmt.Errorf("ERR the policies of a cluster may take %d bytes together, and would take %d",
				policy.MaxBytes, size)
		}
		if maps.Equal(before, m.Policies) {
			return false, nil
		}
		m.PoliciesVersion = m.Version
		m.PoliciesSince = since(m, before)
		return true, nil
	})
	if err == nil && share {
		missing = n.sharePolicies(ctx)
	}
	return missing, refused, err
}

// since returns since when each policy of a map exists with its algorithm, after a change.
func since(m *Map, before map[string]string) map[string]uint64 {
	all := make(map[string]uint64, len(m.Policies))
	for name, definition := range m.Policies {
		now, _, _ := strings.Cut(definition, " ")
		former, _, _ := strings.Cut(before[name], " ")
		if all[name] = m.PoliciesSince[name]; now != former {
			all[name] = m.Version
		}
	}
	return all
}

// takePolicies has the engines of this node use the policies of a map.
func (n *Node) takePolicies(m *Map) {
	if m.PoliciesVersion <= n.options.Engine.Policies.Version() {
		return
	}
	list := make([]*policy.Policy, 0, len(m.Policies))
	for name, definition := range m.Policies {
		parsed, err := rule.ParseStored([]byte(name), bytes.Fields([]byte(definition)))
		if err != nil {
			n.warnOften("a policy of the cluster is not known here: this node has to be upgraded", "policy", name,
				"definition", definition, "error", err)
			continue
		}
		list = append(list, policy.NewSince(parsed, m.PoliciesSince[name]))
	}
	n.options.Engine.Policies.Set(m.PoliciesVersion, list, len(list) < len(m.Policies))
	if n.options.PoliciesChanged != nil {
		go n.options.PoliciesChanged()
	}
}

// policiesVersion names the policies: nodes with the same have the same. "0": there are none.
func (m *Map) policiesVersion() string {
	if len(m.Policies) == 0 {
		return "0"
	}
	h := fnv.New32a()
	for _, name := range slices.Sorted(maps.Keys(m.Policies)) {
		fmt.Fprintf(h, "%q %q\n", name, m.Policies[name])
	}
	return fmt.Sprintf("%08x", h.Sum32())
}

// sharePolicies has the leaders of all groups use the policies of the present map, see
// ChangePolicies.
func (n *Node) sharePolicies(ctx context.Context) (missing []int) {
	m := n.Map()
	for number := 1; number < m.Groups(); number++ {
		missing = append(missing, number)
	}
	s := sharing{
		leader: func(number int) string {
			if l := n.Leader(number); l != nil {
				return l.Name
			}
			return ""
		},
		set: func(node string, groups []int) []int {
			if node == n.self.Name {
				return n.followFor(m, groups)
			}
			led := new([]int) // an answer that comes late may be written to it
			if n.callNode(node, "Follow", MapFor{*m, groups}, led, n.options.Timeout) != nil {
				return nil
			}
			return *led
		},
	}
	return s.run(ctx, missing)
}

// followFor takes over a map, and returns those of the groups that this node has led since.
func (n *Node) followFor(m *Map, groups []int) (led []int) {
	n.follow(m)
	if n.Map().Version < m.Version {
		return nil
	}
	waits := make(map[int]func() error)
	for _, number := range groups {
		if p := n.Partition(number); p != nil {
			waits[number] = p.Ask()
		}
	}
	for number, wait := range waits {
		if wait() == nil {
			led = append(led, number)
		}
	}
	return led
}

// policyNotes has the notes of a group name a version of the policies: that of the map in the note
// of group 0, and one that is noted alone in others.
type policyNotes struct {
	n      *Node
	number int
}

// policiesUsed are the fields of a Map that a note has without the others.
type policiesUsed struct {
	ID              string // of the cluster
	PoliciesVersion uint64
}

func (p policyNotes) PolicyNote(version uint64) []byte {
	if p.number == 0 {
		return nil
	}
	b, err := json.Marshal(policiesUsed{p.n.known().ID, version})
	if err != nil {
		panic(err) // it has nothing that cannot be encoded
	}
	return b
}

// PoliciesIn implements group.PolicyNotes. Versions of before a forced recovery do not count.
func (p policyNotes) PoliciesIn(note []byte) uint64 {
	var used policiesUsed
	if json.Unmarshal(note, &used) != nil || used.ID != p.n.known().ID {
		return 0
	}
	return used.PoliciesVersion
}

// sharing has the leaders of groups do something, by one call to each node with all groups that it
// leads.
type sharing struct {
	leader func(number int) (node string)               // "": none is known
	set    func(node string, groups []int) (done []int) // one call to a node
}

// shareInterval is the time between attempts to reach the groups that are not done.
const shareInterval = 50 * time.Millisecond

// run returns when all groups are done, or when the context ends. It returns those that are not.
func (s *sharing) run(ctx context.Context, missing []int) []int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type answer struct {
		node string
		done []int
	}
	answers, called := make(chan answer), make(map[string]bool)
	tries := time.NewTicker(shareInterval)
	defer tries.Stop()
	call := func() {
		led := make(map[string][]int)
		for _, number := range missing {
			if node := s.leader(number); node != "" {
				led[node] = append(led[node], number)
			}
		}
		for node, groups := range led {
			if called[node] {
				continue // it has not answered yet
			}
			called[node] = true
			go func() {
				select {
				case answers <- answer{node, s.set(node, groups)}:
				case <-ctx.Done():
				}
			}()
		}
	}
	for call(); len(missing) > 0 && ctx.Err() == nil; {
		select {
		case a := <-answers:
			called[a.node] = false
			missing = slices.DeleteFunc(missing, func(number int) bool { return slices.Contains(a.done, number) })
		case <-tries.C:
			call()
		case <-ctx.Done():
		}
	}
	return missing
}
