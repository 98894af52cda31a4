package resp

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"time"

	"rlserver/acl"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/stats"
)

func init() {
	command.Register(
		&command.Command{
			Name:       "info",
			Arity:      -1,
			Flags:      command.Loading | command.Stale | command.Stepwise,
			Group:      "server",
			Since:      "1.0.0",
			Complexity: "O(1)",
			Categories: "dangerous",
			Tips:       "nondeterministic_output request_policy:all_shards response_policy:special",
			Syntax:     "[section [section ...]]",
			Summary:    "Get information and statistics about the server",
			Run:        info,
		},
	)
}

// section is a part of INFO. Its fields have the names of Redis where Redis has the same figure.
// Fields that are not known are left out.
type section struct {
	name  string
	write func(*Server, *report)
	keys  bool // it shows keys or policies
	extra bool // it is not shown by default
}

var sections = []section{
	{name: "Server", write: (*Server).writeServer},
	{name: "Clients", write: (*Server).writeClients},
	{name: "Memory", write: (*Server).writeMemory},
	{name: "Persistence", write: (*Server).writePersistence},
	{name: "Stats", write: (*Server).writeStats},
	{name: "Ratelimit", write: (*Server).writeRatelimit, keys: true},
	{name: "Replication", write: (*Server).writeReplication},
	{name: "CPU", write: (*Server).writeCPU},
	{name: "Commandstats", write: (*Server).writeCommandStats, extra: true},
	{name: "Errorstats", write: (*Server).writeErrorStats},
	{name: "Latencystats", write: (*Server).writeLatencyStats, extra: true},
	{name: "Cluster", write: (*Server).writeCluster},
	{name: "Keyspace", write: (*Server).writeKeyspace, keys: true},
}

// info handles INFO [section [section ...]].
func info(c *command.Call) error {
	wanted := make(map[string]bool)
	usual, all := !c.Args.More(), false
	for c.Args.More() {
		name := strings.ToLower(string(c.Args.Next()))
		wanted[name] = true
		usual = usual || name == "default"
		all = all || name == "all" || name == "everything"
	}
	sessionOf(c).FlushStats()

	r := report{tx: c.Tx}
	keys := false
	for _, s := range sections {
		if all || usual && !s.extra || wanted[strings.ToLower(s.name)] {
			r.section(s.name)
			s.write(sessionOf(c).server, &r)
			keys = keys || s.keys
		}
	}

	// while the disk fails, INFO does not wait for it
	if keys && sessionOf(c).server.refusal() == "" {
		c.Tx.SeeAll()
	}

	c.Reply.Verbatim(r.String())
	return nil
}

// report builds the text of INFO.
type report struct {
	strings.Builder
	tx *engine.Tx // within EXEC it holds all locks
}

func (r *report) section(name string) {
	if r.Len() > 0 {
		r.WriteString("\r\n")
	}
	r.WriteString("# " + name + "\r\n")
}

// zero writes figures of features of Redis that this server does not have, as monitoring programs
// expect them: 0 is their true value.
func (r *report) zero(names ...string) {
	for _, name := range names {
		r.field(name, 0)
	}
}

func (r *report) field(name string, value any) { fmt.Fprintf(r, "%s:%v\r\n", name, value) }

// bytes writes an amount of memory twice, for programs and for people.
func (r *report) bytes(name string, n int64) {
	r.field(name, n)
	r.field(name+"_human", humanBytes(n))
}

// humanBytes formats 1536 as 1.50K, like Redis.
func humanBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	power := min(int(math.Log2(float64(n))/10), 5)
	return fmt.Sprintf("%.2f%c", float64(n)/math.Pow(1024, float64(power)), "BKMGTP"[power])
}

func (s *Server) writeServer(r *report) {
	now, up := s.Clock(), time.Since(s.started)
	r.field("redis_version", redisVersion) // whose commands this server has
	r.field("server_name", "rlserver")
	r.field("rlserver_version", s.version)
	r.field("redis_mode", "standalone")
	r.field("os", runtime.GOOS+" "+runtime.GOARCH)
	r.field("arch_bits", bits.UintSize)
	r.field("go_version", runtime.Version())
	r.field("process_id", os.Getpid())
	r.field("run_id", s.runID)
	r.field("tcp_port", cmp.Or(s.Settings.Start.Port, s.Settings.Start.TLSPort))
	r.field("http_port", s.Settings.Start.HTTP.Port)
	if s.certificates != nil {
		r.field("tls_port", s.Settings.Start.TLSPort)
		r.field("tls_cert_expires", s.certificateExpiry())
	}
	r.field("server_time_usec", now*1000)
	difference := s.Time.Status()
	r.field("clock_difference_ms", difference.Difference)
	r.field("clock_state", difference.State)
	r.field("clock_state_ends_in_sec", int64(difference.Left/time.Second))
	r.field("uptime_in_seconds", int64(up/time.Second))
	r.field("uptime_in_days", int64(up/(24*time.Hour)))
	r.field("config_file", s.Settings.File)
	r.zero("io_threads_active")
}

