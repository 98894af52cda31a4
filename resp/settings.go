package resp

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// Defaults are what a server starts with.
type Defaults struct {
	Port          int
	Bind          []string
	UnixSocket    string
	Databases     int
	Password      string // empty: none is asked for
	ProtectedMode bool
	MaxClients    int
	Timeout       time.Duration // 0: clients may be idle for ever
	LogLevel      string        // debug, verbose, notice or warning
}

// Settings are a server's configuration: what it started with, and what can be changed while it runs. Any goroutine may use them.
type Settings struct {
	start Defaults

	password      atomic.Pointer[string]
	timeout       atomic.Int64 // ns
	maxClients    atomic.Int64
	protectedMode atomic.Bool
	logLevel      slog.LevelVar
}

// NewSettings returns the settings of a server that starts with d.
func NewSettings(d Defaults) *Settings {
	s := &Settings{start: d}
	s.password.Store(&d.Password)
	s.timeout.Store(int64(d.Timeout))
	s.maxClients.Store(int64(d.MaxClients))
	s.protectedMode.Store(d.ProtectedMode)
	s.logLevel.Set(logLevels[d.LogLevel])
	return s
}

// logLevels are Redis' names for how much is logged. Its verbose is what slog calls info without a name of its own.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "verbose": slog.LevelDebug + 2, "notice": slog.LevelInfo, "warning": slog.LevelWarn,
}

// Password is what AUTH asks for; empty: nothing.
func (s *Settings) Password() string { return *s.password.Load() }

// Timeout is how long a client may be idle; 0: for ever.
func (s *Settings) Timeout() time.Duration { return time.Duration(s.timeout.Load()) }

// LogLevel is for the logger, which follows it when it changes.
func (s *Settings) LogLevel() slog.Leveler { return &s.logLevel }
