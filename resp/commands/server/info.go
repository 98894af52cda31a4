package server

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/pubsub"
)

func init() {
	command.Register("server",
		&command.Command{Name: "info", Arity: -1, Flags: command.Loading | command.Stale | command.Stepwise,
			Categories: "dangerous", Run: info},
		&command.Command{Name: "time", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
			Run: serverTime},
	)
}

// section is a section of INFO. Its fields have the names of Redis if Redis has the same figure.
// Unknown values are left out.
type section struct {
	name  string
	write func(*report)
	keys  bool // shows keys or policies
	extra bool // not shown by default
}

var sections = []section{
	{name: "Server", write: writeServer},
	{name: "Clients", write: writeClients},
	{name: "Memory", write: writeMemory},
	{name: "Persistence", write: writePersistence},
	{name: "Stats", write: writeStats},
	{name: "Ratelimit", write: writeRatelimit, keys: true},
	{name: "Replication", write: writeReplication},
	{name: "CPU", write: writeCPU},
	{name: "Commandstats", write: writeCommandStats, extra: true},
	{name: "Errorstats", write: writeErrorStats},
	{name: "Latencystats", write: writeLatencyStats, extra: true},
	{name: "Cluster", write: writeCluster},
	{name: "Keyspace", write: writeKeyspace, keys: true},
}

func info(c *command.Call) error {
	wanted := make(map[string]bool)
	usual, all := !c.Args.More(), false
	for c.Args.More() {
		name := strings.ToLower(string(c.Args.Next()))
		wanted[name] = true
		usual = usual || name == "default"
		all = all || name == "all" || name == "everything"
	}
	c.Conn.FlushStats()

	r := report{env: c.Env, tx: c.Tx, figures: c.Env.Server.Figures()}
	keys := false
	for _, s := range sections {
		if all || usual && !s.extra || wanted[strings.ToLower(s.name)] {
			if r.Len() > 0 {
				r.WriteString("\r\n")
			}
			r.WriteString("# " + s.name + "\r\n")
			s.write(&r)
			keys = keys || s.keys
		}
	}

	// while the disk fails, INFO does not wait for the journal
	if keys && c.Env.Refusal() == "" {
		c.Tx.SeeAll()
	}

	c.Reply.Verbatim(r.String())
	return nil
}

// report builds the text of INFO.
type report struct {
	strings.Builder
	env     *command.Env
	tx      *engine.Tx // within EXEC it holds all locks
	figures command.Figures
}

// zero writes fields of features that this server lacks, as monitoring programs expect them: their
// true value is 0.
func (r *report) zero(names ...string) {
	for _, name := range names {
		r.field(name, 0)
	}
}

func (r *report) field(name string, value any) { fmt.Fprintf(r, "%s:%v\r\n", name, value) }

// bytes writes an amount of memory twice, for programs and for humans.
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

func writeServer(r *report) {
	now, up, ports := r.env.Clock(), r.figures.Uptime, r.env.Settings.Ports()
	r.field("redis_version", command.RedisVersion) // the version whose commands this server has
	r.field("server_name", "rlserver")
	r.field("rlserver_version", r.env.Version)
	r.field("redis_mode", r.env.Mode)
	r.field("os", runtime.GOOS+" "+runtime.GOARCH)
	r.field("arch_bits", bits.UintSize)
	r.field("go_version", runtime.Version())
	r.field("process_id", os.Getpid())
	r.field("run_id", r.env.RunID)
	r.field("tcp_port", cmp.Or(ports.Port, ports.TLSPort))
	r.field("http_port", r.env.Settings.Start.HTTP.Port)
	if r.figures.CertificateExpiry != 0 {
		r.field("tls_port", ports.TLSPort)
		r.field("tls_cert_expires", r.figures.CertificateExpiry)
	}
	r.field("server_time_usec", now*1000)
	difference := r.env.Time.Status()
	r.field("clock_difference_ms", difference.Difference)
	r.field("clock_state", difference.State)
	r.field("clock_state_ends_in_sec", int64(difference.Left/time.Second))
	r.field("uptime_in_seconds", int64(up/time.Second))
	r.field("uptime_in_days", int64(up/(24*time.Hour)))
	r.field("config_file", r.env.Settings.File)
	r.zero("io_threads_active")
}

