package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"rlserver/engine"
	"rlserver/engine/background"
	"rlserver/engine/policy"
	"rlserver/internal/certs"
	"rlserver/internal/clock"
	"rlserver/internal/listen"
	"rlserver/internal/policyfile"
	"rlserver/internal/process"
	"rlserver/internal/progress"
	"rlserver/persistence"
	"rlserver/resp"
	"rlserver/resp/config"
	"rlserver/resp/local"
	"rlserver/web"
)

// parts are the parts of a server. They are opened in the order of the fields.
type parts struct {
	setup     setup
	policies  []*policy.Policy // read from the file of --policies
	hangups   chan os.Signal
	settings  *config.Settings
	log       *slog.Logger
	clock     *clock.Clock
	data      *persistence.Store
	certs     *certs.Store // has no certificate without TLS
	listeners []listener
	sockets   *listen.Sockets // of listeners, those of the ports for clients
	engine    *engine.Engine
	file      *policyfile.File // nil without --policies
	server    *resp.Server

	processors *process.Processors

	source clock.Source
	mode   mode
	web    *web.Server     // nil without --http-port
	local  *local.Listener // of calls of web
}

// serve runs the server with the given time source, until the context ends or a client sends
// SHUTDOWN. Calls in progress are answered before it returns, unless they take longer than
// drainTime.
func serve(ctx context.Context, c setup, source clock.Source) error {
	p, err := open(c, source)
	if err != nil {
		return err
	}
	defer process.KeepHeap(process.HeapOptions{MaxMemory: p.settings.MaxMemory, InUse: p.server.MemoryTaken})()
	if err := p.load(ctx); err != nil {
		drained, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		p.server.Shutdown(drained) // closes the listeners that are served
		listen.CloseAll(p.listeners)
		p.closeWeb()
		if err == errNotLoaded && ctx.Err() == nil {
			p.log.Info("stopped before the data was loaded", "reason", "SHUTDOWN")
			return nil
		}
		return err
	}
	stops := p.start()
	p.log.Info("ready", "version", version, "pid", os.Getpid())
	p.notify(daemon.SdNotifyReady)

	select {
	case <-ctx.Done():
		p.log.Info("stopping", "reason", "signal")
	case <-p.server.ShutdownRequested():
		p.log.Info("stopping", "reason", "SHUTDOWN")
	case <-p.mode.dismissed():
		p.log.Info("stopping", "reason", p.mode.why())
		p.notify(daemon.SdNotifyStopping)
		return errors.Join(p.mode.why(), p.stop(stops))
	}
	p.notify(daemon.SdNotifyStopping)
	return p.stop(stops)
}

// notify notifies systemd of a change of state, if systemd has started the server and expects it.
func (p *parts) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("systemd could not be notified", "state", state, "error", err)
	}
}

