package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/compiler"
	"rlserver/resp/lua/interior"
)

// Host is what a script calls.
type Host interface {
	// Do runs a command, and returns its reply in the protocol, which is valid until the next
	// call. resp3 is what redis.setresp has set. The words are valid until it returns. The reply
	// may become as large as State.MayReply says.
	Do(words [][]byte, resp3 bool) (reply []byte)
	// Allowed reports whether the user may run a command.
	Allowed(words [][]byte) (bool, error)
	// Log logs a line at a level from 0 to 3, as redis.log.
	Log(level int, text string)
	// MustEnd returns why the script has to end now; "": it may go on. It is called often.
	MustEnd() (why string)
	// Long is called often when the script has run for TurnTime, and before it waits for others.
	Long()
	// Overdue is called once, when the script has run for longer than its limit.
	Overdue()
}

// State is an interpreter. Only one goroutine may use it. Between two scripts it holds nothing of
// the first: globals cannot be set, and libraries cannot be changed.
type State struct {
	L     *glua.LState
	host  Host
	watch watch

	globals  *glua.LTable
	keys     *glua.LTable // KEYS and ARGV, in all runs
	argv     *glua.LTable
	readonly map[*glua.LTable]bool
	values   []glua.LValue   // in the order of given
	noop     *glua.LFunction // a function of Lua that does nothing
	handler  *glua.LFunction
	refusal  *glua.LFunction // of changes of read-only tables
	null     *glua.LUserData

	resp3     bool
	killWords string
	errorLine int                 // of the latest error
	errorIn   *glua.FunctionProto // where it was raised
	chunks    []*Script           // of loadstring, in this run
	// Counted reports, while Write passes on an error, whether it was counted before.
	Counted bool
	result  glua.LValue
	args    arena
	scratch scratch
	join    []byte // where strings are built that fit in it, by functions that call no others
	json    jsonSettings
	random  random
	next    *glua.LFunction // of ipairs
	main    *glua.LFunction // runs each script
}

// arena holds the words of a call.
type arena struct {
	words [][]byte
	text  []byte
	ends  []int
}

// The stack of a script: as many calls within each other as in Lua, and values for them.
const (
	maxCalls   = 16000
	maxStack   = 1 << 20 // values
	firstStack = 512
)

var states = sync.Pool{New: func() any { return newState() }}

func newState() *State {
	st := &State{killWords: KillWords, join: make([]byte, 0, joinSize)}
	st.L = glua.NewState(glua.Options{
		SkipOpenLibs: true, CallStackSize: maxCalls, MinimizeStackMemory: true,
		RegistrySize: firstStack, RegistryMaxSize: maxStack, RegistryGrowStep: 4096,
	})
	st.watch.st = st
	st.readonly = make(map[*glua.LTable]bool)
	st.open()
	st.random.seed(rand.Int64())
	return st
}

// joinSize is the capacity of State.join in bytes. No other buffer has it.
const joinSize = 1<<12 + 1

// KillWords is the error of a script that SCRIPT KILL has ended.
const KillWords = "Script killed by user with SCRIPT KILL..."

// Run is one run of a script.
type Run struct {
	Script     *Script
	Keys, Args [][]byte
	Host       Host
	Limits     Limits
	Among      *Scripts // those that run beside it
}

// Error is the error of a script.
type Error struct {
	Text    string // the reply, its code first
	Chunk   string // where it was raised: its name, as Lua has it
	Line    int
	Counted bool // it is that of a command, and was counted when that failed
}

func (e *Error) Error() string { return e.Text }

// Take returns an idle interpreter.
func Take() *State { return states.Get().(*State) }

// Release gives the state back, for other scripts.
func (st *State) Release() {
	st.host, st.result = nil, nil
	if st.usable() {
		clear(st.args.words)
		states.Put(st)
	}
}

// usable reports whether other scripts may run on the state: its stack is not large, and its script
// did not end within a coroutine.
func (st *State) usable() bool {
	w := &st.watch
	return (w.dead == "" || w.intact) && w.lasting == 0 && w.charged <= 1<<20 && cap(st.args.text) <= 64<<10
}

