package acl

import (
	"slices"
	"sync"
)

// Entry is a denied call or a failed login. Equal ones within a minute are one entry with a count.
type Entry struct {
	Count   int64
	Reason  Verdict
	Context string // toplevel or multi
	Object  string // the command, key or channel; for a login AUTH or HELLO
	User    string // the name
	At      int64  // Unix ms, of the latest one
	Client  string // the client's line of CLIENT LIST at the time At
}

// Log holds the latest entries. The zero value is empty. Any goroutine may use it.
type Log struct {
	mu      sync.Mutex
	entries []Entry // the oldest first
	counts  [DeniedAuth + 1]int64
}

const (
	groupingTime  = 60_000 // ms within which equal entries are merged
	groupingDepth = 10     // how many of the newest entries are compared, as in Redis

	// Longer texts are truncated to these lengths, in bytes: names, which clients choose, and a
	// line of CLIENT LIST.
	maxName   = 128
	maxClient = 1024
)

// Add adds an entry and removes the oldest ones until at most max are left.
func (l *Log) Add(e Entry, max int) {
	e.Count = 1
	e.Object, e.User, e.Client = truncate(e.Object, maxName), truncate(e.User, maxName), truncate(e.Client, maxClient)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[e.Reason]++
	for i := len(l.entries) - 1; i >= 0 && i >= len(l.entries)-groupingDepth; i-- {
		if e.equals(l.entries[i]) {
			e.Count += l.entries[i].Count
			l.entries = slices.Delete(l.entries, i, i+1)
			break
		}
	}
	l.entries = append(l.entries, e)
	if more := len(l.entries) - max; more > 0 {
		clear(l.entries[:more]) // frees the texts before append reallocates the slice
		l.entries = l.entries[more:]
	}
}

// truncate returns a copy of the first max bytes of a text. The copy does not keep the whole text
// in memory.
func truncate(text string, max int) string {
	return string([]byte(text[:min(len(text), max)]))
}

// equals reports whether two entries are to be merged.
func (e Entry) equals(o Entry) bool {
	apart := e.At - o.At
	return e.Reason == o.Reason && e.Context == o.Context && e.Object == o.Object && e.User == o.User &&
		-groupingTime <= apart && apart <= groupingTime
}

// Latest returns up to n entries, the newest first.
func (l *Log) Latest(n int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	latest := slices.Clone(l.entries[len(l.entries)-min(max(n, 0), len(l.entries)):])
	slices.Reverse(latest)
	return latest
}

// Count returns how many calls or logins were denied for a reason since the start or ResetCounts.
func (l *Log) Count(reason Verdict) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[reason]
}

// Reset removes the entries.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// ResetCounts sets the counts to 0.
func (l *Log) ResetCounts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts = [DeniedAuth + 1]int64{}
}
