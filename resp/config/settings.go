package config

import (
	"cmp"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"rlserver/engine"
)

// Defaults are what a server starts with.
type Defaults struct {
	Port           int
	Bind           []string
	UnixSocket     string
	UnixSocketPerm string // octal; empty: as the umask has it
	Databases      int
	Password       string // empty: none is asked for
	ProtectedMode  bool
	MaxClients     int
	MostClients    int           // that the system has room for: more are refused to CONFIG SET maxclients; 0: any number
	Reserved       int           // places of MaxClients that clients of other machines do not get, and as many beyond for the Unix socket
	PreauthTimeout time.Duration // whole seconds that a client may take to authenticate; 0: any time
	Timeout        time.Duration // whole seconds; 0: clients may be idle for ever
	Keepalive      time.Duration // whole seconds between TCP keepalives; 0: none
	MaxMemory      int64         // bytes that the process may take; 0: any number
	ClientMemory   MemoryShare   // that all clients may hold; 0: any amount
	PreauthMemory  int64         // bytes that all clients may hold that have not authenticated; 0: 4 MB
	OutputLimits   string        // changes to client-output-buffer-limit, as ParseOutputLimits takes them
	MemoryPolicy   string        // of engine.EvictionPolicies: which keys go to make room; empty: the first
	LogLevel       string        // debug, verbose, notice or warning; empty: notice
	MaxKey         int64         // bytes that a limiter's key may have; 0: 64 KB
	DebugCommand   string        // who may use DEBUG: no, local or yes; empty: no

	// For a server with a Store.
	AppendOnly        bool       // whether it logs every change
	Dir               string     // where its files are
	AppendFsync       string     // as in StoreSettings; empty: everysec
	RewritePercentage int        // as in StoreSettings
	RewriteMinSize    int64      // likewise
	Save              SavePoints // likewise
	OnDiskFailure     string     // likewise; empty: refuse
}

// Settings are a server's configuration: what it started with, and what can be changed while it runs. Any goroutine may use them.
// CONFIG reads and writes them through the table in parameter.go.
type Settings struct {
	Start Defaults

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

	// Up to which sizes Redis packs collections: OBJECT ENCODING goes by them. Nothing else does.
	hashEntries, hashValue atomic.Int64
	zsetEntries, zsetValue atomic.Int64

	maxMemory     atomic.Int64 // bytes
	clientsShare  atomic.Int64 // a MemoryShare
	PreauthMemory atomic.Int64 // bytes
	memoryPolicy  atomic.Int64 // an engine.EvictionPolicy
	MemorySamples atomic.Int64

	Stored            bool         // whether the server has a Store: what that does is told and taken only then
	appendFsync       atomic.Int64 // of fsyncPolicies
	rewritePercentage atomic.Int64
	rewriteMinSize    atomic.Int64 // bytes
	save              atomic.Pointer[SavePoints]
	onDiskFailure     atomic.Int64 // of failurePolicies

	Paused atomic.Bool // whether DEBUG SET-ACTIVE-EXPIRE 0 has stopped the sweeper
}

// NewSettings returns the settings of a server that starts with d.
func NewSettings(d Defaults) *Settings {
	s := &Settings{Start: d, Limits: NewConnectionLimits()}
	s.password.Store(&d.Password)
	s.timeout.Store(int64(d.Timeout / time.Second))
	s.preauth.Store(int64(d.PreauthTimeout / time.Second))
	s.ReservedClients.Store(int64(d.Reserved))
	s.keepalive.Store(int64(d.Keepalive / time.Second))
	s.MaxClients.Store(int64(d.MaxClients))
	if d.ProtectedMode {
		s.ProtectedMode.Store(1)
	}
	s.MaxKey.Store(cmp.Or(d.MaxKey, defaultMaxKey))
	s.logLevel.Set(logLevels.value(d.LogLevel))
	s.maxMemory.Store(d.MaxMemory)
	s.clientsShare.Store(int64(d.ClientMemory))
	s.PreauthMemory.Store(cmp.Or(d.PreauthMemory, defaultPreauthMemory))
	if limits, err := defaultOutputLimits().with(d.OutputLimits); err == nil {
		s.Limits.Output.Store(limits)
	}
	s.memoryPolicy.Store(position(engine.EvictionPolicies, d.MemoryPolicy))
	s.MemorySamples.Store(engine.DefaultSamples)
	s.hashEntries.Store(engine.DefaultPacking.HashEntries)
	s.hashValue.Store(engine.DefaultPacking.HashValue)
	s.zsetEntries.Store(engine.DefaultPacking.ZSetEntries)
	s.zsetValue.Store(engine.DefaultPacking.ZSetValue)
	s.appendFsync.Store(position(fsyncPolicies, d.AppendFsync))
	s.rewritePercentage.Store(int64(d.RewritePercentage))
	s.rewriteMinSize.Store(d.RewriteMinSize)
	s.save.Store(&d.Save)
	s.onDiskFailure.Store(position(failurePolicies, d.OnDiskFailure))
	return s
}

