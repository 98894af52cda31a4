package config

import (
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/internal/acl"
	"rlserver/internal/listen"
	"rlserver/internal/logins"
	"rlserver/internal/storage"
)

// Defaults are values that take the place of those of the table, by the names of the parameters.
type Defaults map[string]string

// Start are the settings that are fixed at the start.
type Start struct {
	UnixSocket     string
	UnixSocketPerm string // octal; empty: the umask decides
	Databases      int
	// the maximum that the system supports, and that CONFIG SET maxclients accepts; 0: no limit
	MaxPossibleClients int
	DebugCommand       string   // whether DEBUG is allowed: no, local or yes; empty: no
	LogFormat          string   // text or json; empty: text
	PasswordFile       string   // its first line is the password; empty: none
	ACLFile            string   // empty: none
	UserLines          []string // users that are not in the ACL file: the name and rules of each
	Policies           string   // file of named limits; empty: none
	HTTP               HTTP
	Cluster            Cluster
	AppendOnly         bool   // whether the store logs every change
	Dir                string // directory of its files
}

// HTTP are the settings of the HTTP port.
type HTTP struct {
	Port       int      // 0: none
	Bind       []string // addresses
	TLS        string   // whether to speak TLS if there is a certificate: yes or no; empty: yes
	TokenFile  string   // whose first line is a bearer token; empty: none
	MaxClients int      // connections with requests other than health checks
	MaxStreams int      // of MaxClients, those that are event streams
	Health     int      // more connections, for those that wait for a request and for health checks
	Debug      string   // whether profiles are served: no or yes; empty: no
}

// Cluster is what a node of a cluster starts with.
type Cluster struct {
	Enabled      string // yes or no; empty: no
	Node         string // name; empty: the host's
	Port         int    // 0: the port for clients plus 10000
	SecretFile   string // whose first line is the secret of the nodes; empty: none
	Join         []string
	Expect       int
	Groups       int    // as given; 0: 6, or what the cluster has
	Timeout      int    // ms
	Hold         int    // ms; 0: twice Timeout
	Recover      string // yes or no; empty: no
	AnnounceHost string
	AnnouncePort int
	// AnnounceTLSPort is the port at which clients with TLS reach this node; 0: that of --tls-port
	AnnounceTLSPort int
	ProxyPort       int // 0: none
	ProxyLinks      int // connections to each other node for calls that are passed on
}

// Settings are a server's configuration: the values of the start, and the current values of those
// that can change. Any goroutine may use them. CONFIG reads and writes them through Parameters.
type Settings struct {
	Start Start
	File  string // the configuration file, as an absolute path; empty: none

	// ClusterGroups returns the number of groups of the cluster, 0 while it is not known. nil: no
	// cluster
	ClusterGroups func() int

	rewriting sync.Mutex
	kept      map[string]string // by name, the value of each parameter at the next start
	written   map[string]bool   // by name, the parameters that Rewrite has written

	Users  *acl.Users   // nil until the values of the start are parsed
	Access acl.Settings // of access control
	Logins logins.Settings

	ports           atomic.Pointer[listen.Ports]
	tls             atomic.Pointer[TLSFiles]
	password        atomic.Pointer[string]
	timeout         atomic.Int64 // seconds
	preauth         atomic.Int64 // seconds
	keepalive       atomic.Int64 // seconds
	MaxClients      atomic.Int64
	ReservedClients atomic.Int64
	ProtectedMode   atomic.Int64 // 0 or 1
	logLevel        slog.LevelVar
	Limits          *ConnectionLimits
	MaxKey          atomic.Int64 // bytes

	// Sizes up to which Redis packs collections. Only OBJECT ENCODING uses them.
	hashEntries, hashValue atomic.Int64
	zsetEntries, zsetValue atomic.Int64
	setInts                atomic.Int64

	maxMemory     atomic.Int64 // bytes
	clientsShare  atomic.Int64 // a MemoryShare
	PreauthMemory atomic.Int64 // bytes
	memoryPolicy  atomic.Int64 // an eviction.Policy
	MemorySamples atomic.Int64

	MaxReservations  atomic.Int64 // open ones of a key
	MaxOverrides     atomic.Int64 // of all policies
	SettledRetention atomic.Int64 // ms

	Stored            bool         // whether the server has a Store, so that its parameters apply
	appendFsync       atomic.Int64 // index in fsyncPolicies
	rewritePercentage atomic.Int64
	rewriteMinSize    atomic.Int64 // bytes
	save              atomic.Pointer[SavePoints]
	onDiskFailure     atomic.Int64 // index in failurePolicies

	PubSub       PubSubLimits
	Tracking     TrackingLimits
	NotifyEvents atomic.Uint32 // a change.Class: the keyspace events that are published

	// Scripts.
	ScriptTime     atomic.Int64 // ms until calls on the keys of a script are refused; 0: never
	ScriptMemory   atomic.Int64 // bytes that a script may hold
	ScriptsMemory  atomic.Int64 // and all running scripts together
	ScriptCache    atomic.Int64 // bytes of all compiled scripts
	ScriptsTakeAll atomic.Int64 // 0 or 1: scripts hold all keys

	// The slow log and latencies.
	SlowlogSlowerThan  atomic.Int64 // µs; below 0: there is no slow log
	SlowlogMaxLen      atomic.Int64
	LatencyThreshold   atomic.Int64 // ms; 0: no events are recorded
	LatencyTracking    atomic.Int64 // 0 or 1
	latencyPercentiles atomic.Pointer[[]float64]

	Paused atomic.Bool // whether DEBUG SET-ACTIVE-EXPIRE 0 has stopped the sweeper
}

