package resp

import (
	"encoding/json"
	"fmt"

	"rlserver/acl"
	"rlserver/engine"
	"rlserver/resp/command"
)

// The users of a cluster are part of what its first group agrees on. A change is made by the node
// that leads that, and all nodes take over the result.

// changeUsers implements command.Env.ChangeUsers.
func (s *Server) changeUsers(c *command.Call, change acl.Change) (deleted int, err error) {
	ss := sessionOf(c)
	change.HideSecrets()
	b, err := json.Marshal(change)
	if err != nil {
		return 0, err
	}
	ss.profile.changesUsers.Store(true)
	defer ss.profile.changesUsers.Store(false)
	deleted, err = s.cluster.ChangeUsers(b)
	if ss.Account.Deleted() || ss.profile.monitors.Load() && !ss.mayMonitor() {
		ss.closing = true
	}
	return deleted, err
}

// DescribeUsers returns the users, as lines of an ACL file.
func (s *Server) DescribeUsers() []string { return s.Users.Describe() }

// ApplyUsers returns the users of some lines after a change that another node has asked for, and
// how many were deleted. Nothing changes here.
func (s *Server) ApplyUsers(lines []string, change []byte) (after []string, deleted int, err error) {
	var c acl.Change
	if err := json.Unmarshal(change, &c); err != nil {
		return nil, 0, fmt.Errorf("change of users: %w", err)
	}
	if after, deleted, err = s.Users.Change(lines, c); err != nil {
		return nil, 0, engine.Error("ERR " + err.Error())
	}
	return after, deleted, nil
}

// TakeUsers makes the users those of the cluster. Clients are served from the first time on.
func (s *Server) TakeUsers(lines []string) {
	changed, err := s.Users.Sync(lines)
	if err != nil {
		s.Log.Error("the users of the cluster cannot be taken over: this node goes on with those that it has",
			"error", err)
		return
	}
	if changed {
		s.usersChanged(nil)
	}
	if s.loading.Load() != 0 {
		s.SetLoading(false)
	}
}