// What appendfsync and on-disk-failure may be, the default first.
var (
	fsyncPolicies   = []string{"everysec", "always", "no"}
	failurePolicies = []string{"refuse", "continue"}
)

// position is where a word stands in a list; that of the first if it does not.
func position(list []string, word string) int64 { return int64(max(0, slices.Index(list, word))) }

// Store is what a Store is to go by now.
func (s *Settings) Store() StoreSettings {
	return StoreSettings{
		AppendFsync: fsyncPolicies[s.appendFsync.Load()], RewritePercentage: s.rewritePercentage.Load(), RewriteMinSize: s.rewriteMinSize.Load(),
		Save: *s.save.Load(), OnDiskFailure: failurePolicies[s.onDiskFailure.Load()],
	}
}

// packing is what OBJECT ENCODING goes by.
func (s *Settings) Packing() engine.Packing {
	return engine.Packing{
		HashEntries: s.hashEntries.Load(), HashValue: s.hashValue.Load(), ZSetEntries: s.zsetEntries.Load(), ZSetValue: s.zsetValue.Load(),
	}
}

// Password is what AUTH asks for; empty: nothing.
func (s *Settings) Password() string { return *s.password.Load() }

// Timeout is how long a client may be idle; 0: for ever.
func (s *Settings) Timeout() time.Duration { return time.Duration(s.timeout.Load()) * time.Second }

// PreauthTimeout is how long a client may take to authenticate; 0: any time, as there is no password, or it may.
func (s *Settings) PreauthTimeout() time.Duration {
	if s.Password() == "" {
		return 0
	}
	return time.Duration(s.preauth.Load()) * time.Second
}

// MaxMemory is how many bytes the process may take; 0: any number.
func (s *Settings) MaxMemory() int64 { return s.maxMemory.Load() }

func (s *Settings) Policy() engine.EvictionPolicy {
	return engine.EvictionPolicy(s.memoryPolicy.Load())
}

// LogLevel is for the logger, which follows it when it changes.
func (s *Settings) LogLevel() slog.Leveler { return &s.logLevel }

// ActiveExpiry tells whether keys are to be deleted when their time has come although nobody asks for them.
func (s *Settings) ActiveExpiry() bool { return !s.Paused.Load() }

// keepAlive says how the system probes a connection that is silent, in the proportions that Redis uses.
func (s *Settings) KeepAlive() net.KeepAliveConfig {
	every := time.Duration(s.keepalive.Load()) * time.Second
	return net.KeepAliveConfig{Enable: every > 0, Idle: every, Interval: max(every/3, time.Second), Count: 3}
}

// levels are Redis' names for how much is logged, with slog's for the same.
type levels []struct {
	name  string
	level slog.Level
}

// logLevels begins with what logs most. Redis' verbose is what slog calls debug and a bit.
var logLevels = levels{
	{"debug", slog.LevelDebug}, {"verbose", slog.LevelDebug + 2}, {"notice", slog.LevelInfo}, {"warning", slog.LevelWarn},
}

func (l levels) value(name string) slog.Level {
	for _, known := range l {
		if known.name == name {
			return known.level
		}
	}
	return slog.LevelInfo
}

func (l levels) name(level slog.Level) string {
	for _, known := range l {
		if known.level == level {
			return known.name
		}
	}
	return level.String()
}