// NewSettings returns the settings of a server that starts with the values of the table, apart from
// some others. It panics if one of these is invalid: GivenValues.Start returns errors instead.
func NewSettings(others Defaults) *Settings {
	given := make(GivenValues)
	for name, value := range others {
		if Lookup(name) == nil {
			panic("no parameter " + name)
		}
		given[name] = Given{Value: value, As: name}
	}
	s, err := given.Start()
	if err != nil {
		panic(err)
	}
	return s
}

// empty returns settings that have no values yet.
func empty() *Settings {
	s := &Settings{Stored: true, Limits: NewConnectionLimits()}
	s.tls.Store(new(TLSFiles))
	s.ports.Store(new(listen.Ports))
	s.password.Store(new(string))
	s.Access.Init()
	s.Logins.Init()
	return s
}

// Values of appendfsync and on-disk-failure, the default first.
var (
	fsyncPolicies   = []string{"everysec", "always", "no"}
	failurePolicies = []string{"refuse", "continue"}
)

// Store returns the current settings of the store.
func (s *Settings) Store() storage.Settings {
	return storage.Settings{
		Sync:          storage.SyncModes[fsyncPolicies[s.appendFsync.Load()]],
		Continue:      s.OnDiskFailure() == "continue",
		GrowthPercent: s.rewritePercentage.Load(),
		GrowthMin:     s.rewriteMinSize.Load(),
		Save:          *s.save.Load(),
	}
}

// OnDiskFailure returns what happens to changes when the disk fails: refuse or continue.
func (s *Settings) OnDiskFailure() string { return failurePolicies[s.onDiskFailure.Load()] }

// Packing returns the sizes that OBJECT ENCODING uses.
func (s *Settings) Packing() object.Packing {
	return object.Packing{
		HashEntries: s.hashEntries.Load(), HashValue: s.hashValue.Load(),
		ZSetEntries: s.zsetEntries.Load(), ZSetValue: s.zsetValue.Load(),
		SetInts: s.setInts.Load(),
	}
}

// SetPassword sets requirepass, the password of the default user.
func (s *Settings) SetPassword(password string) {
	s.password.Store(&password)
	if s.Users != nil {
		s.Users.SetDefaultPassword(password)
	}
}

// LimitClients limits how many clients may be connected to what the system supports.
func (s *Settings) LimitClients(most int) {
	s.Start.MaxPossibleClients = most
	s.MaxClients.Store(min(s.MaxClients.Load(), int64(most)))
}

