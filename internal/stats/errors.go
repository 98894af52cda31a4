package stats

import (
	"maps"
	"sync"
	"sync/atomic"
)

const (
	maxErrorCodes   = 128 // codes with a counter of their own
	maxErrorCode    = 32  // bytes
	otherErrorCodes = "OTHER"
)

// Errors counts error replies by code, the first word of the reply. Clients can cause any code
// (DEBUG ERROR), so the number of codes is limited; further ones count as OTHER. The zero value is
// ready to use.
type Errors struct {
	mu     sync.RWMutex
	counts map[string]*atomic.Int64
}

// Count counts an error reply. text has no leading hyphen.
func (e *Errors) Count(text string) {
	code := errorCode(text)
	e.mu.RLock()
	n := e.counts[code]
	e.mu.RUnlock()
	if n == nil {
		n = e.add(code)
	}
	n.Add(1)
}

// errorCode returns the first word of a text.
func errorCode(text string) string {
	for i := range len(text) {
		switch b := text[i]; {
		case b == ' ' && i > 0:
			return text[:i]
		case i == maxErrorCode || b <= ' ' || b > '~':
			return otherErrorCodes
		}
	}
	if text == "" {
		return otherErrorCodes
	}
	return text
}

// add returns the counter of a code, or creates one unless there are too many.
func (e *Errors) add(code string) *atomic.Int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts == nil {
		e.counts = make(map[string]*atomic.Int64)
	}
	if e.counts[code] == nil && len(e.counts) >= maxErrorCodes-1 {
		code = otherErrorCodes
	}
	if e.counts[code] == nil {
		// a copy, because text may be part of a client's buffer
		e.counts[string([]byte(code))] = new(atomic.Int64)
	}
	return e.counts[code]
}

// Snapshot returns the number of replies by code.
func (e *Errors) Snapshot() map[string]int64 {
	e.mu.RLock()
	counts := maps.Clone(e.counts)
	e.mu.RUnlock()
	result := make(map[string]int64, len(counts))
	for code, n := range counts {
		result[code] = n.Load()
	}
	return result
}

// Reset removes all counters.
func (e *Errors) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts = nil
}
