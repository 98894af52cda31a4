package group

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// logger passes what raft logs to the server's log, as debugging: it repeats each failed attempt to
// reach a node. What operators need to know is logged by Group.
type logger struct {
	to     *slog.Logger
	name   string
	args   []any
	logged func(message string)
}

var levels = map[hclog.Level]slog.Level{
	hclog.Trace: slog.LevelDebug - 4, hclog.Debug: slog.LevelDebug - 4, hclog.Info: slog.LevelDebug,
	hclog.Warn: slog.LevelDebug, hclog.Error: slog.LevelDebug,
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	l.logged(msg)
	l.to.Log(context.Background(), levels[level], "raft: "+msg, append(args, l.args...)...)
}

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) enabled(level hclog.Level) bool {
	return l.to.Enabled(context.Background(), levels[level])
}

func (l *logger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *logger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *logger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *logger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *logger) IsError() bool { return l.enabled(hclog.Error) }

func (l *logger) ImpliedArgs() []any { return l.args }
func (l *logger) With(args ...any) hclog.Logger {
	return &logger{l.to, l.name, append(append([]any(nil), l.args...), args...), l.logged}
}
func (l *logger) Name() string                        { return l.name }
func (l *logger) Named(name string) hclog.Logger      { return &logger{l.to, name, l.args, l.logged} }
func (l *logger) ResetNamed(name string) hclog.Logger { return l.Named(name) }
func (l *logger) SetLevel(hclog.Level)                {}
func (l *logger) GetLevel() hclog.Level               { return hclog.Debug }

func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}
func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
