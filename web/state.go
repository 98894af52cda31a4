package web

import (
	"time"

	"rlserver/cluster/overview"
	"rlserver/stats"
)

// Source is what the server shows of itself. Any goroutine may call its methods.
type Source interface {
	// State returns the state of the server. It takes no lock that a call may hold for long.
	State() *State
	// Ready returns why the server should get no calls now; nil: it should.
	Ready() error
	// Denied returns the n keys of all databases that were denied most, those denied most first.
	Denied(n int) []DeniedKey
	// Limiter looks at a key without changing it. ok is false if there is no such key.
	Limiter(database int, key []byte) (l Limiter, ok bool)
}

// State is the state of the server at a moment. Counts are since the start or CONFIG RESETSTAT.
type State struct {
	Version  string
	Time     int64 // server time, Unix ms
	Uptime   time.Duration
	Loading  bool
	Stopping bool
	Expiry   int64 // when the certificate of TLS expires, Unix seconds; 0: there is none

	Commands []Command // those that were called
	Policies []Policy

	Calls, Errors int64

	// Cluster is the cluster that the server is a node of; nil: it is alone.
	Cluster *overview.Cluster

	Clients  Clients
	Keys     Keys
	Memory   Memory
	Disk     Disk
	Clock    Clock
	Fsync    stats.Distribution // durations of syncs of the log
	Snapshot stats.Distribution // durations of snapshots
}

// Command is a command that was called.
type Command struct {
	Name string
	stats.CommandCounts
}

// Policy is a named limit and what it has decided. In SHADOW mode it denies nothing: ShadowDenied
// counts what it would have denied.
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
	LoginTimeouts int64 `json:"loginTimeouts"`
	Handshakes    int64 `json:"handshakes"`  // of TLS that failed
	Evicted       int64 `json:"evicted"`     // closed because clients held too much memory
	OutputLimit   int64 `json:"outputLimit"` // closed because they left too many replies unread
}

// Keys are the keys of all databases.
type Keys struct {
	Types     []TypeKeys
	Databases []Database // that have keys
	Hits      int64
	Misses    int64
	Expired   int64
	Evicted   int64
}

// TypeKeys says how many keys hold a type.
type TypeKeys struct {
	Type string `json:"type"`
	Keys int64  `json:"keys"`
}

// Database says how many keys a database has, and how many of them have a deadline.
type Database struct {
	Number        int
	Keys, Expires int64
}

// Memory is what the process uses, in bytes. Keys and Overhead are bounded by Max, Clients by
// MaxClients; 0: no bound.
type Memory struct {
	Keys       int64  `json:"keys"`
	Clients    int64  `json:"clients"`
	Overhead   int64  `json:"overhead"`
	Max        int64  `json:"max"`
	MaxClients int64  `json:"maxClients"`
	Refused    int64  `json:"refused"` // calls refused with OOM
	Policy     string `json:"policy"`
}

// Used is the memory in use, as INFO shows it.
func (m Memory) Used() int64 { return max(0, m.Keys+m.Clients+m.Overhead) }

// Disk is the state of the log and the snapshots.
type Disk struct {
	AppendOnly     bool   `json:"appendOnly"`
	State          string `json:"state"` // ok, full or failed
	Failure        string `json:"failure"`
	LogBytes       int64  `json:"logBytes"`       // of the log and the last snapshot
	UnwrittenBytes int64  `json:"unwrittenBytes"` // that wait to be written
	// position of the last change in the log, in bytes since the start
	Appended int64 `json:"appended"`
	// position up to which the log is synced to the disk
	Durable   int64 `json:"durable"`
	SlowSyncs int64 `json:"slowSyncs"` // that took longer than a second; -1: not known
	Saving    bool  `json:"saving"`
	Saves     int64 `json:"saves"`
	// Unix ms: end of the last successful snapshot, or the start
	LastSave       int64 `json:"lastSave"`
	LastSaveFailed bool  `json:"lastSaveFailed"`
	UnsavedChanges int64 `json:"unsavedChanges"`
}

// Clock is server time beside the system clock.
type Clock struct {
	Difference int64 // ms; positive: the system clock is ahead
	State      string
	Left       time.Duration // how long that state lasts
}

// DeniedKey is a key that was denied at least Count times.
type DeniedKey struct {
	Database int
	Name     []byte
	Count    int64
	Rule     string // that denied it last; "": not a limiter of this server
}

// Limiter is a key as its limiter sees it now.
type Limiter struct {
	Type      string
	ExpiresIn time.Duration // until the key is deleted; negative: it stays
	Rule      string        // "": no rule is known, and nothing below is
	Limit     int64
	Remaining int64
	RetryIn   time.Duration // until a hit would be admitted; 0: now
	ResetIn   time.Duration // until the limiter is as if it had never been used
	Unusable  string        // why the rule cannot be applied to what the key holds; "": it can
}