func (s *Server) writeClients(r *report) {
	r.field("connected_clients", s.clients())
	r.field("maxclients", s.Settings.MaxClients.Load())
	r.field("reserved_clients", s.Settings.ReservedClients.Load())
	r.field("client_recent_max_input_buffer", s.memory.LargestInput.Value())
	r.field("client_recent_max_output_buffer", s.memory.LargestOutput.Value())
	r.field("blocked_clients", s.queues.Waiting.Load()+s.held.Load())
	r.field("monitor_clients", s.monitoring())
	r.field("tracking_clients", len(s.findClients(clientFilter{tracking: true})))
	r.field("clients_in_timeout_table", s.queues.Timed.Load())
	r.zero("cluster_connections")
}

func (s *Server) writeMemory(r *report) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	r.bytes("used_memory", s.usedMemory())
	if rss, ok := residentMemory(); ok {
		r.bytes("used_memory_rss", rss)
		used := max(1, s.usedMemory())
		r.field("mem_fragmentation_ratio", ratio(rss, used))
		r.field("mem_fragmentation_bytes", rss-used)
	}
	s.writeAllocator(r)
	clients := s.clientMemory()
	r.field("used_memory_dataset", s.Engine.Weight())
	r.field("used_memory_overhead", max(0, s.overhead.Load()+clients))
	r.field("mem_reserved", sample[0].Value.Uint64()) // what the Go runtime has from the system
	r.bytes("maxmemory", s.Settings.MaxMemory())
	r.field("maxmemory_policy", s.Settings.Policy())
	r.field("maxmemory_clients", s.Settings.ClientsLimitShown())
	r.field("mem_not_counted_for_evict", clients)
	r.field("mem_clients_slaves", 0)
	r.field("mem_clients_normal", clients)
	r.field("mem_clients_preauth", s.memory.Unauthenticated.Bytes.Load())
	r.field("mem_allocator", runtime.Version())
	r.zero("used_memory_lua", "used_memory_scripts", "number_of_cached_scripts", "active_defrag_running",
		"lazyfree_pending_objects")
}

// residentMemory is the resident set size of the process in bytes. ok is false where there is no
// Linux /proc.
func residentMemory() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize()), err == nil
}

func (s *Server) writeStats(r *report) {
	totals, keys := s.totals(), s.Engine.Stats()
	r.field("total_connections_received", totals.connections)
	r.field("total_commands_processed", totals.calls)
	r.field("instantaneous_ops_per_sec", int64(s.rates.calls.PerSecond()))
	r.field("total_net_input_bytes", totals.in)
	r.field("total_net_output_bytes", totals.out)
	r.field("instantaneous_input_kbps", fmt.Sprintf("%.2f", s.rates.in.PerSecond()/1024))
	r.field("instantaneous_output_kbps", fmt.Sprintf("%.2f", s.rates.out.PerSecond()/1024))
	r.field("rejected_connections", totals.rejected)
	r.field("preauth_timeouts", s.loginTimeouts.Load())
	r.field("tls_handshake_failures", s.handshakeFailures.Load())
	for _, reason := range []struct {
		suffix  string
		verdict acl.Verdict
	}{{"auth", acl.DeniedAuth}, {"cmd", acl.DeniedCommand}, {"key", acl.DeniedKey}, {"channel", acl.DeniedChannel}} {
		r.field("acl_access_denied_"+reason.suffix, s.AccessLog.Count(reason.verdict))
	}
	users, size := s.Users.Size()
	r.field("acl_users", users)
	r.field("acl_users_memory", size)
	r.field("expired_keys", keys.Expired)
	r.field("evicted_keys", keys.Evicted)
	r.field("evicted_clients", s.memory.Evicted.Load())
	r.field("client_output_buffer_limit_disconnections", s.memory.Unread.Load())
	r.field("maxmemory_refused_calls", s.oomRefusals.Load())
	r.field("keyspace_hits", keys.Hits)
	r.field("keyspace_misses", keys.Misses)
	r.field("total_error_replies", totals.errors)
	r.zero("sync_full", "sync_partial_ok", "sync_partial_err", "pubsub_channels", "pubsub_patterns",
		"latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
		"active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
		"tracking_total_keys", "tracking_total_items", "tracking_total_prefixes", "unexpected_error_replies",
		"dump_payload_sanitizations", "io_threaded_reads_processed", "io_threaded_writes_processed")
}

func (s *Server) writeReplication(r *report) {
	r.field("role", "master")
	r.field("connected_slaves", 0)
	r.field("master_failover_state", "no-failover")
	r.zero("master_repl_offset")
	r.field("second_repl_offset", -1) // as in Redis: there was no other primary
	r.zero("repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen")
}

