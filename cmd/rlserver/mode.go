package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/storage"
	"rlserver/persistence"
	"rlserver/resp"
	"rlserver/web"
)

// mode is what a server alone and a node of a cluster do differently. It is chosen in setup.mode,
// and nothing else asks which of the two the server is.
type mode interface {
	// validate checks the settings of this mode against each other. maxClients returns how many of
	// the connections that the system allows may be clients.
	validate(c *setup) error
	maxClients(c *setup, most int) int

	// checkDir returns why the data directory is not one of this mode, before anything is opened.
	checkDir(dir string) error
	// ownLog reports whether changes are written to the log of the data directory.
	ownLog(c *setup) bool
	// These add what this mode needs to the options of the engine and then of the server.
	connectEngine(o *engine.Options)
	connectServer(p *parts, o *resp.Options)
	// open opens what has to be opened after the server was made.
	open(p *parts) error

	// restore loads the data, and loaded notes that policies are loaded too. accept serves the
	// listeners of this mode alone.
	restore(ctx context.Context, p *parts) error
	loaded(p *parts)
	accept(p *parts)
	setPolicies(p *parts, list []*policy.Policy) (engine.PolicyChanges, error)

	// dismissed is closed when the server has to stop for a reason that why returns.
	dismissed() <-chan struct{}
	why() error
	// handOver ends what clients should find elsewhere before they are closed. close ends the rest,
	// and waits for locks until the context ends. It returns an error if data may be lost.
	handOver(ctx context.Context, p *parts)
	close(ctx context.Context, p *parts) error

	// ready and readyForTraffic are those of web.Source for a server that has loaded its data.
	ready(p *parts) error
	readyForTraffic(p *parts) error
	addState(p *parts, state *web.State)
	// keyspaceOf returns the engine that has a key, and its time; nil if another node has it.
	keyspaceOf(p *parts, name []byte) (e *engine.Engine, now int64)
}

// mode returns the mode of the server that the settings ask for.
func (c *setup) mode() mode {
	if c.Start.Cluster.Enabled == "yes" {
		return new(clusterParts)
	}
	return standalone{}
}

// standalone is the mode of a server alone, as Redis calls it in INFO.
type standalone struct{}

func (standalone) validate(*setup) error             { return nil }
func (standalone) maxClients(_ *setup, most int) int { return most }
func (standalone) checkDir(string) error             { return nil }
func (standalone) ownLog(c *setup) bool              { return c.Start.AppendOnly }
func (standalone) connectEngine(*engine.Options)     {}

func (standalone) connectServer(*parts, *resp.Options) {}

func (standalone) open(*parts) error { return nil }

var errNotLoaded = errors.New("stopped before the data was loaded; it is unchanged")

// restore loads the data directory into the engine, and starts to write to it.
func (standalone) restore(ctx context.Context, p *parts) error {
	start := time.Now()
	var r persistence.Recovery
	failed := make(chan error, 1)
	go func() {
		defer p.processors.LongCall()() // effects are applied on all processors
		var err error
		if r, err = p.data.Load(p.engine); err == nil {
			p.clock.Continue(r.Last)
			err = p.data.Start()
		}
		failed <- err
	}()
	select {
	case <-ctx.Done():
		return errNotLoaded
	case err := <-failed:
		if err == nil {
			p.logRecovery(r, time.Since(start))
		}
		return err
	}
}

func (standalone) loaded(p *parts) { p.server.SetLoading(false) }
func (standalone) accept(*parts)   {}

func (standalone) setPolicies(p *parts, list []*policy.Policy) (engine.PolicyChanges, error) {
	changes, err := p.engine.SetPolicies(p.clock.Now(), list)
	p.server.PoliciesChanged()
	return changes, err
}

func (standalone) dismissed() <-chan struct{}       { return nil }
func (standalone) why() error                       { return nil }
func (standalone) handOver(context.Context, *parts) {}

// close takes a last snapshot, if the settings or SHUTDOWN SAVE require one.
func (standalone) close(ctx context.Context, p *parts) error {
	asked := p.server.EndsSaved() && p.data.Status().Changes > 0
	if p.settings.Start.AppendOnly || len(p.settings.Store().Save) == 0 && !asked || p.server.EndsUnsaved() {
		return nil
	}
	err := untilHung(ctx, p.settings.Start.Dir, p.data.Answers, func() error {
		return storage.SnapshotAfterCurrent(store{p.data})
	})
	if err != nil {
		const lost = "the last snapshot could not be taken, and changes since the one before are lost"
		return fmt.Errorf("%s: %w", lost, err)
	}
	return nil
}

func (standalone) ready(p *parts) error             { return cmp.Or(p.data.Refuses(), p.data.Stalled()) }
func (m standalone) readyForTraffic(p *parts) error { return m.ready(p) }
func (standalone) addState(*parts, *web.State)      {}

func (standalone) keyspaceOf(p *parts, _ []byte) (*engine.Engine, int64) {
	return p.engine, p.clock.Now()
}
