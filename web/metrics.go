package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rlserver/internal/stats"
)

// metricsHandler serves /metrics. Each scrape takes one State of the source.
func (s *Server) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics{s},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: promLog{s}})
}

// promLog logs errors of scrapes, which only invalid metrics can cause.
type promLog struct{ s *Server }

// Println implements promhttp.Logger.
func (p promLog) Println(v ...any) { p.s.log.Debug("metrics", "error", fmt.Sprint(v...)) }

// metrics converts a State to metrics. It implements prometheus.Collector.
type metrics struct{ s *Server }

// Describe implements prometheus.Collector. It describes nothing, because there are metrics for
// each command, policy and type: the collector is unchecked.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	state := m.s.source.State()
	m.ofCommands(out, state)
	m.ofPolicies(out, state)
	m.ofClients(out, state)
	m.ofKeys(out, state)
	m.ofMemory(out, state)
	m.ofScripts(out, state)
	m.ofMessages(out, state)
	m.ofDisk(out, state)
	m.ofServer(out, state)
	m.ofCluster(out, state.Cluster)
	m.ofHTTP(out)
}

// family describes metrics that differ only in the values of their labels.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("rlserver_"+name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("rlserver_"+name, help, labels, nil), prometheus.GaugeValue}
}

func (f family) send(out chan<- prometheus.Metric, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

func (f family) count(out chan<- prometheus.Metric, value int64, labels ...string) {
	f.send(out, float64(value), labels...)
}

// flag sends 1 or 0.
func (f family) flag(out chan<- prometheus.Metric, yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	f.send(out, value, labels...)
}

var (
	decisions = counter(
		"decisions_total",
		"Decisions of limiters by command and outcome: admitted, denied, or shadow_denied, which means admitted "+
			"because "+
			"only policies in SHADOW mode would have denied it. Calls with COST 0 are not counted.",
		"command",
		"outcome",
	)
	calls = counter("command_calls_total", "Calls that have run, by command.", "command")
	errs  = counter(
		"command_errors_total",
		"Calls that were answered with an error, by command and whether they had run.",
		"command",
		"stage",
	)
	timing = prometheus.NewDesc("rlserver_command_duration_seconds",
		"How long calls ran, without waiting and without sending the reply, by command.", []string{"command"}, nil)
)

func (m metrics) ofCommands(out chan<- prometheus.Metric, s *State) {
	for i := range s.Commands {
		c := &s.Commands[i]
		calls.count(out, c.Calls, c.Name)
		errs.count(out, c.Rejected, c.Name, "rejected")
		errs.count(out, c.Failed, c.Name, "failed")
		if d := c.Decisions; d != (stats.DecisionCounts{}) {
			decisions.count(out, d.Admitted, c.Name, "admitted")
			decisions.count(out, d.Denied, c.Name, "denied")
			decisions.count(out, d.ShadowDenied, c.Name, "shadow_denied")
		}
		if c.Latency.Count > 0 {
			out <- histogram(timing, &c.Latency, 20, c.Name)
		}
	}
	all.count(out, s.Calls)
	allErrors.count(out, s.Errors)
}

// histogram returns a histogram with buckets from 1 µs to 2^most µs.
func histogram(desc *prometheus.Desc, d *stats.Distribution, most int, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, most+1)
	for power := 0; power <= most; power++ {
		buckets[float64(int64(1)<<power)/1e6] = uint64(d.AtMost(power))
	}
	return prometheus.MustNewConstHistogram(desc, uint64(d.Count), d.Sum.Seconds(), buckets, labels...)
}

var (
	all            = counter("calls_total", "Calls of all commands that were processed.")
	allErrors      = counter("error_replies_total", "Replies that were errors.")
	policyDecision = counter("policy_decisions_total",
		"Decisions of policies by outcome: shadow_denied is what a policy in SHADOW mode would have denied.",
		"policy", "outcome")
	policyCount   = gauge("policies", "Number of policies.")
	policyOmitted = gauge(
		"policies_omitted",
		"Policies without metrics of their own, because there are more than 1000.",
	)
	policyShadow = gauge("policy_shadow", "Whether a policy is in SHADOW mode: it denies nothing.", "policy")
)

// maxPolicyMetrics is how many policies have metrics of their own: scraping more would take long.
const maxPolicyMetrics = 1000

func (m metrics) ofPolicies(out chan<- prometheus.Metric, s *State) {
	list := s.Policies
	if len(list) > maxPolicyMetrics { // leave out policies without decisions
		list = slices.DeleteFunc(slices.Clone(list), func(p Policy) bool {
			return p.Decisions == stats.DecisionCounts{}
		})
		list = list[:min(len(list), maxPolicyMetrics)]
	}
	policyCount.count(out, int64(len(s.Policies)))
	policyOmitted.count(out, int64(len(s.Policies)-len(list)))
	for _, p := range list {
		policyDecision.count(out, p.Decisions.Admitted, p.Name, "admitted")
		policyDecision.count(out, p.Decisions.Denied, p.Name, "denied")
		policyDecision.count(out, p.Decisions.ShadowDenied, p.Name, "shadow_denied")
		policyShadow.flag(out, p.Shadow, p.Name)
	}
}

