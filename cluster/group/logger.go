package group

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// logger passes what raft logs to the server's log, as debugging: it repeats each failed attempt to
// reach a node. What operators need to know is logged by Group.
type logger struct {
	hclog.Logger // that logs nothing: for what raft does not call
	to           *slog.Logger
	args         []any
	logged       func(message string)
}

func newLogger(to *slog.Logger, logged func(message string)) *logger {
	return &logger{hclog.NewNullLogger(), to, nil, logged}
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

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{l.Logger, l.to, slices.Concat(l.args, args), l.logged}
}
