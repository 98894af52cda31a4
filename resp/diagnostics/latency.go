package diagnostics

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// The events of Latency, by the names of Redis.
const (
	SlowCommand     = "command"          // a command without the flag fast
	SlowFastCommand = "fast-command"     // a command with it
	SlowSync        = "aof-fsync-always" // a sync of the log, with appendfsync always
)

// maxSamples is the number of samples of an event that are kept.
const maxSamples = 160

// Sample is the longest latency of an event within a second.
type Sample struct {
	Time    int64 // Unix seconds
	Latency int64 // ms
}

// Latency keeps samples of latencies by event. The zero value is ready to use.
type Latency struct {
	mu     sync.Mutex
	events map[string]*series
}

// series are the samples of an event, the oldest first.
type series struct {
	samples []Sample
	max     int64 // ms, including samples that were dropped
}

// Add records that an event took latency ms, at a time in Unix seconds.
func (l *Latency) Add(event string, now, latency int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == nil {
		l.events = make(map[string]*series)
	}
	s := l.events[event]
	if s == nil {
		s = new(series)
		l.events[event] = s
	}
	s.max = max(s.max, latency)
	if n := len(s.samples); n > 0 && s.samples[n-1].Time == now {
		s.samples[n-1].Latency = max(s.samples[n-1].Latency, latency)
		return
	}
	if len(s.samples) == maxSamples {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
	s.samples = append(s.samples, Sample{now, latency})
}

// Event is an event with its samples.
type Event struct {
	Name    string
	Samples []Sample // at least one, the oldest first
	Max     int64    // ms, including samples that were dropped
}

// Last returns the newest sample.
func (e *Event) Last() Sample { return e.Samples[len(e.Samples)-1] }

// Events returns all events, by name.
func (l *Latency) Events() (events []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.events)) {
		s := l.events[name]
		events = append(events, Event{name, slices.Clone(s.samples), s.max})
	}
	return events
}

// Event returns the event with a name, which is case-sensitive as in Redis, or nil.
func (l *Latency) Event(name string) *Event {
	for _, e := range l.Events() {
		if e.Name == name {
			return &e
		}
	}
	return nil
}

// Reset removes the events with one of the names, in any case, or all if there are no names. It
// returns their number.
func (l *Latency) Reset(names ...string) (removed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.events)
	maps.DeleteFunc(l.events, func(event string, _ *series) bool {
		isEvent := func(name string) bool { return strings.EqualFold(name, event) }
		return len(names) == 0 || slices.ContainsFunc(names, isEvent)
	})
	return before - len(l.events)
}

// spikes summarizes an event, in ms and seconds.
type spikes struct{ low, high, average, deviation, period int64 }

func (e *Event) spikes(now int64) (s spikes) {
	s.low = e.Samples[0].Latency
	for _, sample := range e.Samples {
		s.low, s.high = min(s.low, sample.Latency), max(s.high, sample.Latency)
		s.average += sample.Latency
	}
	n := int64(len(e.Samples))
	s.average /= n
	for _, sample := range e.Samples {
		s.deviation += max(s.average-sample.Latency, sample.Latency-s.average)
	}
	s.deviation /= n
	s.period = max(1, now-e.Samples[0].Time)
	return s
}