var (
	clientsOpen = gauge("connected_clients", "Clients that are connected.")
	clientsMax  = gauge("max_clients", "Limit of connected clients.")
	waiting     = gauge("waiting_calls", "Calls that wait for a key: with WAIT, or blocking ones.")
	received    = counter("connections_received_total", "Connections that were accepted.")
	rejected    = counter(
		"connections_rejected_total",
		"Connections that were refused: maxclients, protected mode.",
	)
	bytesIn        = counter("network_receive_bytes_total", "Bytes received from clients.")
	bytesOut       = counter("network_transmit_bytes_total", "Bytes sent to clients.")
	failedLogins   = counter("failed_logins_total", "Logins with a wrong user or password.")
	refusedLogins  = counter("login_refusals_total", "Logins refused without a check, as too many had failed.")
	loginSources   = gauge("login_addresses", "Addresses whose failed or successful logins are remembered.")
	loginTimeouts  = counter("login_timeouts_total", "Clients closed: no login in time, or 100 calls before.")
	handshakes     = counter("tls_handshake_failures_total", "TLS handshakes that failed.")
	certificateEnd = gauge("tls_certificate_expiry_timestamp_seconds", "When the certificate of TLS expires.")
	evictedClients = counter(
		"evicted_clients_total",
		"Clients closed because clients used more memory than maxmemory-clients.",
	)
	outputLimitHits = counter("output_limit_disconnections_total",
		"Clients closed because they left more replies unread than client-output-buffer-limit.")
)

func (m metrics) ofClients(out chan<- prometheus.Metric, s *State) {
	c := s.Clients
	clientsOpen.count(out, c.Open)
	clientsMax.count(out, c.Max)
	waiting.count(out, c.Waiting)
	received.count(out, c.Received)
	rejected.count(out, c.Rejected)
	bytesIn.count(out, c.BytesIn)
	bytesOut.count(out, c.BytesOut)
	failedLogins.count(out, c.FailedLogins)
	refusedLogins.count(out, c.RefusedLogins)
	loginSources.count(out, c.LoginSources)
	loginTimeouts.count(out, c.LoginTimeouts)
	handshakes.count(out, c.Handshakes)
	if s.Expiry != 0 {
		certificateEnd.count(out, s.Expiry)
	}
	evictedClients.count(out, c.Evicted)
	outputLimitHits.count(out, c.OutputLimit)
}

var (
	keysByType   = gauge("keys", "Keys of all databases by type.", "type")
	databaseKeys = gauge("database_keys", "Keys by database.", "db")
	databaseTTL  = gauge("database_keys_expiring", "Keys that have a deadline, by database.", "db")
	keyHits      = counter("keyspace_hits_total", "Lookups by reading commands that found a key.")
	keyMisses    = counter("keyspace_misses_total", "Lookups by reading commands that found no key.")
	expired      = counter("expired_keys_total", "Keys deleted because they had expired.")
	evicted      = counter("evicted_keys_total", "Keys evicted because of maxmemory.")
	bans         = counter("bans_total", "How often an id or key was banned because it was denied too often.")
)

func (m metrics) ofKeys(out chan<- prometheus.Metric, s *State) {
	for _, t := range s.Keys.Types {
		keysByType.count(out, t.Keys, t.Type)
	}
	for _, db := range s.Keys.Databases {
		databaseKeys.count(out, db.Keys, fmt.Sprint(db.Number))
		databaseTTL.count(out, db.Expires, fmt.Sprint(db.Number))
	}
	keyHits.count(out, s.Keys.Hits)
	keyMisses.count(out, s.Keys.Misses)
	expired.count(out, s.Keys.Expired)
	evicted.count(out, s.Keys.Evicted)
	bans.count(out, s.Keys.Bans)
}

var (
	memoryUse = gauge("memory_bytes",
		"Memory by what uses it: keys, clients, or overhead, which is the rest of the process.", "use")
	memoryMax        = gauge("memory_max_bytes", "maxmemory, which limits keys and overhead; 0: no limit.")
	memoryClientsMax = gauge("memory_clients_max_bytes", "maxmemory-clients in bytes; 0: no limit.")
	reservations     = gauge("reservations", "Reservations, open ones and those that are remembered.")
	reservedBytes    = gauge("reservations_bytes", "Memory of reservations, a part of that of keys.")
	reservationsMax  = gauge("reservations_max_per_key", "max-reservations: how many open ones a key may have.")
	retention        = gauge("settled_retention_seconds",
		"For how long settled and lapsed reservations are remembered.")
	refusals = counter("out_of_memory_errors_total", "Calls refused with OOM.")
)