// Run runs a script, and appends its reply with emit, which is given its result. The result is
// valid until emit returns.
func (st *State) Run(r *Run, emit func(*State, glua.LValue) error) (err error) {
	st.host, st.resp3, st.errorLine, st.errorIn = r.Host, false, 0, nil
	st.watch.reset(r.Limits, r.Among)
	L := st.L
	if r.Script.Watched {
		L.SetContext(&st.watch)
	}
	st.json = defaultJSON
	st.fill(r.Keys, r.Args)
	defer func() {
		if fault := recover(); fault != nil {
			err = st.fault(fault)
			st.watch.dead, st.watch.intact = "broken", false // the state is not used again
		}
		st.watch.endTurn()
		if st.watch.granted > 0 {
			st.watch.grant(0)
		}
		L.RemoveContext()
		L.SetTop(0)
		st.main.Proto = st.noop.Proto // a script that is dropped leaves nothing
		emptyList(st.keys)
		emptyList(st.argv)
		st.scratch.reset(L)
		st.chunks = nil
	}()
	st.main.Proto = r.Script.Proto
	L.Push(st.main)
	for _, i := range r.Script.Params {
		L.Push(st.values[i])
	}
	if err := L.PCall(len(r.Script.Params), 1, st.handler); err != nil {
		return st.scriptError(err)
	}
	st.result = L.Get(-1)
	return emit(st, st.result)
}

// maxTogether is the length of words in bytes that share memory: each of them keeps it alive.
const maxTogether = 256

func (st *State) fill(keys, args [][]byte) {
	b := st.join[:0]
	for _, words := range [2][][]byte{keys, args} {
		for _, w := range words {
			if len(b)+len(w) <= maxTogether {
				b = append(b, w...)
			}
		}
	}
	text := st.scratch.clone(b)
	at := st.fillList(st.keys, keys, text, 0)
	st.fillList(st.argv, args, text, at)
}

// fillList puts words into a table: those that fit are in the text, from a position on.
func (st *State) fillList(t *glua.LTable, words [][]byte, text string, at int) (end int) {
	for i, w := range words {
		if at+len(w) <= maxTogether {
			t.RawSetInt(i+1, st.scratch.string(text[at:at+len(w)]))
			at += len(w)
		} else {
			t.RawSetInt(i+1, glua.LString(w))
		}
	}
	return at
}

// fault returns the error for a panic that is not Lua's: a bug of the interpreter.
func (st *State) fault(fault any) error {
	if e, ok := fault.(*glua.ApiError); ok {
		return st.scriptError(e)
	}
	return fmt.Errorf("the interpreter panicked: %v", fault)
}

// scriptError returns the reply for what a script has raised.
func (st *State) scriptError(err error) error {
	e := (*glua.ApiError)(nil)
	if !errors.As(err, &e) {
		return err
	}
	line := max(st.errorLine, 1)
	if st.watch.dead != "" {
		return &Error{Text: "ERR " + st.watch.dead, Chunk: compiler.MainName, Line: line}
	}
	text, counted := "", false
	switch v := e.Object.(type) {
	case *glua.LTable:
		counted = wasCounted(v)
		if s, ok := v.RawGetString("err").(glua.LString); ok {
			text = strings.Clone(string(s)) // scratch ends with the run
		} else {
			text = "ERR unknown error"
		}
	default:
		if interior.DepthFault.MatchString(st.textOf(v)) { // there was no space to call handleError
			v = glua.LString(fmt.Sprintf("%s:%d: stack overflow", compiler.MainName[1:], line))
		}
		text = "ERR " + st.textOf(v)
	}
	text, _, _ = strings.Cut(text, "\x00")
	return &Error{Text: text, Chunk: st.raisedIn(), Line: line, Counted: counted}
}

// raisedIn returns the name of the chunk that the latest error was raised in.
func (st *State) raisedIn() string {
	for _, chunk := range st.chunks {
		if chunk.Has(st.errorIn) {
			return chunk.Name
		}
	}
	return compiler.MainName
}

// Script is a compiled script. It is immutable, and shared by all states.
type Script = compiler.Script

// MainName is the name of scripts, as Lua has it.
const MainName = compiler.MainName

// Compile compiles a script.
func Compile(source string) (*Script, error) { return compiler.Compile(source) }
