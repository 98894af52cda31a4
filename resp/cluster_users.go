package resp

import (
	"encoding/json"
	"fmt"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/resp/command"
)

// The users of a cluster are part of the state that its first group replicates. The node that leads
// this group makes each change, and all nodes copy the result.

// changeOwnUsers implements command.Env.ChangeUsers for a server alone.
func (s *Server) changeOwnUsers(c *command.Call, change acl.Change) (deleted int, err error) {
	switch {
	case change.Load != "":
		err = s.Users.Load(change.Load)
	case change.Set != "":
		err = s.Users.Set(change.Set, change.Rules)
	default:
		deleted, err = s.Users.Delete(change.Delete)
	}
	if err != nil {
		return 0, engine.Error("ERR " + err.Error())
	}
	s.usersChanged(c)
	return deleted, nil
}

// changeUsers implements command.Env.ChangeUsers for a node of a cluster.
func (s *Server) changeUsers(c *command.Call, change acl.Change) (deleted int, err error) {
	ss := sessionOf(c)
	if change.Load != "" {
		if change.Replace, err = s.Users.Read(change.Load); err != nil {
			return 0, engine.Error("ERR " + err.Error())
		}
	}
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

// ApplyUsers returns the users of some lines after a change that another node has requested, and
// how many were deleted. It does not change the users of this server.
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

// TakeUsers replaces the users by those of the cluster. After its first call clients are served.
func (s *Server) TakeUsers(lines []string) {
	changed, err := s.Users.Sync(lines)
	if err != nil {
		s.Log.Error("the users of the cluster are invalid: this node keeps its present users",
			"error", err)
		return
	}
	if changed {
		s.usersChanged(nil)
	}
	if s.executor.LoadingSince() != 0 {
		s.SetLoading(false)
	}
}
