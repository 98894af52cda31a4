package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"rlserver/certs"
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
	"rlserver/resp/command"
	"rlserver/smallfile"
	"rlserver/web"
)

// openWeb creates and serves the HTTP server. Without --http-port it does nothing.
func (p *parts) openWeb() error {
	start := &p.settings.Start.HTTP
	if start.Port == 0 {
		return nil
	}
	token, err := readToken(start.TokenFile)
	if err != nil {
		return err
	}
	listeners, err := listenTCP(start.Bind, start.Port, "--http-bind")
	if err != nil {
		closeAll(listeners)
		return err
	}
	var encryption *tls.Config
	if p.certs != nil && start.TLS != "no" {
		encryption = p.certs.OptionalConfig()
	}
	p.web = web.New(web.Options{
		Source: webSource{p}, Log: p.log, Debug: start.Debug == "yes", TLS: encryption,
		Access: web.Access{
			Token: token, Protected: p.server.Protected,
			Anyone: func() web.Permission { return p.server.Anyone() },
			Login: func(user, password, address string, noPassword bool) web.Permission {
				return p.server.Login(user, password, address, noPassword)
			},
			NeedsCertificate: func() bool { return p.settings.TLS().Files().ClientAuth == certs.Required },
		},
		MaxConnections: start.MaxClients, MaxStreams: start.MaxStreams,
		RESPPort: fmt.Sprint(cmp.Or(p.settings.Start.Port, p.settings.Start.TLSPort)),
	})
	for _, ln := range listeners {
		p.log.Info("listening", "network", "http", "address", ln.Addr().String(), "tls", encryption != nil)
		go p.web.Serve(ln)
	}
	return nil
}

// closeWeb stops the HTTP server. It closes connections whose responses take longer than a second.
func (p *parts) closeWeb() {
	if p.web == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.web.Close(ctx)
}

// maxTokenFile is the largest size of the file of --http-token-file, in bytes.
const maxTokenFile = 64 << 10

// minToken is the smallest length of a token, in bytes. A failed attempt with a token is not
// delayed, unlike one with a password.
const minToken = 16

// readToken reads the token of --http-token-file. Without a path it returns "".
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := smallfile.Read(path, maxTokenFile)
	if err != nil {
		return "", fmt.Errorf("--http-token-file cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	token := strings.TrimSpace(line)
	if len(token) < minToken {
		return "", fmt.Errorf("--http-token-file %s: its first line must be a token of at least %d characters",
			path, minToken)
	}
	return token, nil
}

// webSource implements web.Source by the parts of the server.
type webSource struct{ p *parts }

// State implements web.Source.
func (s webSource) State() *web.State {
	p := s.p
	f, settings, clock := p.server.Figures(), p.settings, p.clock.Status()
	keys := p.engine.Stats()
	state := &web.State{
		Version: version, Time: p.clock.Now(), Uptime: f.Uptime, Loading: f.Loading, Stopping: f.Stopping,
		Expiry: f.CertificateExpiry,
		Calls:  f.Calls, Errors: f.Errors,
		Clients: web.Clients{
			Open: f.Clients, Max: settings.MaxClients.Load(), Waiting: f.WaitingCalls,
			Received: f.Received, Rejected: f.Rejected, BytesIn: f.BytesIn, BytesOut: f.BytesOut,
			FailedLogins: f.FailedLogins, LoginTimeouts: f.LoginTimeouts, Handshakes: f.HandshakeFailures,
			Evicted: f.EvictedClients, OutputLimit: f.OutputLimit,
		},
		Keys: web.Keys{Hits: keys.Hits, Misses: keys.Misses, Expired: keys.Expired, Evicted: keys.Evicted},
		Memory: web.Memory{
			Keys: p.engine.Weight(), Clients: f.ClientMemory, Overhead: f.Overhead,
			Max: settings.MaxMemory(), MaxClients: settings.ClientsLimit(), Refused: f.OutOfMemory,
			Policy: fmt.Sprint(settings.Policy()),
		},
		Disk:  s.disk(),
		Fsync: p.server.Stats.Fsync.Snapshot(), Snapshot: p.server.Stats.Snapshot.Snapshot(),
		Clock: web.Clock{Difference: clock.Difference, State: string(clock.State), Left: clock.Left},
	}
	s.addCommands(state)
	for _, policy := range p.engine.Policies() {
		state.Policies = append(state.Policies, web.Policy{
			Name: policy.Name(), Definition: policy.Definition(), Shadow: policy.Shadow(),
			Decisions: policy.Decisions(),
		})
	}
	for _, t := range p.engine.Types() {
		state.Keys.Types = append(state.Keys.Types, web.TypeKeys{Type: string(t.Type), Keys: t.Keys})
	}
	for db := range p.engine.Databases() {
		if n, expires := p.engine.Size(db); n > 0 {
			state.Keys.Databases = append(state.Keys.Databases,
				web.Database{Number: db, Keys: int64(n), Expires: int64(expires)})
		}
	}
	return state
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
		AppendOnly: st.AppendOnly, State: "ok", LogBytes: st.SnapshotBytes + st.LogBytes,
		UnwrittenBytes: st.Backlog, Appended: st.Appended, Durable: st.Synced, SlowSyncs: st.DelayedSyncs,
		Saving: st.Saving, Saves: st.Saves, LastSave: st.LastSave, LastSaveFailed: st.LastFailed,
		UnsavedChanges: st.Changes,
	}
	switch {
	case st.Failure != nil:
		d.State, d.Failure = "failed", st.Failure.Error()
	case st.Full != nil:
		d.State, d.Failure = "full", st.Full.Error()
	}
	return d
}

