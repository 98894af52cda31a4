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

// quiet is the level of what helps only who debugs raft itself.
const quiet = slog.LevelDebug - 4

func (l *logger) log(level slog.Level, msg string, args []any) {
	l.logged(msg)
	l.to.Log(context.Background(), level, "raft: "+msg, append(args, l.args...)...)
}

func (l *logger) Trace(msg string, args ...any) { l.log(quiet, msg, args) }
func (l *logger) Debug(msg string, args ...any) { l.log(quiet, msg, args) }
func (l *logger) Info(msg string, args ...any)  { l.log(slog.LevelDebug, msg, args) }
func (l *logger) Warn(msg string, args ...any)  { l.log(slog.LevelDebug, msg, args) }
func (l *logger) Error(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{l.Logger, l.to, slices.Concat(l.args, args), l.logged}
}
