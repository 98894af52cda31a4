package resp

import (
	"slices"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/commands/clustering"
	"rlserver/resp/config"
)

// changeSettings changes and applies settings, all or none. The call is CONFIG SET.
func (s *Server) changeSettings(c *command.Call, changes []config.Change) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	if s.cluster != nil {
		if err := clustering.RefusedSetting(changes); err != nil {
			return err
		}
	}
	var apply []func()
	for _, change := range changes {
		put, err := change.Set(s.Settings, change.Value)
		if err != nil {
			return change.Refuse(err)
		}
		apply = append(apply, put)
	}
	if err := s.useCertificates(changes); err != nil {
		return err
	}
	timeout, preauth := s.Settings.Timeout(), s.Settings.PreauthTimeout()
	for _, put := range apply {
		put()
	}
	if s.Settings.Timeout() != timeout || s.Settings.PreauthTimeout() != preauth {
		s.applyTimeouts()
	}
	changed := func(name string) bool {
		return slices.ContainsFunc(changes, func(change config.Change) bool { return change.Name == name })
	}
	if changed("requirepass") {
		s.UsersChanged(c)
	}
	s.applyMemoryLimits()
	s.applyDiagnostics()
	if changed("maxmemory") {
		s.warnAboutMaxMemory()
	}
	c.Conn.DeferUntilUnlocked(s.configure)
	c.Conn.DeferUntilUnlocked(s.evictClientsOfAllPools)
	return nil
}

// useCertificates applies the changes of TLS files, all or none. The settings do not have them yet.
func (s *Server) useCertificates(changes []config.Change) error {
	files, first := s.Settings.TLS(), -1
	for i, change := range changes {
		if change.TLS != nil {
			*change.TLS(&files) = change.Value
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 || s.certificates == nil {
		return nil
	}
	if err := s.certificates.Use(files.Files()); err != nil {
		return changes[first].Refuse(engine.Error("Unable to update TLS configuration: " + err.Error()))
	}
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