// Password returns the value of requirepass, for CONFIG REWRITE. Logins are checked by Users.
func (s *Settings) Password() string { return *s.password.Load() }

// Timeout returns how long a client may be idle; 0: no limit.
func (s *Settings) Timeout() time.Duration { return time.Duration(s.timeout.Load()) * time.Second }

// PreauthTimeout returns how long a client may take to authenticate; 0: no limit, or no login is
// needed.
func (s *Settings) PreauthTimeout() time.Duration {
	if !s.Users.Default().User().NeedsLogin() {
		return 0
	}
	return time.Duration(s.preauth.Load()) * time.Second
}

// MaxMemory returns how many bytes the process may take; 0: no limit.
func (s *Settings) MaxMemory() int64 { return s.maxMemory.Load() }

// Policy returns the eviction policy of maxmemory.
func (s *Settings) Policy() eviction.Policy {
	return eviction.Policy(s.memoryPolicy.Load())
}

// LogLevel returns the level of the logger. It changes with the setting.
func (s *Settings) LogLevel() slog.Leveler { return &s.logLevel }

// ActiveExpiry reports whether expired keys are deleted in the background.
func (s *Settings) ActiveExpiry() bool { return !s.Paused.Load() }

// KeepAlive returns the TCP keepalive of connections, with the proportions of Redis.
func (s *Settings) KeepAlive() net.KeepAliveConfig {
	every := time.Duration(s.keepalive.Load()) * time.Second
	return net.KeepAliveConfig{Enable: every > 0, Idle: every, Interval: max(every/3, time.Second), Count: 3}
}

// levels maps Redis' names of log levels to those of slog.
type levels []struct {
	name  string
	level slog.Level
}

// logLevels begins with the most verbose. Redis' verbose is between slog's debug and info.
var logLevels = levels{
	{"debug", slog.LevelDebug}, {"verbose", slog.LevelDebug + 2}, {"notice", slog.LevelInfo},
	{"warning", slog.LevelWarn},
}

func (l levels) name(level slog.Level) string {
	for _, known := range l {
		if known.level == level {
			return known.name
		}
	}
	return level.String()
}

// ConnectionLimits are the limits of connections that CONFIG SET can change. All connections share
// one value.
type ConnectionLimits struct {
	MaxBulk  atomic.Int64                 // bytes in one bulk string: proto-max-bulk-len
	MaxQuery atomic.Int64                 // bytes in one command as sent: client-query-buffer-limit
	Clients  atomic.Int64                 // bytes that all clients hold; math.MaxInt64: no limit
	Output   atomic.Pointer[outputLimits] // by ClientClass; replaced as a whole
}

// NewConnectionLimits returns the default limits.
func NewConnectionLimits() *ConnectionLimits {
	l := new(ConnectionLimits)
	l.MaxBulk.Store(512 << 20)
	l.MaxQuery.Store(DefaultMaxQuery)
	l.Clients.Store(math.MaxInt64)
	l.Output.Store(defaultOutputLimits())
	return l
}

// Limits on the input of a client.
const (
	DefaultMaxQuery = 1 << 30 // bytes in one command
	MinQuery        = 1 << 20 // minimum of client-query-buffer-limit
)

const largestMaxKey = 512 << 20 // bytes of a limiter's key

// PubSubLimits bound what clients can subscribe to.
type PubSubLimits struct {
	PerClient atomic.Int64 // subscriptions of one client
	All       atomic.Int64 // subscriptions of all clients
	Patterns  atomic.Int64 // different patterns: each message is compared with all of them
	Changes   atomic.Int64 // to keys of a group, by no call, that wait for the log
	NodeQueue atomic.Int64 // bytes of messages that wait for one other node of a cluster
}

// TrackingLimits bound what clients may track.
type TrackingLimits struct {
	Keys              atomic.Int64 // that all clients together have read; 0: any number
	PrefixesPerClient atomic.Int64
	Prefixes          atomic.Int64 // different ones of all clients
}
