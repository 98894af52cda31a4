package web

import (
	"context"
	"time"

	"rlserver/cluster/overview"
	"rlserver/internal/stats"
)

// Source supplies the state of the server. Any goroutine may call its methods.
type Source interface {
	// State returns the state of the server. It takes no lock that a call may hold for long.
	State() *State
	// Ready returns the reason why the server is not ready for calls, or why no further node of its
	// cluster should be stopped. nil: there is none.
	Ready() error
	// ReadyForTraffic returns the reason why the server is not ready for calls, or nil.
	ReadyForTraffic() error
	// Denied returns the n most denied keys of all databases, in descending order of denials.
	Denied(n int) []DeniedKey
	// NameOf returns the name of a key by the Hash in Denied; nil if there is no such key.
	NameOf(database int, hash uint64) []byte
	// Limiter returns the state of a key without changing it. ok is false if there is no such key.
	// It fails if a script that takes too long holds the key.
	Limiter(database int, key []byte) (l Limiter, ok bool, err error)
	// Connect returns what makes calls as a user, until the context ends. The caller closes it.
	Connect(ctx context.Context, as User) (Caller, error)
}

// State is the state of the server at a moment. Counts are since the start or CONFIG RESETSTAT.
type State struct {
	Version  string
	Time     int64 // server time, Unix ms
	Uptime   time.Duration
	Loading  bool
	Stopping bool
	Expiry   int64 // when the TLS certificate expires, Unix seconds; 0: no certificate

	Commands []Command // commands that were called
	Policies []Policy

	Calls, Errors int64

	// Cluster is the cluster of which the server is a node, or nil.
	Cluster *overview.Cluster

	Clients   Clients
	Messages  Messages
	Keys      Keys
	Memory    Memory
	Scripts   Scripts
	Overrides Overrides
	Disk      Disk
	Clock     Clock
	Fsync     stats.Distribution // durations of syncs of the log
	Snapshot  stats.Distribution // durations of snapshots
}

// Command is a command that was called.
type Command struct {
	Name string
	stats.CommandCounts
}

// Policy is a policy and its decisions. In SHADOW mode it denies nothing, and ShadowDenied counts
// what it would have denied.
type Policy struct {
	Name, Definition string
	Shadow           bool
	Decisions        stats.DecisionCounts
}

// Clients are the connections that speak the Redis protocol.
type Clients struct {
	Open          int64 `json:"open"`
	Max           int64 `json:"max"`
	Waiting       int64 `json:"waiting"` // calls that wait for a key
	Received      int64 `json:"received"`
	Rejected      int64 `json:"rejected"`
	BytesIn       int64 `json:"bytesIn"`
	BytesOut      int64 `json:"bytesOut"`
	FailedLogins  int64 `json:"failedLogins"`
	RefusedLogins int64 `json:"refusedLogins"`  // not checked, as too many have failed
	LoginSources  int64 `json:"loginAddresses"` // whose logins are remembered
	LoginTimeouts int64 `json:"loginTimeouts"`
	Handshakes    int64 `json:"handshakes"`  // failed TLS handshakes
	Evicted       int64 `json:"evicted"`     // closed because clients used too much memory
	OutputLimit   int64 `json:"outputLimit"` // closed because they left too many replies unread
}

// Keys are the keys of all databases.
type Keys struct {
	Types     []TypeKeys
	Databases []Database // databases that have keys
	Hits      int64
	Misses    int64
	Expired   int64
	Evicted   int64
	Bans      int64 // of limiters: how often denials have caused one
}

// TypeKeys is the number of keys of a type.
type TypeKeys struct {
	Type string `json:"type"`
	Keys int64  `json:"keys"`
}

// Database has the numbers of keys, and of keys with a deadline, of a database.
type Database struct {
	Number        int
	Keys, Expires int64
}

// Memory is the memory of the process, in bytes. Max limits Keys and Overhead, MaxClients limits
// Clients; 0: no limit.
type Memory struct {
	Keys       int64  `json:"keys"`
	Clients    int64  `json:"clients"`
	Overhead   int64  `json:"overhead"`
	Max        int64  `json:"max"`
	MaxClients int64  `json:"maxClients"`
	Refused    int64  `json:"refused"` // calls refused with OOM
	Policy     string `json:"policy"`
	// of Keys, those of reservations
	Reserved        int64 `json:"-"`
	Reservations    int64 `json:"-"`
	MaxReservations int64 `json:"-"` // open ones of a key
	Retention       int64 `json:"-"` // ms for which calls are remembered
}

// Used is the memory in use, as INFO shows it.
func (m Memory) Used() int64 { return max(0, m.Keys+m.Clients+m.Overhead) }

// Disk is the state of the log and the snapshots.
type Disk struct {
	AppendOnly     bool   `json:"appendOnly"`
	Syncs          bool   `json:"-"`     // Fsync has the syncs of a log
	State          string `json:"state"` // ok, stalled, full or failed
	Failure        string `json:"failure"`
	LogBytes       int64  `json:"logBytes"`       // size of the log and the last snapshot
	UnwrittenBytes int64  `json:"unwrittenBytes"` // bytes that wait to be written
	// position of the last change in the log, in bytes since the start
	Appended int64 `json:"appended"`
	// position up to which the log is synced to the disk
	Durable   int64 `json:"durable"`
	SlowSyncs int64 `json:"slowSyncs"` // syncs that took longer than a second; -1: unknown
	Saving    bool  `json:"saving"`
	Saves     int64 `json:"saves"`
	// end of the last successful snapshot, or start of the server; Unix ms
	LastSave       int64 `json:"lastSave"`
	LastSaveFailed bool  `json:"lastSaveFailed"`
	UnsavedChanges int64 `json:"unsavedChanges"`
}

// Clock compares server time with the system clock.
type Clock struct {
	Difference int64 // ms; positive: the system clock is ahead
	State      string
	Left       time.Duration // remaining time of the state
}

// DeniedKey is a key that was denied at least Count times.
type DeniedKey struct {
	Database int
	Name     []byte
	Count    int64
	Rule     string // rule that last denied it; "": unknown, such as for INCREX
	Hash     uint64 // identifies a key whose Name was cut; 0: Name is the whole name
}

// Limiter is the current state of a key by the rule of its limiter.
type Limiter struct {
	Type      string
	ExpiresIn time.Duration // until the key is deleted; negative: never
	Rule      string        // "": no rule is known, and the following fields are zero
	Limit     int64
	Remaining int64
	RetryIn   time.Duration // until a hit would be admitted; 0: now
	ResetIn   time.Duration // until the limiter is unused again
	Unusable  string        // why the rule cannot be applied to the value of the key, or ""
}
