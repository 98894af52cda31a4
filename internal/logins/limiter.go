package logins

import (
	"container/list"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine/limit"
	"rlserver/internal/clock"
)

// Memory is how long a source counts as one that has failed after its last failure.
const Memory = time.Hour

// Result is the result of a check.
type Result int

// The results.
const (
	Wrong    Result = iota
	Unproven        // the user needs no password, so that any is right
	Right
)

// ResultOf returns the result of a check that was right, and that proves who the client is.
func ResultOf(right, proven bool) Result {
	switch {
	case !right:
		return Wrong
	case !proven:
		return Unproven
	}
	return Right
}

// Limiter limits failed logins. Any goroutine may use it.
type Limiter struct {
	settings *Settings
	clock    *clock.Clock
	log      *slog.Logger
	refused  atomic.Int64
	logged   clock.Throttle // of refused logins

	mu      sync.Mutex
	ended   sync.Cond // a check has ended that others may wait for
	sources map[Source]*record
	failed  list.List // of records that have failed and never logged in, the last failure last
	known   list.List // of records that have logged in, the last login last
	all     bucket
}

// record is what is known about a source.
type record struct {
	bucket
	source  Source
	seat    *list.Element // in failed or known
	known   bool
	failing bool          // it has failed, at the time failedAt
	at      time.Duration // elapsed time of its last failure
}

// bucket is a token bucket, and the number of checks that run and may take a token.
type bucket struct {
	tokens  limit.Tokens
	running int64
}

// New returns a limiter with settings that may change. It logs refused logins, once a second at
// most.
func New(settings *Settings, c *clock.Clock, log *slog.Logger) *Limiter {
	l := &Limiter{settings: settings, clock: c, log: log, sources: make(map[Source]*record)}
	l.ended.L = &l.mu
	return l
}

// Refused returns how many logins were refused without a check since the start or Reset.
func (l *Limiter) Refused() int64 { return l.refused.Load() }

// Reset sets the number of refused logins to 0.
func (l *Limiter) Reset() { l.refused.Store(0) }

// Sources returns how many sources are remembered, at most three times Settings.Addresses.
func (l *Limiter) Sources() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sources)
}

// Try calls check, which checks what a client at an address has given, unless too many logins have
// failed. It then returns how long the client has to wait, and check is not called. Several checks
// may run at the same time.
func (l *Limiter) Try(address string, check func() Result) (wait time.Duration) {
	ip := ipOf(address)
	contains := func(n netip.Prefix) bool { return n.Contains(ip) }
	if slices.ContainsFunc(l.settings.networks(), contains) {
		check()
		return 0
	}
	source := sourceOf(ip)
	a, wait := l.begin(source)
	if wait > 0 {
		l.refuse(address, wait)
		return wait
	}
	result := Wrong // also if the check panics
	defer func() { l.end(source, a, result) }()
	result = check()
	return 0
}

// refuse counts and logs a login that is not checked.
func (l *Limiter) refuse(address string, wait time.Duration) {
	l.refused.Add(1)
	if others, ok := l.logged.Allow(l.clock.Elapsed().Milliseconds(), time.Second); ok {
		l.log.Warn("a login was refused, as too many have failed", "address", address, "wait", wait,
			"others_since_the_last_line", others)
	}
}

// attempt is a check that runs: which buckets it may take a token of.
type attempt struct {
	own, all bool
	source   Source // whose own bucket it is
}

// begin reserves tokens for a check of a source, or returns how long the source has to wait.
func (l *Limiter) begin(source Source) (a attempt, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := l.clock.Elapsed()
		l.forget(now)
		a = l.needed(source)
		r := l.sources[a.source]
		enough := true
		if a.own && r != nil {
			ok, w := r.admits(rule(&l.settings.PerAddress), now)
			enough, wait = enough && ok, max(wait, w)
		}
		if a.all {
			ok, w := l.all.admits(rule(&l.settings.Total), now)
			enough, wait = enough && ok, max(wait, w)
		}
		switch {
		case wait > 0:
			return attempt{}, wait
		case enough:
			l.reserve(r, a)
			return a, 0
		}
		l.ended.Wait()
	}
}

