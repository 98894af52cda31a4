package resp

import (
	"encoding/json"
	"fmt"
	"time"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/logins"
	"rlserver/resp/clientfilter"
	"rlserver/resp/command"
	"rlserver/resp/executor"
)

// login logs the session in as a user, or returns why not. Any password is right for a user without
// one. It checks no password if too many logins have failed.
func (s *session) login(user, password []byte) error {
	var a *acl.Account
	wait := s.server.Logins.Try(s.Address(), func() logins.Result {
		proven := false
		a, proven = s.server.Users.Verify(string(user), password)
		return logins.ResultOf(a != nil, proven)
	})
	if wait > 0 {
		return engine.Error("ERR " + logins.Refusal(wait))
	}
	if a == nil || !s.setAccount(a) {
		s.loginFailed(user)
		return errWrongPass
	}
	s.setAuthenticated(true)
	return nil
}

// logout makes the session act as the default user, like a new connection.
func (s *session) logout() {
	a := s.server.Users.Default()
	s.setAccount(a)
	s.setAuthenticated(!a.User().NeedsLogin())
}

// setAccount makes the session act as a user, unless the user has been deleted: usersChanged may
// have run before it could find the session.
func (s *session) setAccount(a *acl.Account) bool {
	former := s.Account
	s.Account = a
	s.profile.account.Store(a)
	if !a.Deleted() {
		return true
	}
	s.Account = former
	s.profile.account.Store(former)
	return false
}

// loginIfNotNeeded authenticates a session that needed a password when the client connected, if the
// default user no longer needs one.
func (s *session) loginIfNotNeeded() {
	if !s.authenticated && !s.server.Users.Default().User().NeedsLogin() {
		s.setAuthenticated(true)
	}
}

// setAuthenticated changes the limits of the connection, and the pool that counts its memory.
func (s *session) setAuthenticated(yes bool) {
	if s.authenticated = yes; yes {
		s.refused = 0
	}
	s.guard.SetAuthenticated(yes)
	s.choosePool()
}

func (s *session) loginFailed(user []byte) {
	in := executor.Toplevel
	if s.Executing {
		in = executor.Multi
	}
	s.LogDenied(acl.DeniedAuth, string(s.Words[0]), string(user), in)
	if skipped, ok := s.server.allows(&s.server.loginLog, time.Second); ok {
		s.server.Log.Warn("a login failed", "client", s.Client, "address", s.Address(),
			"others_since_the_last_line", skipped)
	}
}

// LoginNeeded reports whether clients have to log in.
func (s *Server) LoginNeeded() bool { return s.Users.Default().User().NeedsLogin() }

// WithoutLogin returns the permission of clients that have not logged in: a function that reports
// whether they may make a call. It returns nil if a login is needed.
func (s *Server) WithoutLogin() func(words ...string) bool {
	if s.LoginNeeded() {
		return nil
	}
	return s.permission(s.Users.Default())
}

// Login checks a user and a password for another protocol than that of Redis, from a client at an
// address. It returns the permission of the user, or nil if the login is wrong, and whether the
// password proves anything: not if the user needs none. It counts and logs failures; Logins limits
// them.
func (s *Server) Login(user, password, address string) (may func(words ...string) bool, proven bool) {
	if a, proven := s.Users.Verify(user, []byte(password)); a != nil {
		return s.permission(a), proven
	}
	s.AccessLog.Add(acl.Entry{
		Reason: acl.DeniedAuth, Object: "HTTP", User: user, Context: "toplevel", At: s.Clock(),
		Client: "addr=" + address,
	}, int(s.Settings.Access.LogLength.Load()))
	if skipped, ok := s.allows(&s.loginLog, time.Second); ok {
		s.Log.Warn("a login by HTTP failed", "address", address, "others_since_the_last_line", skipped)
	}
	return nil, false
}

// permission returns a function that reports whether a user may make a call.
func (s *Server) permission(a *acl.Account) func(words ...string) bool {
	return func(words ...string) bool {
		call := make([][]byte, len(words))
		for i, word := range words {
			call[i] = []byte(word)
		}
		p := command.Prepare(call)
		return command.NewAccessCheck(s.Engine).Check(a.User(), &p) == nil
	}
}

// Protected reports whether protected mode currently refuses clients of other machines.
func (s *Server) Protected() bool {
	return s.Settings.ProtectedMode.Load() != 0 && !s.LoginNeeded()
}

// usersChanged applies a change of users to the connections. It closes those of deleted users,
// monitors whose users may no longer run MONITOR, and subscribers of channels that their users may
// no longer access. It refuses waiting calls that their users may no
// longer run. The connection of the call closes after its reply.
func (s *Server) usersChanged(c *command.Call) {
	by := (*session)(nil)
	if c != nil {
		by = sessionOf(c)
	}
	s.applyTimeouts() // a login may have become necessary or unnecessary
	for _, ss := range s.findClients(clientfilter.Filter{}) {
		switch {
		case ss.profile.changesUsers.Load(): // it closes after its reply
		case ss.profile.account.Load().Deleted() || ss.profile.monitors.Load() && !ss.mayMonitor() ||
			!ss.messages.Allowed(ss.profile.account.Load().User().AllowsChannel):
			ss.close(by)
		default:
			ss.refuseWaitingIfDenied()
		}
	}
	for _, ss := range s.nodeSessions() {
		ss.refuseWaitingIfDenied()
	}
}

// initUsers sets the users of the server. If the settings have none, there is only the default
// user, with the password of the settings.
func (s *Server) initUsers() {
	if s.Settings.Users == nil {
		s.Settings.Users = acl.NewUsers(command.AccessCatalog(), &s.Settings.Access)
		s.Settings.Users.SetDefaultPassword(s.Settings.Password())
	}
	s.Users, s.AccessLog = s.Settings.Users, new(acl.Log)
}

// refuseWaitingIfDenied ends a waiting call that the user may no longer run. Any goroutine may call
// it.
func (s *session) refuseWaitingIfDenied() {
	w := s.waiter.Load()
	if w == nil {
		return
	}
	account := s.profile.account.Load()
	denial := command.NewAccessCheck(s.Env.Engine).Check(account.User(), w.Prepared())
	if denial != nil && w.Refuse(denial.Error()) {
		s.LogDenied(denial.Verdict, denial.Object, account.Name(), executor.Toplevel)
	}
}

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
	if s.executor.LoadingSince() != 0 { // who has logged in may not be a user any more
		return 0, command.ErrLoading
	}
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
	if ss.Account.Deleted() || ss.profile.monitors.Load() && !ss.mayMonitor() ||
		!ss.messages.Allowed(ss.Account.User().AllowsChannel) {
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

// TakeUsers replaces the users by those of the cluster. After its first call with confirmed ones
// clients are served. Whoever has logged in before has to do so again if the users were others.
func (s *Server) TakeUsers(lines []string, confirmed bool) {
	changed, err := s.Users.Sync(lines)
	if err != nil {
		s.Log.Error("the users of the cluster are invalid: this node keeps its present users",
			"error", err)
		return
	}
	loading := s.executor.LoadingSince() != 0
	if changed && loading {
		for _, ss := range s.findClients(clientfilter.Filter{}) {
			ss.close(nil)
		}
	}
	if changed {
		s.usersChanged(nil)
	}
	if confirmed && loading {
		s.SetLoading(false)
	}
}
