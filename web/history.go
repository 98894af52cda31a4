package web

import (
	"encoding/json"
	"math"
	"sync"
)

// history has the points of the last hour: of some values of the server, of commands and of
// policies.
type history struct {
	mu       sync.Mutex
	times    []int64 // Unix ms of each point, in order
	values   group
	commands group
	policies group
	encoded  []byte // everything in JSON; nil: not encoded since the last point
}

// pair has two values of a point, such as admitted and denied.
type pair [2]float64

// group has series by name. A series begins with its first value that is not zero, and is removed
// after an hour of zeros.
type group struct {
	max    int
	series map[string]*series
}

// series has the pairs of the last points.
type series struct {
	values [2][]float32
	zeros  int // number of points since the last one above zero
}

// maxSeries is the largest number of commands, and of policies, with a history.
const maxSeries = 64

func newHistory() *history {
	return &history{
		values:   group{maxSeries, make(map[string]*series)},
		commands: group{maxSeries, make(map[string]*series)},
		policies: group{maxSeries, make(map[string]*series)},
	}
}

// add adds a point.
func (p *history) add(v *view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.encoded = nil
	p.times = appendPoint(p.times, v.Time)
	p.values.add(map[string]pair{
		"decisions": {v.Rates.Admitted, v.Rates.Denied},
		"calls":     {v.Rates.Calls, v.Rates.Errors},
		"clients":   {float64(v.Clients.Open), float64(v.Clients.Waiting)},
		"memory":    {float64(v.Memory.Used), float64(v.Keys.Total)},
		"latency":   {v.Latency.P50, v.Latency.P99},
	})
	commands, policies := make(map[string]pair), make(map[string]pair)
	for _, c := range v.Commands {
		commands[c.Name] = pair{c.AdmittedRate, c.DeniedRate}
	}
	for _, c := range v.Policies {
		policies[c.Name] = pair{c.AdmittedRate, c.DeniedRate}
	}
	p.commands.add(commands)
	p.policies.add(policies)
}

// add adds a point to all series. Missing ones get a zero.
func (g *group) add(now map[string]pair) {
	for name, value := range now {
		if g.series[name] == nil && value != (pair{}) && len(g.series) < g.max {
			g.series[name] = new(series)
		}
	}
	for name, s := range g.series {
		value := now[name]
		for i := range value {
			s.values[i] = appendPoint(s.values[i], float32(math.Round(value[i]*100)/100))
		}
		s.zeros++
		if value != (pair{}) {
			s.zeros = 0
		}
		if s.zeros > points {
			delete(g.series, name)
		}
	}
}

// appendPoint appends to a list. If the list has the points of an hour, the oldest is removed.
func appendPoint[T any](list []T, value T) []T {
	if len(list) < points {
		return append(list, value)
	}
	copy(list, list[1:])
	list[len(list)-1] = value
	return list
}

// json returns all points. The page aligns the ends of series that have fewer points.
func (p *history) json() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.encoded == nil {
		values := func(g group) map[string][2][]float32 {
			all := make(map[string][2][]float32, len(g.series))
			for name, s := range g.series {
				all[name] = s.values
			}
			return all
		}
		// cannot fail for numbers and text
		p.encoded, _ = json.Marshal(map[string]any{
			"step": pointInterval.Milliseconds(), "points": points, "times": p.times,
			"figures": values(p.values), "commands": values(p.commands), "policies": values(p.policies),
		})
	}
	return p.encoded
}