// Ready implements web.Source.
func (s webSource) Ready() error {
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
	return s.p.data.Refuses()
}

// Denied implements web.Source.
func (s webSource) Denied(n int) []web.DeniedKey {
	top := s.p.engine.Top(engine.AllDatabases, n)
	list := make([]web.DeniedKey, len(top))
	for i, d := range top {
		list[i] = web.DeniedKey{Database: d.DB, Name: d.Name, Count: d.Count}
		if d.Rule != nil {
			list[i].Rule = d.Rule.String()
		}
	}
	return list
}

// Limiter implements web.Source.
func (s webSource) Limiter(db int, name []byte) (l web.Limiter, ok bool) {
	if db >= s.p.engine.Databases() {
		return l, false
	}
	k := s.p.engine.Key(name)
	by := s.ruleOf(db, k)
	tx := s.p.engine.NewTx()
	tx.Begin(s.p.clock.Now(), db, []engine.Key{k}, false)
	defer tx.End()
	kind := tx.Type(k)
	if l.Type = string(kind); kind == object.TypeNone && by == nil {
		return l, false
	}
	l.ExpiresIn = -1
	if at, ok := tx.Deadline(k); ok && at > 0 {
		l.ExpiresIn = time.Duration(at-tx.Now()) * time.Millisecond
	}
	if by == nil {
		return l, true
	}
	l.Rule = by.String()
	var d limit.Decision
	var err error
	tx.NoTouch(true, func() {
		tx.DryRun(func() { d, err = tx.Decide(&engine.Limit{Key: k, Rule: *by}, 0) })
	})
	if err != nil {
		l.Unusable = strings.TrimPrefix(err.Error(), "ERR ")
		return l, true
	}
	l.Limit, l.Remaining = d.Limit, d.Remaining
	l.RetryIn, l.ResetIn = time.Duration(d.RetryAfter)*time.Millisecond, time.Duration(d.ResetAfter)*time.Millisecond
	return l, true
}

// ruleOf returns the rule by which a key was last denied or, for the key of a policy, the policy's
// rule; nil if neither is known.
func (s webSource) ruleOf(db int, k engine.Key) *rule.Rule {
	if by := s.p.engine.DeniedBy(db, k); by != nil {
		return by
	}
	if name, id, found := strings.Cut(string(k.Name), ":{"); found && strings.HasSuffix(id, "}") {
		if policy := s.p.engine.Policy(name); policy != nil {
			return policy.Rule()
		}
	}
	return nil
}

// checkHealth is the tool healthcheck.
func checkHealth(args []string, out io.Writer) error {
	address := ""
	switch {
	case len(args) == 1:
		address = args[0]
	case len(args) > 1:
		return errors.New("healthcheck takes one address: rlserver healthcheck [URL]")
	default:
		port := os.Getenv("RLSERVER_HTTP_PORT")
		if port == "" || port == "0" {
			return errors.New("name the address, as RLSERVER_HTTP_PORT is not set: " +
				"rlserver healthcheck http://127.0.0.1:9121/healthz")
		}
		scheme := "http"
		if os.Getenv("RLSERVER_TLS_CERT_FILE") != "" && os.Getenv("RLSERVER_HTTP_TLS") != "no" {
			scheme = "https"
		}
		address = scheme + "://" + net.JoinHostPort("127.0.0.1", port) + "/healthz"
	}
	if err := web.CheckHealth(context.Background(), address); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "ok")
	return err
}
