package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"rlserver/internal/smallfile"
	"rlserver/resp/config/conffile"
)

// Given is the value of a setting at the start.
type Given struct {
	Value  string
	Origin string   // a flag, an environment variable, or file and line; empty: the default
	Over   []string // the origins of values that it takes precedence over
	As     string   // origin and setting, for errors
}

// GivenValues maps the names of parameters to their values at the start.
type GivenValues map[string]Given

// Give adds a value, which takes precedence over one that was added before.
func (g GivenValues) Give(name string, value Given) {
	if before, given := g[name]; given {
		value.Over = append(slices.Clone(before.Over), before.Origin)
	}
	g[name] = value
}

// errUnknownDirective is the error of a directive that is not a parameter.
type errUnknownDirective struct{ name string }

func (e errUnknownDirective) Error() string {
	if slices.Contains(redisDirectives, e.name) {
		return e.name + " is a directive of Redis that rlserver does not have"
	}
	return e.name + " is not a directive"
}

// ReadFile adds the values of a configuration file. Directives that rlserver does not have are
// errors, or if ignored is given, it is called for each of them. All errors are returned, joined.
func (g GivenValues) ReadFile(path string, ignored func(why error)) error {
	list, err := conffile.Read(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range list {
		switch err := g.directive(d); {
		case err == nil:
		case ignored != nil && isUnknown(err):
			ignored(err)
		default:
			errs = append(errs, err)
		}
	}
	if slices.ContainsFunc(errs, isUnknown) {
		errs = append(errs,
			errors.New("--ignore-unknown-config starts without the directives that rlserver does not have"))
	}
	return errors.Join(errs...)
}

func isUnknown(err error) bool {
	_, unknown := errors.AsType[errUnknownDirective](err)
	return unknown
}

func (g GivenValues) directive(d conffile.Directive) error {
	origin := fmt.Sprintf("%s:%d", d.File, d.Line)
	p := Lookup(d.Name)
	if p == nil || p.Group == "" && !strings.EqualFold(strings.Join(d.Args, " "), p.Default) {
		return fmt.Errorf("%s: %w", origin, errUnknownDirective{d.Name})
	}
	if len(d.Args) == 0 || p.Words == OneWord && len(d.Args) > 1 {
		return fmt.Errorf("%s: %s has the wrong number of arguments", origin, d.Name)
	}
	value := Given{Value: strings.Join(d.Args, " "), Origin: origin, As: origin + ": " + d.Name}
	if before := g[p.Name]; p.addsUp() && before.Value != "" && value.Value != "" {
		value.Value = before.Value + p.separator() + value.Value
		value.Origin = before.Origin + ", " + value.Origin
		delete(g, p.Name)
	}
	g.Give(p.Name, value)
	return nil
}

// Start returns the settings of a server that starts with these values, and with the defaults of
// the table for all other parameters. All errors are returned, joined.
func (g GivenValues) Start() (*Settings, error) {
	s := empty()
	var errs []error
	for i := range Parameters {
		p := &Parameters[i]
		given, ok := g[p.Name]
		if !ok {
			given = Given{Value: p.Default, As: "default of " + p.Name}
		}
		if err := p.start(s, given.Value); err != nil {
			errs = append(errs, given.refuse(p, err))
		}
	}
	return s, errors.Join(errs...)
}

// start applies a value before the server runs.
func (p *Parameter) start(s *Settings, value string) error {
	set := p.Start
	if set == nil {
		set = p.Set
	}
	apply, err := set(s, value)
	if err == nil {
		apply()
	}
	return err
}

func (g *Given) refuse(p *Parameter, why error) error {
	text := why.Error()
	if p.Example != "" {
		text = strings.TrimSuffix(text, ".") + "; an example is " + p.Example
	}
	if p.Secret {
		return fmt.Errorf("%s: %s", g.As, text)
	}
	return fmt.Errorf("%s %q: %s", g.As, g.Value, text)
}

// redisDirectives are the directives of Redis 7.0, current and deprecated.
var redisDirectives = strings.Fields(`
	acl-pubsub-default aclfile acllog-max-len active-defrag-cycle-max active-defrag-cycle-min
	active-defrag-ignore-bytes active-defrag-max-scan-fields active-defrag-threshold-lower
	active-defrag-threshold-upper active-expire-effort activedefrag activerehashing always-show-logo
	aof-disable-auto-gc aof-load-truncated aof-rewrite-incremental-fsync aof-timestamp-enabled
	aof-use-rdb-preamble aof_rewrite_cpulist appenddirname appendfilename appendfsync appendonly
	auto-aof-rewrite-min-size auto-aof-rewrite-percentage bgsave_cpulist bind bind-source-addr bio_cpulist
	busy-reply-threshold client-output-buffer-limit client-query-buffer-limit cluster-allow-pubsubshard-when-down
	cluster-allow-reads-when-down cluster-allow-replica-migration cluster-announce-bus-port
	cluster-announce-hostname cluster-announce-ip cluster-announce-port cluster-announce-tls-port
	cluster-config-file cluster-enabled cluster-link-sendbuf-limit cluster-migration-barrier cluster-node-timeout
	cluster-port cluster-preferred-endpoint-type cluster-replica-no-failover cluster-replica-validity-factor
	cluster-require-full-coverage cluster-slave-no-failover cluster-slave-validity-factor crash-log-enabled
	crash-memcheck-enabled daemonize databases dbfilename dir disable-thp dynamic-hz enable-debug-command
	enable-module-command enable-protected-configs hash-max-listpack-entries hash-max-listpack-value
	hash-max-ziplist-entries hash-max-ziplist-value hll-sparse-max-bytes hz ignore-warnings io-threads
	io-threads-do-reads jemalloc-bg-thread key-load-delay latency-monitor-threshold latency-tracking
	latency-tracking-info-percentiles lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del
	lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor list-compress-depth
	list-max-listpack-size list-max-ziplist-entries list-max-ziplist-size list-max-ziplist-value
	loading-process-events-interval-bytes loadmodule logfile loglevel lua-enable-deprecated-api
	lua-replicate-commands lua-time-limit masterauth masteruser maxclients maxmemory maxmemory-clients
	maxmemory-eviction-tenacity maxmemory-policy maxmemory-samples min-replicas-max-lag min-replicas-to-write
	min-slaves-max-lag min-slaves-to-write no-appendfsync-on-rewrite notify-keyspace-events oom-score-adj
	oom-score-adj-values pidfile port proc-title-template propagation-error-behavior protected-mode
	proto-max-bulk-len rdb-del-sync-files rdb-key-save-delay rdb-save-incremental-fsync rdbchecksum
	rdbcompression rename-command repl-backlog-size repl-backlog-ttl repl-disable-tcp-nodelay repl-diskless-load
	repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas repl-ping-replica-period
	repl-ping-slave-period repl-timeout replica-announce-ip replica-announce-port replica-announced
	replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority
	replica-read-only replica-serve-stale-data replicaof requirepass sanitize-dump-payload save sentinel
	server_cpulist set-max-intset-entries set-proc-title shutdown-on-sigint shutdown-on-sigterm shutdown-timeout
	slave-announce-ip slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only
	slave-serve-stale-data slaveof slowlog-log-slower-than slowlog-max-len socket-mark-id
	stop-writes-on-bgsave-error stream-node-max-bytes stream-node-max-entries supervised syslog-enabled
	syslog-facility syslog-ident tcp-backlog tcp-keepalive timeout tls-auth-clients tls-ca-cert-dir
	tls-ca-cert-file tls-cert-file tls-ciphers tls-ciphersuites tls-client-cert-file tls-client-key-file
	tls-client-key-file-pass tls-cluster tls-dh-params-file tls-key-file tls-key-file-pass tls-port
	tls-prefer-server-ciphers tls-protocols tls-replication tls-session-cache-size tls-session-cache-timeout
	tls-session-caching tracking-table-max-keys unixsocket unixsocketperm use-exit-on-panic user watchdog-period
	zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries zset-max-ziplist-value
`)

// ErrNoFile is returned by Rewrite if the server has no configuration file.
var ErrNoFile = errors.New("there is no configuration file")

// errPasswordFile is returned by Rewrite instead of a file with two passwords.
var errPasswordFile = errors.New("requirepass was changed, but requirepass-file names the file of the password: " +
	"write it there")

// Keep records the current values as those of the next start, so that Rewrite only writes later
// changes.
func (s *Settings) Keep() {
	s.kept = make(map[string]string, len(Parameters))
	for i := range Parameters {
		s.kept[Parameters[i].Name] = Parameters[i].Get(s)
	}
}

// Rewrite writes the parameters that have changed since Keep to the configuration file. It also
// writes those that it has written before, as the file may have been edited or replaced since. All
// else in the file stays unchanged: comments, order and the form of values. Values from flags and
// the environment are not written.
func (s *Settings) Rewrite() error {
	if s.File == "" {
		return ErrNoFile
	}
	s.rewriting.Lock()
	defer s.rewriting.Unlock()
	var changed []conffile.Setting
	written := make(map[string]bool)
	for i := range Parameters {
		p := &Parameters[i]
		value := p.Get(s)
		if value == s.kept[p.Name] && !s.written[p.Name] {
			continue
		}
		written[p.Name] = true
		if p.Name == "requirepass" && s.Start.PasswordFile != "" {
			return errPasswordFile
		}
		changed = append(changed, p.directive(value))
	}
	text, err := conffile.ReadText(s.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := smallfile.Write(s.File, conffile.Rewrite(text, changed)); err != nil {
		return err
	}
	s.written = written
	return nil
}

// directive returns the lines of a configuration file that set a value.
func (p *Parameter) directive(value string) conffile.Setting {
	s := conffile.Setting{Names: []string{p.Name}}
	if p.Alias != "" {
		s.Names = append(s.Names, p.Alias)
	}
	words := strings.Fields(value)
	switch {
	case p.Words == OneWord || len(words) == 0:
		s.Lines = [][]string{{value}}
	case p.Words == ManyLines:
		for line := range strings.SplitSeq(value, "\n") {
			s.Lines = append(s.Lines, strings.Split(line, " ")) // words may have other white space
		}
	case p.Words == ManyWords:
		s.Lines = [][]string{words}
	default:
		s.Lines = slices.Collect(slices.Chunk(words, p.Words))
	}
	return s
}