// needed returns the buckets that a source needs a token of. When there is no place to remember its
// failure, its wider network is the source: a stranger with many networks fills the table, and must
// not keep the clients of others out.
func (l *Limiter) needed(source Source) attempt {
	places, narrow := int(l.settings.Addresses.Load()), source
	if l.sources[source] == nil && l.failed.Len() >= places && !source.Local() {
		source = source.wider()
	}
	switch r := l.sources[source]; {
	case r != nil:
		return attempt{own: true, all: r.failing && !r.known && source == narrow, source: source}
	case l.failed.Len() >= 2*places && !source.Local():
		return attempt{all: true, source: source}
	}
	return attempt{own: true, source: source}
}

// reserve counts a check that begins.
func (l *Limiter) reserve(r *record, a attempt) {
	if a.own {
		if r == nil {
			r = &record{source: a.source}
			r.seat = l.failed.PushBack(r)
			l.sources[a.source] = r
		}
		r.running++
	}
	if a.all {
		l.all.running++
	}
}

// end takes the tokens of a check that has failed, and remembers the source.
func (l *Limiter) end(source Source, a attempt, result Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.ended.Broadcast()
	now := l.clock.Elapsed()
	r := l.sources[a.source]
	if a.own {
		r.running-- // it is not forgotten while it runs
	}
	if a.all {
		l.all.running--
	}
	switch result {
	case Wrong:
		l.all.take(rule(&l.settings.Total), now)
		if r == nil {
			return
		}
		r.take(rule(&l.settings.PerAddress), now)
		if r.failing, r.at = true, now; !r.known {
			l.failed.MoveToBack(r.seat)
		}
	case Right:
		l.welcome(source, l.sources[source])
	}
	if r = l.sources[a.source]; r != nil && !r.known && !r.failing && r.running == 0 {
		l.remove(r)
	}
}

// welcome remembers a source that has logged in.
func (l *Limiter) welcome(source Source, r *record) {
	switch {
	case r == nil:
		r = &record{source: source}
		l.sources[source] = r
	case r.known:
		l.known.MoveToBack(r.seat)
		return
	default:
		l.failed.Remove(r.seat)
	}
	r.known, r.seat = true, l.known.PushBack(r)
	for e := l.known.Front(); e != nil && l.known.Len() > int(l.settings.Addresses.Load()); {
		oldest := e.Value.(*record)
		if e = e.Next(); oldest.running == 0 {
			l.remove(oldest)
		}
	}
}

// forget removes the sources whose last failure is longer ago than Memory.
func (l *Limiter) forget(now time.Duration) {
	for e := l.failed.Front(); e != nil; e = l.failed.Front() {
		r := e.Value.(*record)
		if r.running > 0 || now-r.at <= Memory {
			break
		}
		l.remove(r)
	}
}

func (l *Limiter) remove(r *record) {
	delete(l.sources, r.source)
	if r.known {
		l.known.Remove(r.seat)
		return
	}
	l.failed.Remove(r.seat)
}

// rule returns the bucket of a setting, with a Capacity of 0 if there is no limit.
func rule(perMinute *atomic.Int64) limit.Bucket {
	n := perMinute.Load()
	return limit.Bucket{Capacity: n, Refill: n, Period: time.Minute.Milliseconds()}
}

// admits reports whether one more check may run. Otherwise wait is how long it takes until there is
// a token; 0 if a check that runs may leave one.
func (b *bucket) admits(rule limit.Bucket, now time.Duration) (yes bool, wait time.Duration) {
	if rule.Capacity == 0 {
		return true, 0
	}
	_, d := rule.Take(b.tokens, now.Milliseconds(), 1)
	if !d.Allowed {
		return false, time.Duration(d.RetryAfter) * time.Millisecond
	}
	return d.Remaining+1 > b.running, 0
}

// take takes a token, if there is one.
func (b *bucket) take(rule limit.Bucket, now time.Duration) {
	if rule.Capacity > 0 {
		b.tokens, _ = rule.Take(b.tokens, now.Milliseconds(), 1)
	}
}

// Refusal returns the error for a client that has to wait.
func Refusal(wait time.Duration) string {
	return fmt.Sprintf("too many logins from this address or its network have failed (see login-failures): "+
		"this one was not checked, try again in %s s", seconds(wait))
}

// seconds returns a time in seconds, rounded up to a tenth.
func seconds(d time.Duration) string {
	tenths := (d + 100*time.Millisecond - 1) / (100 * time.Millisecond)
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}
