package config

import (
	"math"
	"strings"
	"sync/atomic"

	"rlserver/engine/eviction"
	"rlserver/internal/listen"
	"rlserver/internal/logins"
)

// Headings of --help.
const (
	groupListen        = "Listen"
	groupTLS           = "TLS"
	groupAccess        = "Access"
	groupHTTP          = "HTTP"
	groupService       = "Service"
	groupPersistence   = "Persistence"
	groupDiagnostics   = "Diagnostics"
	groupCluster       = "Cluster"
	groupCompatibility = "Compatibility"
)

// Parameters are all parameters, in the order in which CONFIG GET * and --help list them.
var Parameters = []Parameter{
	{Name: "bind", Group: groupListen, Form: "ADDR,...", Default: "127.0.0.1 -::1", Words: ManyWords,
		Help: `Addresses to listen on, separated by commas or, in quotes, by spaces. * means all IPv4 addresses
			of this machine, ::* all of IPv6. An address that begins with - is skipped if this machine does not have
			it. 127.0.0.1,-::1 by default.`,
		Value: bind()},
	{Name: "port", Group: groupListen, Form: "PORT", Default: "6379",
		Help:  "TCP port, 6379 by default. 0: none.",
		Value: port(func(p *listen.Ports) *int { return &p.Port })},
	{Name: "unixsocket", Group: groupListen, Form: "PATH",
		Help:  "Unix socket to listen on as well.",
		Value: fixedText(func(s *Settings) *string { return &s.Start.UnixSocket })},
	{Name: "unixsocketperm", Group: groupListen, Form: "MODE", Default: "0", Example: "770",
		Help:  "Permissions of the Unix socket, in octal, such as 770. By default, and with 0, the umask decides.",
		Value: socketMode()},
	{Name: "tcp-keepalive", Group: groupListen, Form: "SECONDS", Default: "300",
		Help: `How long a connection is silent before the system checks whether its peer is alive, 300 by default.
			0: never.`,
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.keepalive })},

	{Name: "tls-port", Group: groupTLS, Form: "PORT", Default: "0",
		Help: `TCP port for clients with TLS, in addition to --port or, with --port 0, instead of it. 0, the default:
			none. rlserver gen-cert generates certificates for tests.`,
		Value: port(func(p *listen.Ports) *int { return &p.TLSPort })},
	{Name: "tls-cert-file", Group: groupTLS, Form: "FILE",
		Help: `Certificate of the server, in PEM, followed by the intermediate ones. This and the other two files are
			read again when they change.`,
		Value: tlsText(func(t *TLSFiles) *string { return &t.Cert }, nil)},
	{Name: "tls-key-file", Group: groupTLS, Form: "FILE",
		Help:  "Private key of the certificate, in PEM, without a passphrase. Only its owner should have access to it.",
		Value: tlsText(func(t *TLSFiles) *string { return &t.Key }, nil)},
	{Name: "tls-ca-cert-file", Group: groupTLS, Form: "FILE",
		Help:  "Certificates of the CAs that sign those of the clients, in PEM.",
		Value: tlsText(func(t *TLSFiles) *string { return &t.CA }, nil)},
	{Name: "tls-auth-clients", Group: groupTLS, Form: "yes|no|optional", Default: "yes",
		Help: `Whether clients must present a certificate (yes, the default), may (optional), or are not asked for
			one (no).`,
		Value: clientAuth()},
	{Name: "tls-protocols", Group: groupTLS, Form: "'VERSION ...'", Example: "'TLSv1.2 TLSv1.3'",
		Help:  "Versions of TLS to use: 'TLSv1.2 TLSv1.3', the default, or one of them.",
		Value: tlsText(func(t *TLSFiles) *string { return &t.Protocols }, checkProtocols)},

	{Name: "requirepass", Group: groupAccess, Form: "PASSWORD", Secret: true,
		Help: `Password of the default user, which clients must give with AUTH, unless --user or --aclfile defines this
			user. Others on this machine can see it in the list of processes; --requirepass-file, the configuration
			file and the environment avoid that.`,
		InCluster: "in a cluster, ACL SETUSER default changes the password on all nodes",
		Value:     password()},
	{Name: "requirepass-file", Group: groupAccess, Form: "FILE",
		Help:  "Regular file of at most 64 KB whose first line is the password.",
		Value: fixedText(func(s *Settings) *string { return &s.Start.PasswordFile })},
	{Name: "aclfile", Group: groupAccess, Form: "FILE",
		Help: `File of users and their rules, one line 'user NAME RULES' each, in the notation of Redis. It is read
			at the start and by ACL LOAD; ACL SAVE writes it.`,
		Value: fixedText(func(s *Settings) *string { return &s.Start.ACLFile })},
	{Name: "user", Group: groupAccess, Form: "'NAME RULES'", Words: ManyLines, Secret: true, StartOnly: true,
		Help: `A user and its rules, such as 'ann on #HASH ~login:* +@ratelimit'. The flag can be repeated. Not
			together with --aclfile.`,
		Value: users()},
	{Name: "acl-pubsub-default", Group: groupAccess, Form: "RULE", Default: "resetchannels",
		Help: `Whether new users may access all channels (allchannels) or none (resetchannels). resetchannels by
			default.`,
		Value: choice(channelDefaults, func(s *Settings) *atomic.Int64 { return &s.Access.AllChannels })},
	{Name: "acl-max-users", Group: groupAccess, Form: "N", Default: "10000",
		Help:  "How many users there may be, 10000 by default.",
		Value: integer(1, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.Access.MaxUsers })},
	{Name: "acl-max-user-size", Group: groupAccess, Form: "SIZE", Default: "64kb", Example: "64kb",
		Help:  "How much memory the name, the passwords and the rules of a user may take, 64kb by default.",
		Value: memory(1<<10, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.Access.MaxUserSize })},
	{Name: "acllog-max-len", Group: groupAccess, Form: "N", Default: "128",
		Help:  "How many denied calls and failed logins ACL LOG keeps, 128 by default.",
		Value: integer(0, MaxAccessLogLength, func(s *Settings) *atomic.Int64 { return &s.Access.LogLength })},
	{Name: "login-failures", Group: groupAccess, Form: "N", Default: "30",
		Help: `How many logins of one address (of IPv6, one /64 network) may fail per minute, 30 by default. Above that
			its logins are refused, without a check of the password, until it has waited. 0: no limit.`,
		Value: integer(0, logins.Most, func(s *Settings) *atomic.Int64 { return &s.Logins.PerAddress })},
	{Name: "login-failures-total", Group: groupAccess, Form: "N", Default: "600",
		Help: `How many logins of all addresses together may fail per minute, 600 by default. Above that only addresses
			that have logged in before, and those that have not failed in the last hour, can log in. 0: no limit.`,
		Value: integer(0, logins.Most, func(s *Settings) *atomic.Int64 { return &s.Logins.Total })},
	{Name: "login-failures-addresses", Group: groupAccess, Form: "N", Default: "16384",
		Help: `How many addresses with failed logins, and how many with a login, are remembered: 16384 of each by
			default, at about 300 bytes. Further ones with failures share those of their network, a /16 of IPv4 or
			a /32 of IPv6.`,
		Value: integer(1, logins.Most, func(s *Settings) *atomic.Int64 { return &s.Logins.Addresses })},
	{Name: "login-failures-exempt", Group: groupAccess, Form: "NETWORK,...", Words: ManyWords,
		Help: `Addresses and networks such as 10.0.0.0/8, separated by commas or, in quotes, by spaces, whose failed
			logins are not limited: those of proxies through which many clients connect. None by default.`,
		Value: networks(func(s *Settings) *logins.Settings { return &s.Logins })},
	{Name: "preauth-timeout", Group: groupAccess, Form: "SECONDS", Default: "10",
		Help:  "How long a new client may take to give the password, 10 by default. 0: no limit.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.preauth })},
	{Name: "protected-mode", Group: groupAccess, Form: "yes|no", Default: "yes",
		Help: `Whether clients on other machines are refused while there is no password, unless they present a
			certificate that the server checks (see --tls-auth-clients). yes by default.`,
		Value: boolean(func(s *Settings) *atomic.Int64 { return &s.ProtectedMode })},
	{Name: "enable-debug-command", Group: groupAccess, Form: "no|local|yes", Default: "local",
		Help: `Clients that may use DEBUG: none (no), those on this machine (local), or all (yes). local by
			default.`,
		Value: fixedChoice([]string{"no", "local", "yes"}, func(s *Settings) *string { return &s.Start.DebugCommand })},

	{Name: "http-port", Group: groupHTTP, Form: "PORT", Default: "0",
		Help: `TCP port of the metrics for Prometheus (/metrics), of health checks (/healthz and /readyz), and of a page
			that shows the server (/). It asks for a user and a password if clients need one. 0, the default: none.`,
		Value: fixedInteger(0, math.MaxUint16, func(s *Settings) *int { return &s.Start.HTTP.Port })},
	{Name: "http-bind", Group: groupHTTP, Form: "ADDR,...", Default: "127.0.0.1 -::1", Words: ManyWords,
		Help:  "Addresses to listen on for --http-port, written as for --bind. 127.0.0.1,-::1 by default.",
		Value: addresses(func(s *Settings) *[]string { return &s.Start.HTTP.Bind })},
	{Name: "http-tls", Group: groupHTTP, Form: "yes|no", Default: "yes",
		Help: `Whether --http-port speaks TLS, with the same certificates, if --tls-cert-file is set. yes by default.
			Where --tls-auth-clients is yes, a client may log in instead of presenting a certificate.`,
		Value: fixedChoice([]string{"yes", "no"}, func(s *Settings) *string { return &s.Start.HTTP.TLS })},
	{Name: "http-token-file", Group: groupHTTP, Form: "FILE",
		Help: `Regular file whose first line is a token of at least 16 characters that HTTP clients may give instead
			of a user and a password, as Prometheus does (authorization: credentials_file).`,
		Value: fixedText(func(s *Settings) *string { return &s.Start.HTTP.TokenFile })},
	{Name: "http-max-clients", Group: groupHTTP, Form: "N", Default: "128",
		Help:  "How many connections of the HTTP port may have a request at once, 128 by default.",
		Value: fixedInteger(2, 10_000, func(s *Settings) *int { return &s.Start.HTTP.MaxClients })},
	{Name: "http-health-clients", Group: groupHTTP, Form: "N", Default: "32",
		Help: `How many more connections the HTTP port may have, for health checks and for clients that have not sent
			a request yet, 32 by default. If all have not, a new one replaces the one that has waited longest.`,
		Value: fixedInteger(1, 10_000, func(s *Settings) *int { return &s.Start.HTTP.Health })},
	{Name: "http-max-streams", Group: groupHTTP, Form: "N", Default: "32",
		Help:  "How many of these may be pages that are open, 32 by default.",
		Value: fixedInteger(1, 9_999, func(s *Settings) *int { return &s.Start.HTTP.MaxStreams })},
	{Name: "debug-http", Group: groupHTTP, Form: "yes|no", Default: "no",
		Help: `Whether the HTTP port serves the profiles of the Go runtime at /debug/pprof, no by default. Profiles
			show what is in memory, and take time to make.`,
		Value: fixedChoice([]string{"no", "yes"}, func(s *Settings) *string { return &s.Start.HTTP.Debug })},

	{Name: "databases", Group: groupService, Form: "N", Default: "16",
		Help:  "How many databases SELECT can choose from, 16 by default.",
		Value: fixedInteger(1, 1<<16, func(s *Settings) *int { return &s.Start.Databases })},
	{Name: "maxclients", Group: groupService, Form: "N", Default: "10000",
		Help:  "How many clients may be connected at once, 10000 by default.",
		Value: clients()},
	{Name: "reserved-clients", Group: groupService, Form: "N", Default: "8",
		Help: `How many of the --maxclients connections are kept free for clients on this machine, at most half of
			them, and how many more the Unix socket accepts. 8 by default.`,
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.ReservedClients })},
	{Name: "timeout", Group: groupService, Form: "SECONDS", Default: "0",
		Help:  "How long a client may be idle before its connection is closed. 0, the default: no limit.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.timeout })},
	{Name: "loglevel", Group: groupService, Form: "LEVEL", Default: "notice",
		Help:  "How much is logged, to standard error: debug, verbose, notice or warning (warn). notice by default.",
		Value: logLevel()},
	{Name: "log-format", Group: groupService, Form: "text|json", Default: "text",
		Help:  "Form of the lines of the log: key=value (text) or one JSON object each (json). text by default.",
		Value: fixedChoice([]string{"text", "json"}, func(s *Settings) *string { return &s.Start.LogFormat })},
	{Name: "policies", Group: groupService, Form: "FILE",
		Help: `YAML file of named limits for RL.CHECK: a regular file of at most 16 MB. It is read at the start,
			after SIGHUP and by RL.POLICY RELOAD.`,
		Value: fixedText(func(s *Settings) *string { return &s.Start.Policies })},
	{Name: "proto-max-bulk-len", Group: groupService, Form: "SIZE", Default: "512mb", Example: "512mb",
		Help:  "How long one argument of a command may be, 512mb by default.",
		Value: memory(1<<20, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.Limits.MaxBulk })},
	{Name: "proto-max-key-len", Group: groupService, Form: "SIZE", Default: "64kb", Example: "64kb",
		Help:  "How long the key of a limiter may be, 64kb by default. Other keys may be as long as in Redis.",
		Value: memory(1, largestMaxKey, func(s *Settings) *atomic.Int64 { return &s.MaxKey })},
	{Name: "client-query-buffer-limit", Group: groupService, Form: "SIZE", Default: "1gb", Example: "1gb",
		Help:  "How long one command may be as a client sends it, 1gb by default.",
		Value: memory(MinQuery, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.Limits.MaxQuery })},

	{Name: "maxmemory", Group: groupService, Form: "SIZE", Default: "0", Example: "256mb",
		Help: `How much memory the server may use before keys are evicted, such as 256mb. Its own 4 MB or so are
			included. The process stays below one and a half times that. 0, the default: no limit.`,
		Value: memory(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.maxMemory })},
	{Name: "maxmemory-clients", Group: groupService, Form: "SIZE|PERCENT", Default: "20%", Example: "64mb or 20%",
		Help: `How much memory all clients together may use, for unread replies, incomplete commands and
			transactions, in addition to maxmemory. Beyond it the client that uses most is closed; no key is evicted
			for it. Such as 64mb, or a percentage of maxmemory or, without maxmemory, of the machine's memory. 20%
			by default. 0: no limit.`,
		Value: memoryShare()},
	{Name: "preauth-memory", Group: groupService, Form: "SIZE", Default: "4mb", Example: "4mb",
		Help: `How much of that the clients that have not given the password may use together, 4mb by
			default.`,
		Value: memory(64<<10, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.PreauthMemory })},
	{Name: "client-output-buffer-limit", Group: groupService, Form: "'CLASS HARD SOFT SECONDS'", Words: 4,
		Example: "'normal 64mb 16mb 60'",
		Help: `How many bytes of replies a client may leave unread: it is closed beyond HARD, or beyond SOFT for
			SECONDS. 'normal 64mb 16mb 60' by default. The classes are normal, replica and pubsub; 0: no limit.`,
		Value: outputBufferLimits()},
	{Name: "maxmemory-policy", Group: groupService, Form: "POLICY", Default: "ratelimit",
		Help: `Which keys are evicted: ` + strings.Join(eviction.Policies, ", ") + `. ratelimit, the default,
			evicts first the limiters whose loss changes least, and never one that denies calls.`,
		Value: choice(eviction.Policies, func(s *Settings) *atomic.Int64 { return &s.memoryPolicy })},
	{Name: "maxmemory-samples", Group: groupService, Form: "N", Default: "5",
		Help:  "How many keys an eviction chooses from, 5 by default.",
		Value: integer(1, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.MemorySamples })},
	{Name: "max-reservations", Group: groupService, Form: "N", Default: "100000",
		Help: `How many open reservations (HOLD) a key may have, 100000 by default. Further ones are refused until some
			are settled or lapse. As many calls at most are remembered that were settled or have lapsed.`,
		Value: integer(1, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.MaxReservations })},
	{Name: "max-overrides", Group: groupService, Form: "N", Default: "2000000",
		Help: `For how many ids policies may have other numbers (FOR), 2000000 by default: some 200 MB. Those that a file
			of policies has count, but are never refused.`,
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.MaxOverrides })},
	{Name: "settled-retention", Group: groupService, Form: "DURATION", Default: "10m", Example: "10m",
		Help: `For how long a call is remembered after it was settled or its reservation has lapsed, so that the same
			call again counts once: 10m by default.`,
		Value: duration(func(s *Settings) *atomic.Int64 { return &s.SettledRetention })},

	{Name: "pubsub-max-subscriptions-per-client", Group: groupService, Form: "N", Default: "100000",
		Help:  "How many channels, patterns and shard channels one client may subscribe to, 100000 by default.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.PubSub.PerClient })},
	{Name: "pubsub-max-subscriptions", Group: groupService, Form: "N", Default: "1000000",
		Help:  "How many subscriptions all clients together may have, 1000000 by default.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.PubSub.All })},
	{Name: "pubsub-max-patterns", Group: groupService, Form: "N", Default: "10000",
		Help: `How many different patterns may have subscribers, 10000 by default: each message is compared with
			all of them.`,
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.PubSub.Patterns })},
	{Name: "notify-keyspace-events", Group: groupService, Form: "FLAGS", Example: "KEA",
		Help: `Which changes to keys are messages: K to __keyspace@0__:KEY, E to __keyevent@0__:EVENT; of which
			kind: g (any type), $ (strings), l (lists), s (sets), h (hashes), z (sorted sets), x (expired), e
			(evicted), d (limiters), t (none), or A for all of these; n (new keys) and m (reads of missing ones). None
			by default.`,
		Value: eventClasses()},
	{Name: "notify-max-queued", Group: groupService, Form: "N", Default: "65536",
		Help: `How many keys that have expired or were evicted may wait for the log before messages tell of them, 65536
			by default. There are no messages of further ones, and clients with CLIENT TRACKING drop everything.`,
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.PubSub.Changes })},
	{Name: "tracking-table-max-keys", Group: groupService, Form: "N", Default: "1000000",
		Help: `How many keys are kept that clients with CLIENT TRACKING have read, 1000000 by default. When a further
			one is read, they are told that another one has changed. 0: any number.`,
		Value: integer(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.Tracking.Keys })},
	{Name: "tracking-max-prefixes-per-client", Group: groupService, Form: "N", Default: "1000",
		Help:  "How many prefixes one client may track with CLIENT TRACKING BCAST, 1000 by default.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.Tracking.PrefixesPerClient })},
	{Name: "tracking-max-prefixes", Group: groupService, Form: "N", Default: "10000",
		Help:  "How many different prefixes all clients together may track, 10000 by default.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.Tracking.Prefixes })},
	{Name: "pubsub-node-queue", Group: groupCluster, Form: "SIZE", Default: "16mb", Example: "16mb",
		Help: `How many bytes of messages may wait for each other node of a cluster, 16mb by default. Further ones
			do not reach its subscribers.`,
		Value: memory(64<<10, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.PubSub.NodeQueue })},

	{Name: "dir", Group: groupPersistence, Form: "DIR", Default: "./rlserver-data",
		Help:  "Directory of the log and the snapshots, created if it does not exist. ./rlserver-data by default.",
		Value: fixedText(func(s *Settings) *string { return &s.Start.Dir })},
	{Name: "appendonly", Group: groupPersistence, Form: "yes|no", Default: "yes",
		Help: `Whether every change is written to a log, from which the state is restored after a restart or a
			crash. yes by default.`,
		Value: appendOnly()},
	{Name: "appendfsync", Group: groupPersistence, Form: "WHEN", Default: "everysec",
		Help: `When the log is synced to the disk: before each call is answered (always), every second (everysec),
			or when the system does it (no). everysec by default.`,
		Value: choice(fsyncPolicies, func(s *Settings) *atomic.Int64 { return &s.appendFsync })},
	{Name: "auto-aof-rewrite-percentage", Group: groupPersistence, Form: "PERCENT", Default: "100",
		Help:  "A snapshot replaces the log when the log has grown by this much, 100 by default. 0: never.",
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.rewritePercentage })},
	{Name: "auto-aof-rewrite-min-size", Group: groupPersistence, Form: "SIZE", Default: "64mb", Example: "64mb",
		Help:  "How large the log must be for that, 64mb by default.",
		Value: memory(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.rewriteMinSize })},
	{Name: "save", Group: groupPersistence, Form: "'SECONDS CHANGES ...'", Words: 2, Example: "'3600 1 300 100'",
		Help: `Also take a snapshot after that many changes within that many seconds, such as '3600 1 300 100'.
			None by default. With --appendonly no it also makes an orderly stop take a snapshot.`,
		InCluster: "in a cluster, changes are in the logs of the groups, and snapshots are made as these grow: there " +
			"is nothing to set. BGSAVE makes snapshots now",
		Value: savePoints()},
	{Name: "on-disk-failure", Group: groupPersistence, Form: "refuse|continue", Default: "refuse",
		Help: `What happens when the log cannot be written: write commands are refused (refuse), or the
			server continues only in memory (continue). refuse by default.`,
		Value: choice(failurePolicies, func(s *Settings) *atomic.Int64 { return &s.onDiskFailure })},

	{Name: "lua-time-limit", Alias: "busy-reply-threshold", Group: groupService, Form: "MILLISECONDS", Default: "5000",
		Help: `After this time, other calls on the keys of a script get BUSY instead of waiting for it, and
			SCRIPT KILL can end it. 5000 (5 s) by default. 0: never.`,
		Value: integer(0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.ScriptTime })},
	{Name: "lua-memory-limit", Group: groupService, Form: "SIZE", Default: "64mb", Example: "64mb",
		Help: `How much memory the values of a script may take, 64mb by default. Its changes may take as much
			in the log. A script that needs more is ended with an error.`,
		Value: memory(1<<20, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.ScriptMemory })},
	{Name: "lua-memory-total", Group: groupService, Form: "SIZE", Default: "256mb", Example: "256mb",
		Help: `How much memory the values of all running scripts may take together, 256mb by default. A script
			that needs more is ended with an error. What they have dropped is freed a little later.`,
		Value: memory(1<<20, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.ScriptsMemory })},
	{Name: "lua-cache-limit", Group: groupService, Form: "SIZE", Default: "64mb", Example: "64mb",
		Help: `How much memory the scripts that EVALSHA can run may take, 64mb by default. Beyond it those that
			were not used for the longest time are dropped, those of SCRIPT LOAD last; EVALSHA then replies with
			NOSCRIPT.`,
		Value: memory(1<<20, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.ScriptCache })},
	{Name: "lua-undeclared-keys", Group: groupService, Form: "yes|no", Default: "no",
		Help: `Whether scripts may use keys that their call does not declare. Then each script waits for all
			others, and all other calls wait for it. no by default. It has no effect in a cluster.`,
		Value: boolean(func(s *Settings) *atomic.Int64 { return &s.ScriptsTakeAll })},

	{Name: "slowlog-log-slower-than", Group: groupDiagnostics, Form: "MICROSECONDS", Default: "10000",
		Help: `Calls that take at least this long are kept for SLOWLOG GET, 10000 (10 ms) by default. 0: all.
			-1: none.`,
		Value: integer(-1, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.SlowlogSlowerThan })},
	{Name: "slowlog-max-len", Group: groupDiagnostics, Form: "N", Default: "128",
		Help:  "How many calls SLOWLOG keeps, in 16 MB at most. 128 by default.",
		Value: integer(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.SlowlogMaxLen })},
	{Name: "latency-monitor-threshold", Group: groupDiagnostics, Form: "MILLISECONDS", Default: "0",
		Help:  "Calls and syncs that take at least this long are kept for LATENCY LATEST. 0, the default: none.",
		Value: integer(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.LatencyThreshold })},
	{Name: "latency-tracking", Group: groupDiagnostics, Form: "yes|no", Default: "yes",
		Help:  "Whether the latencies of each command are counted, for INFO latencystats and LATENCY HISTOGRAM.",
		Value: boolean(func(s *Settings) *atomic.Int64 { return &s.LatencyTracking })},
	{Name: "latency-tracking-info-percentiles", Group: groupDiagnostics, Form: "'PERCENT ...'", Words: ManyWords,
		Default: "50 99 99.9", Example: "'50 99 99.9'",
		Help:  "Percentiles that INFO latencystats shows, '50 99 99.9' by default.",
		Value: percentiles()},
	{Name: "cluster-enabled", Alias: "cluster", Group: groupCluster, Form: "yes|no", Default: "no",
		Help: `Whether this server is a node of a cluster, which distributes the keys among its nodes and keeps
			working if fewer than half of them fail. no by default.`,
		Value: fixedChoice([]string{"no", "yes"}, func(s *Settings) *string { return &s.Start.Cluster.Enabled })},
	{Name: "node-id", Group: groupCluster, Form: "NAME",
		Help:  "Name of this node, by default that of the host. It is unique in the cluster and never changes.",
		Value: fixedText(func(s *Settings) *string { return &s.Start.Cluster.Node })},
	{Name: "cluster-port", Group: groupCluster, Form: "PORT", Default: "0",
		Help:  "TCP port for the other nodes. 0: --port plus 10000, or --tls-port plus 10000 with --port 0.",
		Value: fixedInteger(0, math.MaxUint16, func(s *Settings) *int { return &s.Start.Cluster.Port })},
	{Name: "join", Group: groupCluster, Form: "HOST[:PORT],...", Words: ManyWords,
		Help: `Nodes of the cluster, with their --cluster-port if it differs from that of this node. The list may
			include this node, so that all nodes can have the same list.`,
		Value: addresses(func(s *Settings) *[]string { return &s.Start.Cluster.Join })},
	{Name: "bootstrap-expect", Group: groupCluster, Form: "N", Default: "3",
		Help: `How many nodes form a new cluster, once all of them have found each other: 3 by default. It has no
			effect on an existing cluster.`,
		Value: fixedInteger(1, 99, func(s *Settings) *int { return &s.Start.Cluster.Expect })},
	{Name: "cluster-groups", Group: groupCluster, Form: "N", Default: "0",
		Help: `Number of groups of slots in a new cluster: with more groups, more nodes can share the work. It
			cannot change later. 0, the default: 6, or the number in the existing cluster.`,
		Value: clusterGroups()},
	{Name: "cluster-timeout", Alias: "cluster-node-timeout", Group: groupCluster, Form: "MS", Default: "1000",
		Help: `How many milliseconds a group waits for a message of its leader before it elects another one, 1000
			by default.`,
		Value: fixedInteger(100, 60000, func(s *Settings) *int { return &s.Start.Cluster.Timeout })},
	{Name: "force-recover", Group: groupCluster, Form: "yes|no", Default: "no",
		Help: `After the permanent loss of a majority of the nodes: this node continues alone with its own data.
			Changes that it has not received are lost, and permits may be granted again: see docs/CLUSTER.md first.
			Use it once; it has no effect while there is a majority. no by default.`,
		Value: fixedChoice([]string{"no", "yes"}, func(s *Settings) *string { return &s.Start.Cluster.Recover })},
	{Name: "failover-hold", Group: groupCluster, Form: "MS", Default: "0",
		Help: `How many milliseconds calls wait for a leader before they get CLUSTERDOWN. 0: twice
			--cluster-timeout, which is the default.`,
		Value: fixedInteger(0, 600000, func(s *Settings) *int { return &s.Start.Cluster.Hold })},
	{Name: "cluster-secret-file", Group: groupCluster, Form: "FILE",
		Help: `File whose first line is a secret of at least 32 characters, the same on all nodes: nodes accept each
			other only if both know it. Without it and without TLS, any client that reaches --cluster-port can call
			commands as any user.`,
		Value: fixedText(func(s *Settings) *string { return &s.Start.Cluster.SecretFile })},
	{Name: "cluster-announce-host", Alias: "cluster-announce-hostname", Group: groupCluster, Form: "HOST",
		Help:  "Host at which clients reach this node. By default the one that other nodes have in --join.",
		Value: fixedText(func(s *Settings) *string { return &s.Start.Cluster.AnnounceHost })},
	{Name: "cluster-announce-port", Group: groupCluster, Form: "PORT", Default: "0",
		Help:  "Port at which clients reach this node. 0: --port, which is the default.",
		Value: fixedInteger(0, math.MaxUint16, func(s *Settings) *int { return &s.Start.Cluster.AnnouncePort })},
	{Name: "cluster-announce-tls-port", Group: groupCluster, Form: "PORT", Default: "0",
		Help:  "Port at which clients with TLS reach this node. 0: --tls-port, which is the default.",
		Value: fixedInteger(0, math.MaxUint16, func(s *Settings) *int { return &s.Start.Cluster.AnnounceTLSPort })},
	{Name: "proxy-port", Group: groupCluster, Form: "PORT", Default: "0",
		Help: `TCP port at which this node forwards calls to the nodes that lead their slots, for clients that do not
			support clusters. It listens on the addresses of --bind, with TLS if --port is 0. 0, the
			default: none.`,
		Value: fixedInteger(0, math.MaxUint16, func(s *Settings) *int { return &s.Start.Cluster.ProxyPort })},
	{Name: "proxy-max-links", Group: groupCluster, Form: "N", Default: "256",
		Help: `How many connections to each other node the calls of --proxy-port may use at once, 256 by default.
			Further calls wait for one. Calls that wait for a key, and WATCH, may keep as many more; above that they
			get an error.`,
		Value: fixedInteger(1, 100000, func(s *Settings) *int { return &s.Start.Cluster.ProxyLinks })},

	{Name: "hash-max-listpack-entries", Alias: "hash-max-ziplist-entries", Group: groupCompatibility, Form: "N",
		Default: "512", Help: "Maximum number of fields for which OBJECT ENCODING of a hash is listpack, 512 by " +
			"default.",
		Value: integer(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.hashEntries })},
	{Name: "hash-max-listpack-value", Alias: "hash-max-ziplist-value", Group: groupCompatibility, Form: "SIZE",
		Default: "64", Help: "Maximum length of its fields and values for that, 64 bytes by default.", Example: "64",
		Value: memory(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.hashValue })},
	{Name: "set-max-intset-entries", Group: groupCompatibility, Form: "N", Default: "512",
		Help:  "Maximum number of integers for which OBJECT ENCODING of a set is intset, 512 by default.",
		Value: integer(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.setInts })},
	{Name: "zset-max-listpack-entries", Alias: "zset-max-ziplist-entries", Group: groupCompatibility, Form: "N",
		Default: "128", Help: "Maximum number of members for which OBJECT ENCODING of a sorted set is listpack, 128 " +
			"by default.",
		Value: integer(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.zsetEntries })},
	{Name: "zset-max-listpack-value", Alias: "zset-max-ziplist-value", Group: groupCompatibility, Form: "SIZE",
		Default: "64", Help: "Maximum length of its members for that, 64 bytes by default.", Example: "64",
		Value: memory(0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.zsetValue })},

	absent("activedefrag", "no", "memory is not defragmented"),
	absent("replica-read-only", "yes", "there are no replicas"),
}