func writeClients(r *report) {
	r.field("connected_clients", r.figures.Clients)
	r.field("maxclients", r.env.Settings.MaxClients.Load())
	r.field("reserved_clients", r.env.Settings.ReservedClients.Load())
	if r.env.HTTP != nil {
		h := r.env.HTTP()
		r.field("http_connections", h.Open)
		r.field("http_requests", h.Busy)
		r.field("http_connections_refused", h.Refused)
		r.field("http_connections_cut", h.Cut)
	}
	r.field("client_recent_max_input_buffer", r.figures.LargestInput)
	r.field("client_recent_max_output_buffer", r.figures.LargestOutput)
	r.field("blocked_clients", r.figures.WaitingCalls+r.figures.PausedCalls)
	r.field("monitor_clients", r.figures.Monitors)
	r.field("tracking_clients", r.figures.Tracking.Clients)
	r.field("clients_in_timeout_table", r.figures.TimedCalls)
	r.zero("cluster_connections")
}

func writeMemory(r *report) {
	r.bytes("used_memory", r.figures.Memory)
	if rss, ok := residentMemory(); ok {
		r.bytes("used_memory_rss", rss)
		used := max(1, r.figures.Memory)
		r.field("mem_fragmentation_ratio", ratio(rss, used))
		r.field("mem_fragmentation_bytes", rss-used)
	}
	writeAllocator(r)
	clients := r.figures.ClientMemory
	r.field("used_memory_dataset", r.env.Engine.Memory().Weight())
	r.field("used_memory_overhead", max(0, r.figures.Overhead+clients))
	// memory that the Go runtime has from the system
	r.field("mem_reserved", command.RuntimeBytes("/memory/classes/total:bytes"))
	r.bytes("maxmemory", r.env.Settings.MaxMemory())
	r.field("maxmemory_policy", r.env.Settings.Policy())
	r.field("maxmemory_clients", r.env.Settings.ClientsLimitShown())
	r.field("mem_not_counted_for_evict", clients)
	r.field("mem_clients_slaves", 0)
	r.field("mem_clients_normal", clients)
	r.field("mem_clients_preauth", r.figures.UnauthenticatedMemory)
	r.field("mem_allocator", runtime.Version())
	scripts, bytes, dropped := 0, int64(0), int64(0)
	for _, e := range r.env.Engine.Memory().Engines() {
		n, b, d := e.Scripts.Size()
		scripts, bytes, dropped = scripts+n, bytes+b, dropped+d
	}
	changed := r.env.Engine.Memory().Overrides()
	r.field("used_memory_scripts", bytes)
	r.field("number_of_cached_scripts", scripts)
	r.field("evicted_scripts", dropped)
	r.field("used_memory_overrides", changed.Bytes)
	r.field("number_of_overrides", changed.N)
	r.field("max_overrides", r.env.Settings.MaxOverrides.Load())
	held := r.env.Engine.Memory().Reserved()
	r.field("used_memory_reservations", held.Bytes)
	r.field("number_of_reservations", held.N)
	r.field("max_reservations", r.env.Settings.MaxReservations.Load())
	r.field("settled_retention_ms", r.env.Settings.SettledRetention.Load())
	r.field("used_memory_vm_eval", r.env.Scripts.Memory())
	r.field("lua_memory_total", r.env.Settings.ScriptsMemory.Load())
	r.field("scripts_ended_for_memory", r.env.Scripts.Refused())
	r.zero("used_memory_lua", "active_defrag_running", "lazyfree_pending_objects")
}

