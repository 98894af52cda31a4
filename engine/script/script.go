// Package script keeps the scripts that EVALSHA can run. They belong to the state of an engine:
// they are in its log and in its snapshots, and its replicas have them too.
package script

import (
	"container/list"
	"sync"
	"sync/atomic"

	"rlserver/engine/effect"
)

// Script is a script. It is immutable, except for what it is compiled to.
type Script struct {
	SHA, Text string
	Loaded    bool         // by SCRIPT LOAD: others are dropped before it
	Compiled  atomic.Value // set by who runs it
}

// Limits bound the scripts of a Table. The latest one is kept in any case.
type Limits struct {
	Evaled int   // how many that were not loaded
	Bytes  int64 // of all, see Script.weight

	Paused func() bool // reports whether scripts must not be added; nil: they may
}

// Append is where the changes of a Table go, as engine.Journal.Append.
type Append func(now int64, effects []byte) (position uint64)

// Table has the scripts of an engine. If they exceed the limits, the one that was not used for the
// longest time is dropped. It is safe for concurrent use; the locks of shards may be held, and are
// taken before its own.
//
// Each change is a record of its own. The journal has it before anybody can see it, and has the
// changes in their order.
type Table struct {
	append Append // nil: there is no journal

	changing sync.Mutex // held before mu by what the journal gets
	mu       sync.Mutex
	bySHA    map[string]*list.Element // of *Script
	byText   map[string]*list.Element
	evaled   list.List // the latest used first
	loaded   list.List
	bytes    int64
	dropped  int64
	position uint64 // of the latest change
}

// NewTable returns an empty table.
func NewTable(a Append) *Table {
	t := &Table{append: a}
	t.clear()
	return t
}

// weight returns the bytes that a script takes: its text, and what it is compiled to.
func weight(text string) int64 { return 2<<10 + 12*int64(len(text)) }

// Find returns the script of a name in lower case, and counts that as a use; nil if there is none.
func (t *Table) Find(sha []byte) *Script {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.use(t.bySHA[string(sha)])
}

// FindText is Find by the text of the script.
func (t *Table) FindText(text []byte) *Script {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.use(t.byText[string(text)])
}

func (t *Table) use(at *list.Element) *Script {
	if at == nil {
		return nil
	}
	s := at.Value.(*Script)
	if in := t.listOf(s); in.Front() != at {
		in.MoveToFront(at)
	}
	return s
}

// Get is Find, but no use. It also returns the position of the latest change of the table.
func (t *Table) Get(sha string) (s *Script, position uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.bySHA[sha]; at != nil {
		s = at.Value.(*Script)
	}
	return s, t.position
}

// Add adds a script at now (Unix ms), and drops those that exceed the limits. It returns the script
// in the table, and the position of the change in the journal. One that is there and becomes loaded
// is replaced. It adds none if l.Paused says so: then it returns the one that is there, or nil.
func (t *Table) Add(now int64, sha, text string, loaded bool, l Limits) (added *Script, position uint64) {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.bySHA[sha]
	if (at == nil || loaded && !at.Value.(*Script).Loaded) && (l.Paused == nil || !l.Paused()) {
		s := &Script{SHA: sha, Text: text, Loaded: loaded}
		drops := t.excess(s, l)
		t.dropped += int64(len(drops))
		t.change(now, append(drops, s.effect()))
		at = t.bySHA[sha]
	}
	if at == nil {
		return nil, t.position
	}
	return at.Value.(*Script), t.position
}

// AwaitAdd returns when the calls of Add that may not yet have asked Limits.Paused have ended.
func (t *Table) AwaitAdd() {
	t.changing.Lock()
	//lint:ignore SA2001 the lock is only waited for
	t.changing.Unlock()
}

// Flush drops all scripts at now (Unix ms), and returns the position of the change.
func (t *Table) Flush(now int64) (position uint64) {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change(now, []effect.Effect{{Kind: effect.ScriptDelete}})
	return t.position
}

// change applies effects, and passes them to the journal.
func (t *Table) change(now int64, effects []effect.Effect) {
	for i := range effects {
		t.apply(&effects[i])
	}
	if t.append != nil {
		t.position = t.append(now, effect.AppendAll(nil, effects))
	}
}

// excess returns the effects that drop what exceeds the limits with another script.
func (t *Table) excess(s *Script, l Limits) (effects []effect.Effect) {
	most := l.Evaled
	if !s.Loaded {
		most--
	}
	bytes, evaled := t.bytes+weight(s.Text), t.evaled.Len()
	for _, in := range []*list.List{&t.evaled, &t.loaded} {
		for at := in.Back(); at != nil && (bytes > l.Bytes || evaled > most && in == &t.evaled); at = at.Prev() {
			old := at.Value.(*Script)
			bytes -= weight(old.Text)
			evaled--
			effects = append(effects, effect.Effect{Kind: effect.ScriptDelete, Key: effect.Key{Name: []byte(old.SHA)}})
		}
	}
	return effects
}

// effect returns the effect that adds a script.
func (s *Script) effect() effect.Effect {
	f := effect.Effect{Kind: effect.Script, Key: effect.Key{Name: []byte(s.SHA)}, Value: []byte(s.Text)}
	if s.Loaded {
		f.Lo = 1
	}
	return f
}

// Apply makes a change that the journal has.
func (t *Table) Apply(f *effect.Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.apply(f)
}

func (t *Table) apply(f *effect.Effect) {
	switch {
	case f.Kind == effect.Script:
		t.put(&Script{SHA: string(f.Key.Name), Text: string(f.Value), Loaded: f.Lo == 1})
	case len(f.Key.Name) == 0:
		t.clear()
	default:
		t.drop(t.bySHA[string(f.Key.Name)])
	}
}

// put adds a script in place of one of the same name.
func (t *Table) put(s *Script) {
	t.drop(t.bySHA[s.SHA])
	at := t.listOf(s).PushFront(s)
	t.bySHA[s.SHA], t.byText[s.Text] = at, at
	t.bytes += weight(s.Text)
}

func (t *Table) drop(at *list.Element) {
	if at == nil {
		return
	}
	s := at.Value.(*Script)
	t.listOf(s).Remove(at)
	delete(t.bySHA, s.SHA)
	delete(t.byText, s.Text)
	t.bytes -= weight(s.Text)
}

func (t *Table) clear() {
	t.bySHA, t.byText = make(map[string]*list.Element), make(map[string]*list.Element)
	t.evaled.Init()
	t.loaded.Init()
	t.bytes = 0
}

func (t *Table) listOf(s *Script) *list.List {
	if s.Loaded {
		return &t.loaded
	}
	return &t.evaled
}

// Cut calls cut while there is no change, and returns All.
func (t *Table) Cut(cut func()) []effect.Effect {
	t.changing.Lock()
	defer t.changing.Unlock()
	cut()
	return t.All()
}

// All returns the effects that add all scripts, those used least recently first.
func (t *Table) All() (effects []effect.Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, in := range []*list.List{&t.loaded, &t.evaled} {
		for at := in.Back(); at != nil; at = at.Prev() {
			effects = append(effects, at.Value.(*Script).effect())
		}
	}
	return effects
}

// Size returns the number of scripts, the bytes that they take, and how many were dropped because
// of limits.
func (t *Table) Size() (scripts int, bytes, dropped int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.bySHA), t.bytes, t.dropped
}
