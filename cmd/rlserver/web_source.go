package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rlserver/engine"
	"rlserver/engine/denials"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/resp/command"
	"rlserver/web"
)

// webSource implements web.Source by the parts of the server.
type webSource struct{ p *parts }

// State implements web.Source.
func (s webSource) State() *web.State {
	p := s.p
	f, settings, clock := p.server.Figures(), p.settings, p.clock.Status()
	keys, held := p.engine.Memory().Stats(), p.engine.Memory().Reserved()
	state := &web.State{
		Version: version, Time: p.clock.Now(), Uptime: f.Uptime, Loading: f.Loading, Stopping: f.Stopping,
		Expiry: f.CertificateExpiry,
		Calls:  f.Calls, Errors: f.Errors,
		Clients: web.Clients{
			Open: f.Clients, Max: settings.MaxClients.Load(), Waiting: f.WaitingCalls,
			Received: f.Received, Rejected: f.Rejected, BytesIn: f.BytesIn, BytesOut: f.BytesOut,
			FailedLogins: f.FailedLogins, RefusedLogins: f.RefusedLogins, LoginSources: f.LoginSources,
			LoginTimeouts: f.LoginTimeouts, Handshakes: f.HandshakeFailures,
			Evicted: f.EvictedClients, OutputLimit: f.OutputLimit,
		},
		Keys: web.Keys{
			Hits: keys.Hits, Misses: keys.Misses, Expired: keys.Expired, Evicted: keys.Evicted, Bans: keys.Bans,
		},
		Memory: web.Memory{
			Keys: p.engine.Memory().Weight(), Clients: f.ClientMemory, Overhead: f.Overhead,
			Max: settings.MaxMemory(), MaxClients: settings.ClientsLimit(), Refused: f.OutOfMemory,
			Policy:       fmt.Sprint(settings.Policy()),
			Reservations: held.N, Reserved: held.Bytes,
			MaxReservations: settings.MaxReservations.Load(), Retention: settings.SettledRetention.Load(),
		},
		Disk:  s.disk(),
		Fsync: p.server.Stats.Fsync.Snapshot(), Snapshot: p.server.Stats.Snapshot.Snapshot(),
		Clock: web.Clock{Difference: clock.Difference, State: string(clock.State), Left: clock.Left},
	}
	s.addCommands(state)
	s.addPolicies(state)
	s.addKeys(state)
	s.addScripts(state)
	s.addMessages(state, f.Unnotified)
	p.mode.addState(p, state)
	return state
}

// addPolicies adds the policies, with the decisions of this node.
func (s webSource) addPolicies(state *web.State) {
	for _, p := range s.p.engine.Policies() {
		state.Policies = append(state.Policies, web.Policy{
			Name: p.Name(), Definition: p.Definition(), Shadow: p.Shadow(), Decisions: p.Decisions(),
		})
	}
}

// addKeys adds the numbers of keys: in a cluster, those of the groups that this node leads.
func (s webSource) addKeys(state *web.State) {
	types := make(map[string]int)
	for _, k := range s.p.server.Keyspaces() {
		for _, t := range k.Engine.Types() {
			name := string(t.Type)
			i, ok := types[name]
			if !ok {
				i = len(state.Keys.Types)
				types[name] = i
				state.Keys.Types = append(state.Keys.Types, web.TypeKeys{Type: name})
			}
			state.Keys.Types[i].Keys += t.Keys
		}
		for db := range k.Engine.Databases() {
			n, expires := k.Engine.Size(db)
			state.Keys.Databases = addDatabase(state.Keys.Databases, db, n, expires)
		}
	}
}

// addDatabase adds the numbers of keys of a database, if it has keys.
func addDatabase(list []web.Database, db, keys, expires int) []web.Database {
	if keys == 0 {
		return list
	}
	i := slices.IndexFunc(list, func(d web.Database) bool { return d.Number == db })
	if i < 0 {
		i = len(list)
		list = append(list, web.Database{Number: db})
	}
	list[i].Keys += int64(keys)
	list[i].Expires += int64(expires)
	return list
}

// addCommands adds the counts of all commands that were called.
func (s webSource) addCommands(state *web.State) {
	for _, c := range command.Table {
		for _, each := range append([]*command.Command{c}, c.Subs...) {
			if counts := s.p.server.Stats.Command(each.Index); counts != nil {
				state.Commands = append(state.Commands, web.Command{Name: each.FullName(), CommandCounts: *counts})
			}
		}
	}
}