// residentMemory returns the resident set size of the process in bytes. ok is false without a Linux
// /proc.
func residentMemory() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize()), err == nil
}

func writeStats(r *report) {
	f, keys := &r.figures, r.env.Engine.Memory().Stats()
	r.field("total_connections_received", f.Received)
	r.field("total_commands_processed", f.Calls)
	r.field("instantaneous_ops_per_sec", int64(f.CallRate))
	r.field("total_net_input_bytes", f.BytesIn)
	r.field("total_net_output_bytes", f.BytesOut)
	r.field("instantaneous_input_kbps", fmt.Sprintf("%.2f", f.InRate/1024))
	r.field("instantaneous_output_kbps", fmt.Sprintf("%.2f", f.OutRate/1024))
	r.field("rejected_connections", f.Rejected)
	r.field("login_refusals", f.RefusedLogins)
	r.field("login_addresses", f.LoginSources)
	r.field("preauth_timeouts", f.LoginTimeouts)
	r.field("tls_handshake_failures", f.HandshakeFailures)
	for _, reason := range []struct {
		suffix  string
		verdict acl.Verdict
	}{{"auth", acl.DeniedAuth}, {"cmd", acl.DeniedCommand}, {"key", acl.DeniedKey}, {"channel", acl.DeniedChannel}} {
		r.field("acl_access_denied_"+reason.suffix, r.env.AccessLog.Count(reason.verdict))
	}
	users, size := r.env.Users.Size()
	r.field("acl_users", users)
	r.field("acl_users_memory", size)
	r.field("expired_keys", keys.Expired)
	r.field("evicted_keys", keys.Evicted)
	r.field("total_bans", keys.Bans)
	r.field("evicted_clients", f.EvictedClients)
	r.field("client_output_buffer_limit_disconnections", f.OutputLimit)
	r.field("maxmemory_refused_calls", f.OutOfMemory)
	r.field("keyspace_hits", keys.Hits)
	r.field("keyspace_misses", keys.Misses)
	r.field("total_error_replies", f.Errors)
	channels, tracked := r.env.Channels, &r.figures.Tracking
	r.field("pubsub_channels", channels.Count(pubsub.Channels))
	r.field("pubsub_patterns", channels.Count(pubsub.Patterns))
	r.field("pubsubshard_channels", channels.Count(pubsub.Shards))
	r.field("pubsub_subscriptions", channels.Total())
	if channels.Relay != nil {
		r.field("pubsub_node_queues", channels.Relay.Queued())
		r.field("pubsub_node_dropped", channels.Relay.Dropped.Load())
		r.field("tracking_links", tracked.Nodes)
	}
	r.field("notify_dropped", r.figures.Unnotified)
	r.field("tracking_total_keys", tracked.Keys)
	r.field("tracking_total_items", tracked.Items)
	r.field("tracking_total_prefixes", tracked.Prefixes)
	r.field("tracking_total_key_bytes", tracked.Bytes)
	r.field("tracking_forgotten_keys", tracked.Forgotten)
	r.zero("sync_full", "sync_partial_ok", "sync_partial_err",
		"latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
		"active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
		"unexpected_error_replies",
		"dump_payload_sanitizations", "io_threaded_reads_processed", "io_threaded_writes_processed")
}

func writeReplication(r *report) {
	nodes := r.env.Cluster.Overview()
	r.field("role", "master") // in a cluster each node leads some groups, or may soon
	r.field("connected_slaves", nodes.Others())
	r.field("master_failover_state", "no-failover")
	r.zero("master_repl_offset")
	r.field("second_repl_offset", -1) // as in Redis: there was no other primary
	r.zero("repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen")
	if r.env.InCluster() {
		nodes.WriteReplication(r.field)
	}
}