func (s *Server) writeCPU(r *report) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		r.field("used_cpu_sys", fmt.Sprintf("%.6f", time.Duration(u.Stime.Nano()).Seconds()))
		r.field("used_cpu_user", fmt.Sprintf("%.6f", time.Duration(u.Utime.Nano()).Seconds()))
	}
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) == nil {
		r.field("used_cpu_sys_children", fmt.Sprintf("%.6f", time.Duration(u.Stime.Nano()).Seconds()))
		r.field("used_cpu_user_children", fmt.Sprintf("%.6f", time.Duration(u.Utime.Nano()).Seconds()))
	}
}

// ratio divides, with the decimals of Redis.
func ratio(a, b int64) string { return fmt.Sprintf("%.2f", float64(a)/float64(max(1, b))) }

func (s *Server) writeCluster(r *report) { r.field("cluster_enabled", 0) }

func (s *Server) writeKeyspace(r *report) {
	for db := range s.Engine.Databases() {
		if keys, expires := r.tx.Count(db); keys > 0 {
			r.field(fmt.Sprint("db", db), fmt.Sprintf("keys=%d,expires=%d", keys, expires))
		}
	}
}

// writeRatelimit writes how many calls were admitted and denied since the start or CONFIG
// RESETSTAT: in total, by command, and by policy. Calls that cost nothing and commands without a
// decision are left out. A call that is admitted although policies in SHADOW mode denied it counts
// as admitted, and in decisions_shadow_denied.
func (s *Server) writeRatelimit(r *report) {
	var all stats.DecisionCounts
	lines := make(map[string]string)
	for _, c := range command.Table {
		counts := s.Stats.Command(c.Index)
		if counts == nil || counts.Decisions == (stats.DecisionCounts{}) {
			continue
		}
		d := counts.Decisions
		all = all.Plus(d)
		lines[strings.ReplaceAll(c.Name, ".", "_")] = fmt.Sprintf(
			"admitted=%d,denied=%d",
			d.Admitted+d.ShadowDenied,
			d.Denied,
		)
	}
	r.field("decisions_admitted", all.Admitted+all.ShadowDenied)
	r.field("decisions_denied", all.Denied)
	r.field("decisions_shadow_denied", all.ShadowDenied)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		r.field(name, lines[name])
	}
	s.writePolicies(r)
}

// PoliciesChanged tries the waiting calls again with the current policies. Code that changes
// policies without a command calls it. No lock of the engine is held.
func (s *Server) PoliciesChanged() { s.queues.RetryAll() }

// writePolicies writes, for each policy, whether it is in SHADOW mode, and how many calls it has
// admitted and denied.
func (s *Server) writePolicies(r *report) {
	for _, p := range s.Engine.Policies() {
		d := p.Decisions()
		r.field("policy_"+p.Name(), fmt.Sprintf("shadow=%d,admitted=%d,denied=%d",
			boolDigit(p.Shadow()), d.Admitted, d.Denied+d.ShadowDenied))
	}
}

// Figures are what other packages show of the server: figures of INFO, by the same counters.
type Figures struct {
	Uptime            time.Duration
	Loading, Stopping bool
	Calls, Errors     int64

	Clients, WaitingCalls  int64
	Received, Rejected     int64 // connections
	BytesIn, BytesOut      int64
	FailedLogins           int64
	LoginTimeouts          int64
	HandshakeFailures      int64 // of TLS
	CertificateExpiry      int64 // Unix seconds; 0: there is no TLS
	EvictedClients         int64
	OutputLimit            int64 // clients closed because of client-output-buffer-limit
	ClientMemory, Overhead int64 // bytes
	OutOfMemory            int64 // calls refused with OOM
}

// certificateExpiry returns when the certificate of TLS expires, in Unix seconds; 0: there is none.
func (s *Server) certificateExpiry() int64 {
	if s.certificates == nil {
		return 0
	}
	return s.certificates.Expiry().Unix()
}

// Figures returns the figures of now. It takes no lock that a call holds for long.
func (s *Server) Figures() Figures {
	t := s.totals()
	s.mu.Lock()
	stopping := s.draining
	s.mu.Unlock()
	return Figures{
		Uptime: time.Since(s.started), Loading: s.loading.Load() != 0, Stopping: stopping,
		Calls: t.calls, Errors: t.errors,
		Clients: int64(s.clients()), WaitingCalls: s.queues.Waiting.Load(),
		Received: t.connections, Rejected: t.rejected, BytesIn: t.in, BytesOut: t.out,
		FailedLogins: s.AccessLog.Count(acl.DeniedAuth), LoginTimeouts: s.loginTimeouts.Load(),
		HandshakeFailures: s.handshakeFailures.Load(), CertificateExpiry: s.certificateExpiry(),
		EvictedClients: s.memory.Evicted.Load(), OutputLimit: s.memory.Unread.Load(),
		ClientMemory: s.clientMemory(), Overhead: s.overhead.Load(), OutOfMemory: s.oomRefusals.Load(),
	}
}
