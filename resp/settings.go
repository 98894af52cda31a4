package resp

import (
	"errors"
	"slices"

	"rlserver/resp/command"
	"rlserver/resp/config"
)

// ChangeSettings implements command.Server. The call is CONFIG SET.
func (s *Server) ChangeSettings(c *command.Call, changes []config.Change) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	var apply []func()
	for _, change := range changes {
		if why := change.InCluster; why != "" && s.Settings.Start.Cluster.Enabled == "yes" {
			return change.Refuse(errors.New(why))
		}
		put, err := change.Set(s.Settings, change.Value)
		if err != nil {
			return change.Refuse(err)
		}
		apply = append(apply, put)
	}
	exchange, err := s.ports.Change(changes)
	if err != nil {
		return err
	}
	timeout, preauth := s.Settings.Timeout(), s.Settings.PreauthTimeout()
	for _, put := range apply {
		put()
	}
	if exchange != nil {
		exchange()
	}
	if s.Settings.Timeout() != timeout || s.Settings.PreauthTimeout() != preauth {
		s.applyTimeouts()
	}
	changed := func(name string) bool {
		return slices.ContainsFunc(changes, func(change config.Change) bool { return change.Name == name })
	}
	if changed("requirepass") {
		s.usersChanged(c)
	}
	s.applyMemoryLimits()
	s.applyDiagnostics()
	s.listener.Apply(s.Engine.Memory())
	s.Tracking.Trim(c.Conn.Messages())
	if changed("maxmemory") {
		s.warnAboutMaxMemory()
	}
	c.Conn.DeferUntilUnlocked(s.configure)
	c.Conn.DeferUntilUnlocked(s.evictClientsOfAllPools)
	return nil
}

// configure passes the current settings to the store.
func (s *Server) configure() {
	if s.Store == nil {
		return
	}
	s.configuring.Lock() // so that the newest settings are applied last
	defer s.configuring.Unlock()
	s.Store.Configure(s.Settings.Store())
}