func writeCPU(r *report) {
	for _, of := range []struct {
		who    int
		suffix string
	}{{syscall.RUSAGE_SELF, ""}, {syscall.RUSAGE_CHILDREN, "_children"}} {
		var u syscall.Rusage
		if syscall.Getrusage(of.who, &u) == nil {
			r.field("used_cpu_sys"+of.suffix, fmt.Sprintf("%.6f", time.Duration(u.Stime.Nano()).Seconds()))
			r.field("used_cpu_user"+of.suffix, fmt.Sprintf("%.6f", time.Duration(u.Utime.Nano()).Seconds()))
		}
	}
}

// ratio formats a/b with two decimals, as Redis does.
func ratio(a, b int64) string { return fmt.Sprintf("%.2f", float64(a)/float64(max(1, b))) }

func writeCluster(r *report) {
	if !r.env.InCluster() {
		r.zero("cluster_enabled")
		return
	}
	r.field("cluster_enabled", 1)
	r.env.Cluster.Overview().WriteCluster(r.field)
}

// writeKeyspace writes how many keys each database has and how many of them have a deadline: in a
// cluster, those of the groups that this node leads.
func writeKeyspace(r *report) {
	for db := range r.env.Engine.Databases() {
		keys, expires := 0, 0
		for _, k := range r.env.Server.Keyspaces() {
			n, withDeadline := countOf(k.Engine, r.env.Engine, r.tx, db)
			keys, expires = keys+n, expires+withDeadline
		}
		if keys > 0 {
			r.field(fmt.Sprint("db", db), fmt.Sprintf("keys=%d,expires=%d", keys, expires))
		}
	}
}

// writeRatelimit writes how many calls were admitted and denied since the start or CONFIG
// RESETSTAT: in total, by command, and by policy. Calls with a cost of 0 and commands without a
// decision are left out. A call that is admitted although policies in SHADOW mode denied it counts
// as admitted, and in decisions_shadow_denied.
func writeRatelimit(r *report) {
	var all stats.DecisionCounts
	lines := make(map[string]string)
	for _, c := range command.Table {
		counts := r.env.Stats.Command(c.Index)
		if counts == nil || counts.Decisions == (stats.DecisionCounts{}) {
			continue
		}
		d := counts.Decisions
		all = all.Plus(d)
		lines[strings.ReplaceAll(c.Name, ".", "_")] = fmt.Sprintf("admitted=%d,denied=%d", d.Admitted+d.ShadowDenied,
			d.Denied)
	}
	r.field("decisions_admitted", all.Admitted+all.ShadowDenied)
	r.field("decisions_denied", all.Denied)
	r.field("decisions_shadow_denied", all.ShadowDenied)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		r.field(name, lines[name])
	}
	writePolicies(r)
}

// writePolicies writes, for each policy, whether it is in SHADOW mode, and how many calls it has
// admitted and denied on this node.
func writePolicies(r *report) {
	for _, p := range r.env.Engine.Policies() {
		d := p.Decisions()
		// a colon ends the name of a field, and names of policies have no percent signs
		r.field("policy_"+strings.ReplaceAll(p.Name(), ":", "%3A"), fmt.Sprintf("shadow=%d,admitted=%d,denied=%d",
			boolDigit(p.Shadow()), d.Admitted, d.Denied+d.ShadowDenied))
	}
}

// serverTime handles TIME, by the clock of the limiters. All calls of an EXEC or a script are told
// the time at which they decide, and no two clients the same: scripts name members after it.
func serverTime(c *command.Call) error {
	var now int64
	switch {
	case c.Moment == nil:
		now = c.Env.Time.Unique(c.Env.Time.Micros())
	case *c.Moment == 0:
		*c.Moment = c.Env.Time.Unique(c.Tx.Now() * 1000)
		fallthrough
	default:
		now = *c.Moment
	}
	c.Reply.Array(2)
	c.Reply.BulkInteger(now / 1_000_000)
	c.Reply.BulkInteger(now % 1_000_000)
	return nil
}