func (m metrics) ofMemory(out chan<- prometheus.Metric, s *State) {
	memoryUse.count(out, s.Memory.Keys, "keys")
	memoryUse.count(out, s.Memory.Clients, "clients")
	memoryUse.count(out, s.Memory.Overhead, "overhead")
	memoryMax.count(out, s.Memory.Max)
	memoryClientsMax.count(out, s.Memory.MaxClients)
	refusals.count(out, s.Memory.Refused)
	reservations.count(out, s.Memory.Reservations)
	reservedBytes.count(out, s.Memory.Reserved)
	reservationsMax.count(out, s.Memory.MaxReservations)
	retention.send(out, float64(s.Memory.Retention)/1000)
}

var (
	diskState = gauge("disk_state", "1 for the state of the disk: ok, stalled, full or failed.", "state")
	logSize   = gauge("log_bytes", "Size of the log and the last snapshot.")
	unwritten = gauge("log_unwritten_bytes", "Bytes of the log that wait to be written.")
	appended  = counter("log_appended_bytes_total", "Bytes appended to the log: the position of the last change.")
	durable   = counter(
		"log_synced_bytes_total",
		"Bytes of the log that were synced to the disk: the durable position.",
	)
	slowSyncs = counter("log_slow_fsyncs_total", "Syncs of the log that took longer than a second.")
	fsyncTime = prometheus.NewDesc("rlserver_log_fsync_duration_seconds", "How long syncs of the log took.", nil, nil)

	saving   = gauge("snapshot_in_progress", "Whether a snapshot is being taken.")
	saves    = counter("snapshots_total", "Snapshots that were taken.")
	lastSave = gauge(
		"snapshot_last_success_timestamp_seconds",
		"When the last successful snapshot ended, or the server started.",
	)
	lastSaveOK   = gauge("snapshot_last_success", "Whether the last snapshot succeeded.")
	unsaved      = gauge("changes_since_snapshot", "Changes since the last snapshot.")
	snapshotTime = prometheus.NewDesc("rlserver_snapshot_duration_seconds", "How long snapshots took.", nil, nil)
)

func (m metrics) ofDisk(out chan<- prometheus.Metric, s *State) {
	d := s.Disk
	for _, state := range []string{"ok", "stalled", "full", "failed"} {
		diskState.flag(out, d.State == state, state)
	}
	if d.AppendOnly {
		logSize.count(out, d.LogBytes)
		unwritten.count(out, d.UnwrittenBytes)
		appended.count(out, d.Appended)
		durable.count(out, d.Durable)
		slowSyncs.count(out, max(0, d.SlowSyncs))
	}
	if d.Syncs {
		out <- histogram(fsyncTime, &s.Fsync, 23)
	}
	saving.flag(out, d.Saving)
	saves.count(out, d.Saves)
	lastSave.send(out, float64(d.LastSave)/1000)
	lastSaveOK.flag(out, !d.LastSaveFailed)
	unsaved.count(out, d.UnsavedChanges)
	out <- histogram(snapshotTime, &s.Snapshot, 23)
}

var (
	build       = gauge("build_info", "1; the label has the version of the server.", "version")
	loading     = gauge("loading", "Whether the data is being loaded.")
	isReady     = gauge("ready", "Whether the server is ready, and its cluster for the loss of any node: /readyz.")
	forTraffic  = gauge("ready_for_traffic", "Whether the server is ready for calls, as /readyz/traffic reports.")
	clockOffset = gauge("clock_difference_seconds",
		"System clock minus server time. Above 0: the system clock is ahead.")
	clockState = gauge("clock_state",
		"1 for the state of server time: synced, slewing, or waiting because the system clock has jumped.",
		"state")
)

func (m metrics) ofServer(out chan<- prometheus.Metric, s *State) {
	build.count(out, 1, s.Version)
	loading.flag(out, s.Loading)
	isReady.flag(out, m.s.source.Ready() == nil)
	forTraffic.flag(out, m.s.source.ReadyForTraffic() == nil)
	clockOffset.send(out, float64(s.Clock.Difference)/1000)
	for _, state := range []string{"synced", "slewing", "waiting"} {
		clockState.flag(out, s.Clock.State == state, state)
	}
}

var (
	httpOpen    = gauge("http_connections", "Connections to the HTTP port.")
	httpBusy    = gauge("http_requests", "HTTP requests that are answered, without health checks.")
	httpRefused = counter("http_connections_refused_total", "Connections refused because of --http-max-clients.")
	httpCut     = counter("http_connections_cut_total",
		"Connections closed before their request had arrived, to make place for new ones.")
	httpStreams = gauge("http_event_streams", "Open event streams: one for each open page.")
	httpCutOff  = counter(
		"http_event_streams_cut_off_total",
		"Event streams closed because the reader was too slow or left.",
	)
	httpLogins = counter("http_failed_logins_total", "HTTP requests with wrong credentials.")
)

func (m metrics) ofHTTP(out chan<- prometheus.Metric) {
	n := m.s.Connections()
	httpOpen.count(out, n.Open)
	httpBusy.count(out, n.Busy)
	httpRefused.count(out, n.Refused)
	httpCut.count(out, n.Cut)
	httpStreams.count(out, m.s.streams.Load())
	httpCutOff.count(out, m.s.cutOff.Load())
	httpLogins.count(out, m.s.failedLogins.Load())
}
