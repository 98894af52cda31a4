package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"rlserver/internal/smallfile"
)

// state is what the next run needs to go on.
type state struct {
	From, To, Match string
	Replace         bool
	Source          string   // the processes of the source, and their slots
	Target          []string // the run_ids of the target's nodes
	Nodes           map[string]*progressOf
	Report          Report
}

// progressOf says how far the import of a node is.
type progressOf struct {
	Cursor uint64 // of SCAN
	Done   bool
	Again  [][]byte // keys that the target had no room for
}

const (
	maxAgain     = 1000      // keys of a node; the target is full if it has refused so many
	maxAgainKey  = 64 << 10  // bytes
	maxState     = 512 << 20 // bytes of the file
	saveInterval = time.Second
)

// again returns how many keys are to be tried again.
func (s *state) again() (keys int64) {
	for _, n := range s.Nodes {
		keys += int64(len(n.Again))
	}
	return keys
}

// sameImport reports an error if another import has written a state.
func (s *state) sameImport(old *state) error {
	if s.From == old.From && s.To == old.To && s.Match == old.Match && s.Replace == old.Replace {
		return nil
	}
	return fmt.Errorf("it is of another import, from %s to %s (match %q, replace %t): remove it, or give another file "+
		"with --state", old.From, old.To, old.Match, old.Replace)
}

// stateFile is a file with a state.
type stateFile struct {
	path   string
	text   []byte // that the file should have
	saved  time.Time
	behind bool // the file does not have it yet
}

// load returns the state in the file, or nil if there is no file.
func (f *stateFile) load() (*state, error) {
	text, err := smallfile.Read(f.path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s := new(state)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	return s, err
}

// put replaces the state, and writes it to the file from time to time.
func (f *stateFile) put(s *state) (err error) {
	if f.text, err = json.Marshal(s); err != nil {
		return err
	}
	if f.behind = true; time.Since(f.saved) < saveInterval {
		return nil
	}
	return f.flush()
}

// flush writes the state to the file.
func (f *stateFile) flush() error {
	if !f.behind {
		return nil
	}
	f.saved, f.behind = time.Now(), false
	if err := smallfile.Write(f.path, string(f.text)); err != nil {
		return fmt.Errorf("the state cannot be written: %w", err)
	}
	return nil
}

// remove removes the file.
func (f *stateFile) remove() error {
	f.behind = false
	if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
