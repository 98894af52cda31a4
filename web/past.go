package web

import (
	"encoding/json"
	"math"
	"sync"
)

// past is the last hour: the points of some figures, of commands and of policies, in rings.
type past struct {
	mu       sync.Mutex
	times    []int64 // Unix ms of each point, in order
	figures  group
	commands group
	policies group
	encoded  []byte // all of it in JSON, for all readers; nil: not encoded since the last point
}

// pair is two figures of a point, such as admitted and denied.
type pair [2]float64

// group has series by name. A series begins when it is not zero for the first time, and is dropped
// when it was zero for an hour.
type group struct {
	max    int
	series map[string]*series
}

// series is a pair of figures at each of the last points, up to the latest.
type series struct {
	values [2][]float32
	zeros  int // points since it was last above zero
}

// maxSeries is how many commands have a past, and how many policies.
const maxSeries = 64

func newPast() *past {
	return &past{
		figures:  group{maxSeries, make(map[string]*series)},
		commands: group{maxSeries, make(map[string]*series)},
		policies: group{maxSeries, make(map[string]*series)},
	}
}

// add adds a point.
func (p *past) add(v *view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.encoded = nil
	p.times = appendPoint(p.times, v.Time)
	p.figures.add(map[string]pair{
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

// add adds a point to all series. Those that are not in it are zero.
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

// appendPoint appends to a list of at most as many points as there are in an hour.
func appendPoint[T any](list []T, value T) []T {
	if len(list) < points {
		return append(list, value)
	}
	copy(list, list[1:])
	list[len(list)-1] = value
	return list
}

// json returns all points. The page draws a series that is shorter than the times up to the last.
func (p *past) json() []byte {
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
		// numbers and text alone cannot fail
		p.encoded, _ = json.Marshal(map[string]any{
			"step": pointInterval.Milliseconds(), "points": points, "times": p.times,
			"figures": values(p.figures), "commands": values(p.commands), "policies": values(p.policies),
		})
	}
	return p.encoded
}
