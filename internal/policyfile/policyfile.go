package policyfile

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/smallfile"
)

// maxSize is the largest size of a file, in bytes. It is enough for about 260,000 policies.
const maxSize = 16 << 20

// Read reads a file of policies. The error contains the path and, if the content is wrong, the
// line.
func Read(path string) ([]*policy.Policy, error) {
	text, err := smallfile.Read(path, maxSize)
	if err != nil {
		return nil, err
	}
	list, err := parse(text)
	if at := (*lineError)(nil); errors.As(err, &at) {
		return nil, fmt.Errorf("%s:%d: %s", path, at.line, at.what)
	}
	return list, err
}

// Options configure a File. All are required.
type Options struct {
	Path string
	// Set sets policies. The error may be ErrElsewhere.
	Set     func([]*policy.Policy) (engine.PolicyChanges, error)
	Refusal func() string // why changes are refused now, or ""
	Log     *slog.Logger
}

// ErrElsewhere reports that another node of the cluster has to set policies.
var ErrElsewhere = errors.New("another node sets the policies")

// File is a file of policies that is loaded into a server. Its methods are safe for concurrent use.
type File struct {
	Options
	// held from reading to setting, so that an older version never replaces a newer one
	mu   sync.Mutex
	last []*policy.Policy // as read last
}

// New returns a File without reading it.
func New(o Options) *File { return &File{Options: o} }

// Reload reads the file again and sets all of its policies or, after an error, none.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, err := Read(f.Path)
	if why := f.Refusal(); err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		f.Log.Warn("no policy was changed", "error", err)
		return err
	}
	return f.set(list)
}

// Set sets policies that Read has returned. Policies with other names stay.
func (f *File) Set(list []*policy.Policy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.set(list)
}

// SetAgain sets the policies that were read last, after Options.Set has returned ErrElsewhere.
func (f *File) SetAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil {
		_ = f.set(f.last)
	}
}

func (f *File) set(list []*policy.Policy) error {
	f.last = list
	changes, err := f.Options.Set(list)
	switch err {
	case nil:
	case ErrElsewhere:
		f.Log.Info("policies read: they are set when this node leads the first slots of the cluster, until then "+
			"those of the node that does hold", "file", f.Path, "policies", len(list))
		return nil
	default:
		f.Log.Warn("the policies of the file are not set", "file", f.Path, "error", err)
		return err
	}
	f.Log.Info("policies set", "file", f.Path, "policies", len(list), "changed", shorten(changes.Names),
		"switched", shorten(changes.Switched), "dropped", changes.Dropped)
	return nil
}

// shorten returns a list of names for a log line: the first 20, and how many more there are.
func shorten(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
	}
	return strings.Join(names, " ")
}

// reloadInterval is the shortest time between two reloads by signals.
const reloadInterval = time.Second

// ReloadOn reloads the file after each signal until stop is called. Errors are logged.
func (f *File) ReloadOn(signals <-chan os.Signal) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		throttle(reloadInterval, signals, quit, func() { _ = f.Reload() })
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}

// throttle calls do for each signal, but at most once per interval: signals in between are
// combined.
func throttle(interval time.Duration, signals <-chan os.Signal, quit <-chan struct{}, do func()) {
	for {
		select {
		case <-quit:
			return
		case <-signals:
			do()
		}
		select {
		case <-quit:
			return
		case <-time.After(interval):
		}
	}
}
