package main

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"rlserver/persistence"
)

// maxLoadWait is how long clients that connect early wait for the data: their connections stay in
// the backlog of the listening socket. After that they are accepted and get LOADING.
const maxLoadWait = 2 * time.Second

// load loads the data and the policies, and starts to accept clients. Clients may have been
// accepted when it returns an error.
func (p *parts) load(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a client may have been accepted, and send SHUTDOWN
		select {
		case <-p.server.ShutdownRequested():
			cancel()
		case <-ctx.Done():
		}
	}()
	return loadThenAccept(maxLoadWait, func() error {
		if err := p.mode.restore(ctx, p); err != nil {
			return err
		}
		if p.file != nil {
			p.file.Set(p.policies)
		}
		p.mode.loaded(p)
		return nil
	}, p.accept)
}

// loadThenAccept accepts clients when load returns without an error, or after a wait if load takes
// longer. It returns the error of load.
func loadThenAccept(wait time.Duration, load func() error, accept func()) error {
	accept = sync.OnceFunc(accept)
	timer := time.AfterFunc(wait, accept)
	defer timer.Stop()
	if err := load(); err != nil {
		return err
	}
	accept()
	return nil
}

// accept serves all listeners until Shutdown.
func (p *parts) accept() {
	for _, ln := range p.listeners {
		var with *tls.Config
		if ln.tls {
			with = p.certs.Config()
		}
		if ln.proxy {
			go p.server.ServeProxy(ln, with)
		} else {
			go p.server.ServeTLS(ln, with)
		}
	}
	if p.local != nil {
		go p.server.ServeProxy(p.local, nil) // of a cluster the page shows all nodes
	}
	p.mode.accept(p)
}

func (p *parts) logRecovery(r persistence.Recovery, took time.Duration) {
	if r.Skipped != nil {
		p.log.Warn("the newest snapshot is damaged: an older one and the log were loaded instead", "error", r.Skipped)
	}
	if t := r.Torn; t != nil {
		p.log.Warn("the log ended in a torn record, which was removed",
			"segment", t.Segment, "offset", t.Offset, "bytes", t.Bytes, "since", time.UnixMilli(t.Since).UTC())
	}
	if r.Records > 0 {
		p.log.Info("loaded", "snapshot", r.Snapshot, "segments", r.Segments, "records", r.Records,
			"took", took.Round(time.Millisecond))
	}
}