// newLogger returns a logger that writes to standard error.
func newLogger(s *config.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel()}
	if s.Start.LogFormat == "json" {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // would be a number of nanoseconds
				return slog.String(a.Key, a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// open opens all parts of the server. It reads the files that flags name before it changes anything
// in the data directory.
func open(c setup, source clock.Source) (p *parts, err error) {
	p = &parts{setup: c, settings: c.Settings, mode: c.mode(), hangups: make(chan os.Signal, 1)}
	warning, err := process.CheckAddressSpace(c.MaxMemory())
	if err != nil {
		return nil, err
	}
	// by default, the signal would end the process
	signal.Ignore(syscall.SIGHUP)
	if path := c.Start.Policies; path != "" {
		signal.Notify(p.hangups, syscall.SIGHUP)
		if p.policies, err = readPolicies(path); err != nil {
			return nil, err
		}
	}
	p.log = newLogger(c.Settings)
	for _, why := range c.ignored {
		p.log.Warn("a directive of the configuration file is ignored", "error", why)
	}
	if possible := c.MaxClients.Load(); possible < c.wanted {
		p.log.Warn("the limit on open files is too low for maxclients",
			"maxclients", c.wanted, "possible", possible)
	}
	if warning != "" {
		p.log.Warn(warning)
	}
	if err := p.mode.checkDir(c.Start.Dir); err != nil {
		return nil, err
	}
	p.clock, p.source = clock.New(source, p.log), source
	now := func() time.Time { return time.UnixMilli(p.clock.Now()) }
	if p.certs, err = openCertificates(p.settings, now, p.log); err != nil {
		return nil, err
	}
	p.data, err = persistence.Open(persistence.Options{
		Dir: c.Start.Dir, AppendOnly: p.mode.ownLog(&c), Clock: p.clock.Now, Log: p.log,
		Settings:        p.settings.Store(),
		Progress:        progress.New(progress.Terminal(os.Stderr), p.log),
		ObserveSync:     func(took time.Duration) { p.server.ObserveSync(took) },
		ObserveSnapshot: func(took time.Duration) { p.server.Stats.Snapshot.Observe(took) },
	})
	if err != nil {
		return nil, err
	}
	if p.sockets, p.listeners, err = openListeners(c.Settings); err != nil {
		return nil, errors.Join(err, p.data.Close())
	}
	p.connect()
	if err = p.mode.open(p); err == nil {
		err = p.openWeb()
	}
	if err != nil {
		listen.CloseAll(p.listeners)
		return nil, errors.Join(err, p.data.Close())
	}
	for _, ln := range p.listeners {
		p.log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String(), "tls", ln.tls,
			"proxy", ln.proxy)
	}
	return p, nil
}

// readPolicies reads the file of --policies.
func readPolicies(path string) ([]*policy.Policy, error) {
	policies, err := policyfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--policies cannot be read: %w", err)
	}
	return policies, nil
}

// connect creates the engine and the server, and connects the parts. The server answers LOADING
// until load has returned.
func (p *parts) connect() {
	options := engine.Options{Databases: p.settings.Start.Databases, Seed: seed()}
	if p.mode.ownLog(&p.setup) {
		options.Journal = p.data
	}
	p.mode.connectEngine(&options)
	p.engine = engine.New(options)
	adapter := store{p.data}
	p.processors = process.FitProcessors()
	serverOptions := resp.Options{
		Engine: p.engine, Journal: options.Journal, Store: adapter, Clock: p.clock, Log: p.log, Settings: p.settings,
		Version: version, LongCall: p.processors.LongCall, Certificates: p.certs, Sockets: p.sockets,
	}
	p.mode.connectServer(p, &serverOptions)
	if path := p.settings.Start.Policies; path != "" {
		p.file = policyfile.New(policyfile.Options{
			Set:  func(list []*policy.Policy) (engine.PolicyChanges, error) { return p.mode.setPolicies(p, list) },
			Path: path, Refusal: adapter.Refusal, Log: p.log,
		})
		serverOptions.ReloadPolicies = p.file.Reload
	}
	p.server = resp.NewServer(serverOptions)
	p.server.SetLoading(true)
}

// start starts the background work of a server whose data is loaded. It returns the functions that
// stop it, in the order of their calls.
func (p *parts) start() (stops []func()) {
	work := background.Start(p.engine, background.Options{
		Now: p.clock.Now, Expire: p.settings.ActiveExpiry, Refused: p.data.Refuses,
	})
	stops = []func(){p.clock.Run(), p.server.StartSampling(), work.Stop, p.processors.Follow(p.server.Load),
		p.watchCertificates()}
	if p.file != nil {
		stop := p.file.ReloadOn(p.hangups)
		stops = append(stops, func() {
			// by default, the signal would end the process before the orderly stop
			signal.Ignore(syscall.SIGHUP)
			stop()
		})
	}
	return stops
}

// seed returns a random hash key, so that clients cannot choose key names that collide.
func seed() (key [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never returns an error
	key[0], key[1] = binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
	return key
}
