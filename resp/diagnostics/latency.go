package diagnostics

import (
	"bytes"
	"fmt"
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

// Advice has the settings that Doctor needs.
type Advice struct {
	Threshold int64 // latency-monitor-threshold in ms; 0: nothing is monitored
	Slowlog   int64 // slowlog-log-slower-than in µs; below 0: there is no slow log
}

// Doctor reports what the events show, and what to do about it. now is Unix seconds.
func (l *Latency) Doctor(now int64, a Advice) string {
	events := l.Events()
	switch {
	case len(events) == 0 && a.Threshold == 0:
		return "Latencies are not monitored. \"CONFIG SET latency-monitor-threshold <milliseconds>\" records " +
			"calls that take at least that long.\n"
	case len(events) == 0:
		return "No latency spike was observed.\n"
	}
	var text strings.Builder
	text.WriteString("Latency spikes were observed:\n\n")
	for i, e := range events {
		s := e.spikes(now)
		fmt.Fprintf(&text, "%d. %s: %d latency spikes (average %dms, mean deviation %dms, period %.2f sec). "+
			"Worst all time event %dms.\n",
			i+1, e.Name, len(e.Samples), s.average, s.deviation, float64(s.period)/float64(len(e.Samples)), e.Max)
	}
	text.WriteString("\nWhat may help:\n\n")
	for _, e := range events {
		for _, advice := range a.about(e.Name) {
			text.WriteString("- " + advice + "\n")
		}
	}
	return text.String()
}

func (a Advice) about(event string) (list []string) {
	switch event {
	case SlowCommand:
		switch {
		case a.Slowlog < 0:
			list = append(list, fmt.Sprintf("Switch the slow log on, to see which calls are slow: "+
				"CONFIG SET slowlog-log-slower-than %d.", a.Threshold*1000))
		case a.Slowlog/1000 > a.Threshold:
			list = append(list, fmt.Sprintf("The slow log leaves out calls that are recorded here: "+
				"CONFIG SET slowlog-log-slower-than %d.", a.Threshold*1000))
		}
		list = append(list, "See SLOWLOG GET for the calls that were slow.",
			"Commands on large values, and those that visit all keys, take long: split large values, and use SCAN.")
	case SlowFastCommand:
		list = append(list, "Fast commands are slow when the machine is busy or has too little memory: reduce its "+
			"load, or run this server on a machine of its own. A limit on its CPU time, as containers have, stops it "+
			"for up to a tenth of a second at a time.")
	case SlowSync:
		list = append(list, "With appendfsync always each call waits for the disk: use a faster disk, or appendfsync "+
			"everysec.")
	}
	return list
}

const graphColumns, graphRows = 80, 4

// Graph draws an event as Redis does. now is Unix seconds.
func (e *Event) Graph(now int64) string {
	var text strings.Builder
	s := e.spikes(now)
	fmt.Fprintf(&text, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", e.Name, s.high, s.low, e.Max,
		strings.Repeat("-", graphColumns))
	for begin := 0; begin < len(e.Samples); begin += graphColumns {
		if begin > 0 {
			text.WriteByte('\n')
		}
		drawGraph(&text, e.Samples[begin:min(begin+graphColumns, len(e.Samples))], s, now)
	}
	return text.String()
}

// drawGraph draws a row of columns: the latencies, an empty line, and below each column its age,
// downwards.
func drawGraph(text *strings.Builder, samples []Sample, s spikes, now int64) {
	const fill = "_o#"
	span := max(1, s.high-s.low)
	labels, longest := make([]string, len(samples)), 0
	for i, sample := range samples {
		labels[i] = ago(now - sample.Time)
		longest = max(longest, len(labels[i]))
	}
	for row := range graphRows + 1 + longest {
		line := bytes.Repeat([]byte{' '}, len(samples))
		for i, sample := range samples {
			steps := int64(len(fill) * graphRows)
			step := min((sample.Latency-s.low)*steps/span, steps-1) - int64((graphRows-row-1)*len(fill))
			switch {
			case row > graphRows && row-graphRows-1 < len(labels[i]):
				line[i] = labels[i][row-graphRows-1]
			case row >= graphRows:
			case step >= int64(len(fill)):
				line[i] = '|'
			case step >= 0:
				line[i] = fill[step]
			}
		}
		text.Write(append(line, '\n'))
	}
}

// ago formats seconds in the largest unit that they fill.
func ago(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 24*3600:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", seconds/(24*3600))
}