func (s webSource) disk() web.Disk {
	st := s.p.data.Status()
	d := web.Disk{
		AppendOnly: st.AppendOnly, Syncs: st.AppendOnly, LogBytes: st.SnapshotBytes + st.LogBytes,
		UnwrittenBytes: st.Backlog, Appended: st.Appended, Durable: st.Synced, SlowSyncs: st.DelayedSyncs,
		Saving: st.Saving, Saves: st.Saves, LastSave: st.LastSave, LastSaveFailed: st.LastFailed,
		UnsavedChanges: st.Changes,
	}
	d.State, d.Failure = st.Disk()
	return d
}

// Ready implements web.Source.
func (s webSource) Ready() error { return s.readyFor(s.p.mode.ready) }

// ReadyForTraffic implements web.Source.
func (s webSource) ReadyForTraffic() error { return s.readyFor(s.p.mode.readyForTraffic) }

// readyFor returns why the server is not ready, or why its mode is not.
func (s webSource) readyFor(is func(*parts) error) error {
	f := s.p.server.Figures()
	switch {
	case f.Stopping:
		return errors.New("the server is stopping")
	case f.Loading:
		if st := s.p.data.Status(); st.ToLoad > 0 {
			return fmt.Errorf("the data is being loaded, %d of %d bytes", st.Loaded, st.ToLoad)
		}
		return errors.New("the data is being loaded")
	}
	return is(s.p)
}

// Denied implements web.Source.
func (s webSource) Denied(n int) []web.DeniedKey {
	top := s.p.engine.Memory().Top(denials.AllDatabases, n)
	list := make([]web.DeniedKey, len(top))
	for i, d := range top {
		list[i] = web.DeniedKey{Database: d.DB, Name: d.Name, Count: d.Count, Hash: d.Hash}
		if d.Rule != nil {
			list[i].Rule = d.Rule.String()
		}
	}
	return list
}

// Limiter implements web.Source.
func (s webSource) Limiter(db int, name []byte) (l web.Limiter, ok bool, err error) {
	e, now := s.p.mode.keyspaceOf(s.p, name)
	if e == nil || db >= e.Databases() {
		return l, false, nil
	}
	k := e.Key(name)
	by := ruleOf(e, db, k)
	tx := e.NewTx()
	if !tx.BeginUnlessHeld(now, db, []engine.Key{k}, false, false) {
		return l, false, web.CallError(command.ErrBusy)
	}
	defer tx.End()
	kind := tx.Type(k)
	if l.Type = string(kind); kind == object.TypeNone && by == nil {
		return l, false, nil
	}
	l.ExpiresIn = -1
	if at, ok := tx.Deadline(k); ok && at > 0 {
		l.ExpiresIn = time.Duration(at-tx.Now()) * time.Millisecond
	}
	if by == nil {
		return l, true, nil
	}
	l.Rule = by.String()
	var d limit.Decision
	tx.NoTouch(true, func() {
		tx.DryRun(func() { d, err = tx.Decide(&engine.Limit{Key: k, Rule: *by}) })
	})
	if err != nil {
		l.Unusable = strings.TrimPrefix(err.Error(), "ERR ")
		return l, true, nil
	}
	l.Limit, l.Remaining = d.Limit, d.Remaining
	l.RetryIn, l.ResetIn = time.Duration(d.RetryAfter)*time.Millisecond, time.Duration(d.ResetAfter)*time.Millisecond
	return l, true, nil
}

// NameOf implements web.Source.
func (s webSource) NameOf(db int, hash uint64) []byte {
	for _, e := range s.p.engine.Memory().Engines() {
		if db < e.Databases() {
			if name := e.NameOf(db, hash); name != nil {
				return name
			}
		}
	}
	return nil
}

// ruleOf returns the rule by which a key was last denied or, for the key of a policy, the policy's
// rule; nil if neither is known.
func ruleOf(e *engine.Engine, db int, k engine.Key) *rule.Rule {
	if by := e.DeniedBy(db, k); by != nil {
		return by
	}
	if name, _, ok := policy.SplitKey(string(k.Name)); ok {
		if p := e.Policy(name); p != nil {
			return p.Rule()
		}
	}
	return nil
}
