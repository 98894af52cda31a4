package resp

import (
	"context"
	"errors"
	"slices"
	"time"

	"rlserver/engine"
	"rlserver/internal/listen"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

// changeSettings changes and applies settings, all or none. The call is CONFIG SET.
func (s *Server) changeSettings(c *command.Call, changes []config.Change) error {
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
	sockets, err := s.openSockets(changes)
	if err == nil {
		err = s.useCertificates(changes)
	}
	if err != nil {
		s.keepSockets(sockets)
		return err
	}
	timeout, preauth := s.Settings.Timeout(), s.Settings.PreauthTimeout()
	for _, put := range apply {
		put()
	}
	if sockets != nil {
		s.exchange(sockets.Commit())
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
	if changed("maxmemory") {
		s.warnAboutMaxMemory()
	}
	c.Conn.DeferUntilUnlocked(s.configure)
	c.Conn.DeferUntilUnlocked(s.evictClientsOfAllPools)
	return nil
}

// lookupTime limits how long the lookups of host names of bind may take.
const lookupTime = 2 * time.Second

// portsAfter returns the ports after changes. The settings do not have them yet.
func (s *Server) portsAfter(changes []config.Change) (ports listen.Ports, changed bool) {
	ports = s.Settings.Ports()
	for _, change := range changes {
		if change.Ports != nil {
			change.Ports(&ports, change.Value)
			changed = true
		}
	}
	return ports, changed
}

// openSockets opens the new sockets of changes of bind, port and tls-port. It returns nil if there
// are no such changes.
func (s *Server) openSockets(changes []config.Change) (*listen.Change, error) {
	ports, changed := s.portsAfter(changes)
	if !changed {
		return nil, nil
	}
	if err := s.Settings.CheckPorts(ports); err != nil {
		s.Log.Warn("CONFIG SET cannot change the ports", "error", err)
		return nil, config.RefusePorts(changes)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	sockets := s.sockets.Change(ctx, ports)
	if sockets.Err != nil {
		s.Log.Warn("CONFIG SET cannot change the ports", "error", sockets.Err)
		return sockets, config.RefusePorts(changes)
	}
	return sockets, nil
}

// keepSockets ends a change of sockets that has failed. It may be nil.
func (s *Server) keepSockets(sockets *listen.Change) {
	if sockets == nil {
		return
	}
	opened, closed, err := sockets.Undo()
	if err != nil {
		s.Log.Error("a port that was closed to change the ports cannot be opened again", "error", err)
	}
	s.exchange(opened, closed)
}

// useCertificates applies the changes of TLS files, all or none. The settings do not have them yet.
// As at the start, files are read if there is a certificate or a TLS port.
func (s *Server) useCertificates(changes []config.Change) error {
	files, first := s.Settings.TLS(), -1
	ports, _ := s.portsAfter(changes)
	for i, change := range changes {
		if change.TLS != nil {
			*change.TLS(&files) = change.Value
		}
		if first < 0 && (change.TLS != nil || change.Name == "tls-port" && ports.TLSPort != 0) {
			first = i
		}
	}
	if first < 0 || !s.certificates.Loaded() && files.Cert == "" && ports.TLSPort == 0 {
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
