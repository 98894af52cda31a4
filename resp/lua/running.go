package lua

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Scripts are the scripts that run in a server: they share memory, and can be ended. It is safe for
// concurrent use.
type Scripts struct {
	memory atomic.Int64 // that the scripts may take until each is measured again, see watch.measure

	refused  atomic.Int64 // scripts that were ended for the memory that they needed
	stopping atomic.Bool

	// turn is held by a script that takes long, for TurnTime: all of them together use one
	// processor, and leave the others to other calls. Who has it waits for no other lock.
	turn sync.Mutex
	yielding
	// Compiling is held while a large script is compiled: that takes many times its length.
	Compiling sync.Mutex

	fresh      atomic.Int64 // bytes that scripts have built since garbage was collected
	collecting sync.Mutex
	cycles     uint64 // of the garbage collector, when fresh was 0

	mu    sync.Mutex
	busy  map[*Busy]struct{}
	ahead map[string]*ahead // by name
}

// NewScripts returns what the scripts of a server share.
func NewScripts() *Scripts {
	return &Scripts{busy: make(map[*Busy]struct{}), ahead: make(map[string]*ahead)}
}

// Memory returns how many bytes the running scripts may take, beside firstBytes for each.
func (s *Scripts) Memory() int64 { return s.memory.Load() }

// Refused returns how many scripts were ended for the memory that they needed.
func (s *Scripts) Refused() int64 { return s.refused.Load() }

// Stop makes scripts end that have changed nothing: the server stops.
func (s *Scripts) Stop() { s.stopping.Store(true) }

// Stopping reports whether Stop was called.
func (s *Scripts) Stopping() bool { return s.stopping.Load() }

// Entry is a compiled script with its name, text and flags.
type Entry struct {
	SHA, Text string
	Script    *Script
	Flags     Flags
}

// ahead is a script that transactions are about to run.
type ahead struct {
	entry *Entry
	err   error // why it does not compile
	uses  int   // Forget is called as often
}

// Keep keeps what a script is compiled to, or why it does not compile, until Forget.
func (s *Scripts) Keep(sha string, e *Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.ahead[sha]
	if a == nil {
		a = &ahead{entry: e, err: err}
		s.ahead[sha] = a
	}
	a.uses++
}

// Ahead returns what Keep keeps; done: there is such.
func (s *Scripts) Ahead(sha string) (e *Entry, err error, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.ahead[sha]; a != nil {
		return a.entry, a.err, true
	}
	return nil, nil, false
}

// Forget ends Keep for scripts.
func (s *Scripts) Forget(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sha := range list {
		if a := s.ahead[sha]; a.uses > 1 {
			a.uses--
		} else {
			delete(s.ahead, sha)
		}
	}
}

// Busy is a script that runs for longer than its limit.
type Busy struct {
	State *State
	Wrote bool // it has changed keys: it cannot be ended
}

// SetBusy adds a script that others may end from now on. Unset is called before its end.
func (s *Scripts) SetBusy(b *Busy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[b] = struct{}{}
}

// Unset removes a script, and reports whether it was ended before: if so, who did was told.
func (s *Scripts) Unset(b *Busy) (killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, b)
	return b.State.watch.killed.Load()
}

// Busy returns how many scripts run for too long.
func (s *Scripts) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.busy)
}

// Writes notes that a script changes keys from now on. It reports false if the script was ended
// before.
func (s *Scripts) Writes(b *Busy) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Wrote = true
	return !b.State.watch.killed.Load()
}

// Kill ends the scripts that run for too long and have changed nothing. It returns how many these
// are, and how many others run for too long.
func (s *Scripts) Kill() (killed, others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.busy {
		if b.Wrote {
			others++
			continue
		}
		b.State.watch.killed.Store(true)
		killed++
	}
	return killed, others
}

// yielding lets others run on one processor. The scheduler of Go asks the network for calls when no
// goroutine can run, or after 10 ms. One that calls Gosched can run, and a sleep ends after a ms at
// the earliest. So a script waits for a byte that it sends to itself.
type yielding struct {
	once     sync.Once
	from, to *os.File // nil: there is no pipe
}

func (y *yielding) yield() {
	if runtime.GOMAXPROCS(0) > 1 {
		return // another processor asks
	}
	y.once.Do(func() {
		if from, to, err := os.Pipe(); err == nil {
			y.from, y.to = from, to
		}
	})
	if y.from != nil {
		go y.to.Write([]byte{0})
		y.from.Read(make([]byte, 1))
	}
	runtime.Gosched() // calls that have arrived are served first
}

// Flags are the flags that a script declares in its first line, such as #!lua flags=no-writes.
type Flags uint8

// The flags of scripts.
const (
	NoWrites Flags = 1 << iota
	AllowOOM
	AllowStale
	NoCluster
	AllowCrossSlot
	Declared // the script has such a line
)

var flagsByName = map[string]Flags{
	"no-writes": NoWrites, "allow-oom": AllowOOM, "allow-stale": AllowStale, "no-cluster": NoCluster,
	"allow-cross-slot-keys": AllowCrossSlot,
}

// fault is an error in the words of Redis, which begin with a capital letter.
type fault string

func (f fault) Error() string { return string(f) }

// parseShebang returns the flags of a script, and those that are unknown.
func parseShebang(text string) (flags Flags, unknown []string, err error) {
	if !strings.HasPrefix(text, "#!") {
		return 0, nil, nil
	}
	line, _, found := strings.Cut(text, "\n")
	if !found {
		return 0, nil, fault("Invalid script shebang")
	}
	words := strings.Fields(line)
	if words[0] != "#!lua" {
		return 0, nil, fault("Unexpected engine in script shebang: " + words[0])
	}
	flags = Declared
	for _, word := range words[1:] {
		list, found := strings.CutPrefix(word, "flags=")
		if !found {
			return 0, nil, fault("Unknown lua shebang option: " + word)
		}
		for name := range strings.SplitSeq(list, ",") {
			if f, known := flagsByName[name]; known {
				flags |= f
			} else if name != "" {
				unknown = append(unknown, name)
			}
		}
	}
	return flags, unknown, nil
}

// DeclaredFlags returns the flags that the text of a script declares.
func DeclaredFlags(text string) (flags Flags, err error) {
	flags, _, err = parseShebang(text)
	return flags, err
}

// Read reads the flags of a script and compiles it. unknown are flags that have no effect.
func Read(sha, text string) (e *Entry, unknown []string, err error) {
	e = &Entry{SHA: sha, Text: text}
	if e.Flags, unknown, err = parseShebang(text); err != nil {
		return nil, nil, err
	}
	if e.Script, err = Compile(text); err != nil {
		return nil, nil, fault("Error compiling script (new function): " + err.Error())
	}
	return e, unknown, nil
}
