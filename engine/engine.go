package engine

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"rlserver/engine/counts"
	"rlserver/engine/denials"
	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/lock"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/engine/script"
	"rlserver/internal/dict"
)

// Options are the options of New. The zero value of a field means its default.
type Options struct {
	Databases int // number of databases, for SELECT; default 16
	Shards    int // rounded up to a power of two, at most 4096; default 64
	// the key of the hash of names: secret on a server that untrusted clients can reach, fixed
	// where replies must be reproducible
	Seed    [2]uint64
	Journal Journal // where effects go; nil: nowhere
	// Origin is the position of keys that have not changed yet: Tx.End returns no lower one. It is
	// above 0 with a journal whose Wait also confirms reads.
	Origin Position
	// Memory is shared by several engines of a process; nil: the engine has one of its own
	Memory *Memory
	// Policies are shared as well; nil: the engine keeps its own, in its journal
	Policies *policy.Shared
}

// Journal takes the effects of every call, in the order in which they were applied to each key.
type Journal interface {
	// Append is called under the locks of the shards that changed, with all effects of one call at
	// now (Unix ms), as effect.Append has written them. They are kept together or not at all. The
	// bytes belong to the caller again when Append returns.
	Append(now int64, effects []byte) Position
	// Wait returns when everything up to the position is as durable as the journal's sync mode
	// promises. A reply waits for the latest change it may have seen: see Tx.End.
	Wait(Position) error
}

// Position is a position in a journal; 0 is its beginning, for which no reply waits.
type Position uint64

// Engine is the keyspace: a state machine that gets the time with every call.
// Its methods may be called from any goroutine.
type Engine struct {
	hasher    dict.Hasher
	shards    []shard
	shardBits uint
	databases int
	journal   Journal
	Scripts   *script.Table
	Holds     lock.Holds // see Tx.Hold
	// reading requires the lock of any shard, or naming; writing requires all of them and naming
	policies *policy.Table
	shared   *policy.Shared // nil: there are only its own
	required atomic.Uint64  // see RequirePolicies
	naming   sync.RWMutex   // its holder never waits for a shard
	// of policies; a shard's part requires its lock or naming, and both to write
	overrides *policy.Sharded
	// held while a call changes policies, which takes longer than it holds the locks of all shards
	changing       sync.Mutex
	memory         *Memory
	*eviction.Room // of memory

	// how often the counts of several shards were updated at once
	recountsBegun, recountsEnded atomic.Uint64

	turn atomic.Uint64 // the shard that evicts next, modulo their number

	refused atomic.Pointer[func() error] // see DeleteExpired; nil: lookups leave expired keys

	// the one being taken; set and cleared under all locks, so any one of them suffices to read it
	snapshot *Snapshot
}

// New returns an empty engine.
func New(o Options) *Engine {
	if o.Databases <= 0 {
		o.Databases = 16
	}
	if o.Shards <= 0 {
		o.Shards = 64
	}
	o.Shards = min(o.Shards, maxShards)
	shardBits := bits.Len(uint(o.Shards - 1))
	e := &Engine{
		hasher:    dict.NewHasher(o.Seed[0], o.Seed[1]),
		shards:    make([]shard, 1<<shardBits),
		shardBits: uint(shardBits),
		databases: o.Databases,
		journal:   o.Journal,
		shared:    o.Policies,
	}
	if e.memory = o.Memory; e.memory == nil {
		e.memory = NewMemory()
	} else {
		e.memory.sharing.Add(1)
	}
	e.Room = &e.memory.Room
	e.memory.add(e)
	e.policies = policy.NewTable()
	e.overrides = policy.NewSharded(shardBits, func(key string) uint64 { return e.hasher.Sum(object.BytesOf(key)) })
	e.Scripts = script.NewTable(nil)
	if j := o.Journal; j != nil {
		e.Scripts = script.NewTable(func(now int64, b []byte) uint64 { return uint64(j.Append(now, b)) })
	}
	for i := range e.shards {
		e.shards[i].init(e, i)
		e.shards[i].position.Store(uint64(o.Origin))
	}
	return e
}

// Databases returns the number of databases; their indexes begin at 0.
func (e *Engine) Databases() int { return e.databases }

// Key is a key's name with its hash, for the methods of Tx.
type Key = effect.Key

// Key hashes a name.
func (e *Engine) Key(name []byte) Key { return Key{Name: name, Hash: e.hasher.Sum(name)} }

// shardOf returns the shard of a key. The top bits of the hash choose it; the shard's dicts use the
// bits below.
func (e *Engine) shardOf(k Key) *shard { return &e.shards[e.shardIndex(k.Hash)] }

func (e *Engine) shardIndex(hash uint64) int {
	return int(hash >> 1 >> ((63 - e.shardBits) & 63)) // below 64, a shift is one instruction
}

// Stats are counters since the start, or since ResetStats.
type Stats = counts.Stats

// ResetStats sets all counters to 0, those of denials and of the policies too.
func (e *Engine) ResetStats() { e.NewTx().ResetStats() }

// ResetStats is Engine.ResetStats for a Tx that is idle or within BeginAll.
func (tx *Tx) ResetStats() {
	for _, p := range tx.e.Policies() {
		p.ResetDecisions()
	}
	held := len(tx.locked) > 0
	for i := range tx.e.shards {
		sh := &tx.e.shards[i]
		if !held {
			sh.mu.Lock()
		}
		sh.stats.Reset()
		sh.denied = denials.Counters{}
		if !held {
			sh.mu.Unlock()
		}
	}
}

// Error is an error that is sent to the client as it is: the first word is its code, the rest says
// what is wrong. Any other error is a fault of the server, and the client gets an internal error.
type Error = rule.Error

// Errorf returns an Error with a formatted text.
func Errorf(format string, args ...any) Error { return Error(fmt.Sprintf(format, args...)) }

// The errors of operations on the keyspace, in Redis' words where Redis has them.
const (
	ErrWrongType      = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrSyntax         = Error("ERR syntax error")
	ErrNotInteger     = Error("ERR value is not an integer or out of range")
	ErrNotFloat       = Error("ERR value is not a valid float")
	ErrHashNotInteger = Error("ERR hash value is not an integer")
	ErrHashNotFloat   = Error("ERR hash value is not a float")
	ErrOverflow       = Error("ERR increment or decrement would overflow")
	ErrNaNOrInfinity  = Error("ERR increment would produce NaN or Infinity")
	ErrScoreNaN       = Error("ERR resulting score is not a number (NaN)")
	ErrNoSuchKey      = Error("ERR no such key")
	ErrSameObject     = Error("ERR source and destination objects are the same")
	ErrStringTooLong  = Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	ErrOutOfMemory    = Error("OOM command not allowed when used memory > 'maxmemory'.")
	ErrBusy           = Error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	ErrBeyondCount    = Error("ERR the hits of this limiter would be more than 9007199254740991")
	ErrManyWritten    = Error("ERR the log has more than 2097152 hits, which is too many to write out at once")

	ErrOldPolicies = Error("TRYAGAIN this node does not know yet the policies that this slot has used: send it again")

	ErrLeakyHold = Error("ERR LEAKY has no HOLD: it paces calls, use TOKEN with the same numbers")

	ErrNoIDs = Error("ERR ID goes with a sliding window: no other limiter knows its hits by name")
)
