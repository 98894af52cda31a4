package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rlserver/internal/stats"
)

// view is the content of the page, as JSON. Counts are those of INFO. Rates are per second since
// the previous view, times are in ms, and latencies in µs.
type view struct {
	Time    int64      `json:"time"`
	Uptime  int64      `json:"uptime"`
	Version string     `json:"version"`
	Status  statusView `json:"status"`

	Totals  counts  `json:"totals"`
	Rates   rates   `json:"rates"`
	Latency latency `json:"latency"` // of all calls since the previous view

	Commands []commandView `json:"commands"`
	Policies []policyView  `json:"policies"`
	Omitted  int           `json:"omitted"` // policies that are not in the list
	Denied   []deniedKey   `json:"denied"`

	Clients Clients    `json:"clients"`
	Keys    keysView   `json:"keys"`
	Memory  memoryView `json:"memory"`
	Disk    diskView   `json:"disk"`
	Clock   clockView  `json:"clock"`

	Cluster *clusterView `json:"cluster,omitempty"`
}

type statusView struct {
	Level string `json:"level"` // ok, warn or bad
	Text  string `json:"text"`
}

type counts struct {
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	Calls    int64 `json:"calls"`
	Errors   int64 `json:"errors"`
}

type rates struct {
	Admitted float64 `json:"admitted"`
	Denied   float64 `json:"denied"`
	Calls    float64 `json:"calls"`
	Errors   float64 `json:"errors"`
	In       float64 `json:"in"`
	Out      float64 `json:"out"`
}

type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

type commandView struct {
	Name         string  `json:"name"`
	Calls        int64   `json:"calls"`
	Errors       int64   `json:"errors"`
	Admitted     int64   `json:"admitted"`
	Denied       int64   `json:"denied"`
	CallRate     float64 `json:"callRate"`
	AdmittedRate float64 `json:"admittedRate"`
	DeniedRate   float64 `json:"deniedRate"`
	latency              // since the start
}

type policyView struct {
	Name         string  `json:"name"`
	Definition   string  `json:"definition"`
	Shadow       bool    `json:"shadow"`
	Admitted     int64   `json:"admitted"`
	Denied       int64   `json:"denied"`
	AdmittedRate float64 `json:"admittedRate"`
	DeniedRate   float64 `json:"deniedRate"`
}

type deniedKey struct {
	Database int    `json:"db"`
	ID       string `json:"id"` // for /api/limiter, see idOf
	Name     string `json:"name"`
	Count    int64  `json:"count"`
	Rule     string `json:"rule"`
}

type keysView struct {
	Total   int64      `json:"total"`
	Expires int64      `json:"expires"`
	Expired int64      `json:"expired"`
	Evicted int64      `json:"evicted"`
	Hits    int64      `json:"hits"`
	Misses  int64      `json:"misses"`
	Types   []TypeKeys `json:"types"`
	// Databases are those that have keys.
	Databases []int `json:"databases"`
}

type memoryView struct {
	Memory
	Used int64 `json:"used"`
}

type diskView struct {
	Disk
	Fsync latency `json:"fsync"` // since the start
}

type clockView struct {
	Difference int64  `json:"difference"`
	State      string `json:"state"`
	Left       int64  `json:"left"`
}

// between returns the view of a state. Rates are since the previous state.
func between(before, now *State, elapsed time.Duration) *view {
	seconds := max(elapsed.Seconds(), 0.001)
	rate := func(before, now int64) float64 {
		if now < before { // counters were reset
			before = 0
		}
		return math.Round(float64(now-before)/seconds*100) / 100
	}
	v := &view{
		Time: now.Time, Uptime: int64(now.Uptime / time.Second), Version: now.Version,
		Totals: counts{Calls: now.Calls, Errors: now.Errors}, Clients: now.Clients, Keys: viewKeys(now.Keys),
		Memory: memoryView{now.Memory, now.Memory.Used()}, Disk: diskView{now.Disk, latencyOf(now.Fsync)},
		Clock:   clockView{now.Clock.Difference, now.Clock.State, now.Clock.Left.Milliseconds()},
		Cluster: viewCluster(now.Cluster),
		Rates: rates{
			Calls: rate(before.Calls, now.Calls), Errors: rate(before.Errors, now.Errors),
			In:  rate(before.Clients.BytesIn, now.Clients.BytesIn),
			Out: rate(before.Clients.BytesOut, now.Clients.BytesOut),
		},
	}
	v.addCommands(before, now, rate)
	v.addPolicies(before, now, rate)
	return v
}

// addCommands adds the commands, in descending order of decisions and calls.
func (v *view) addCommands(before, now *State, rate func(before, now int64) float64) {
	earlier := make(map[string]*Command, len(before.Commands))
	for i := range before.Commands {
		earlier[before.Commands[i].Name] = &before.Commands[i]
	}
	var recent stats.Distribution
	var admittedBefore, deniedBefore int64
	v.Commands = make([]commandView, 0, len(now.Commands))
	for i := range now.Commands {
		c, b := &now.Commands[i], earlier[now.Commands[i].Name]
		if b == nil {
			b = new(Command)
		}
		admitted, was := c.Decisions.Admitted+c.Decisions.ShadowDenied, b.Decisions.Admitted+b.Decisions.ShadowDenied
		w := commandView{
			Name: c.Name, Calls: c.Calls, Errors: c.Rejected + c.Failed, Admitted: admitted, Denied: c.Decisions.Denied,
			CallRate: rate(b.Calls, c.Calls), AdmittedRate: rate(was, admitted),
			DeniedRate: rate(b.Decisions.Denied, c.Decisions.Denied), latency: latencyOf(c.Latency),
		}
		v.Commands = append(v.Commands, w)
		v.Totals.Admitted += w.Admitted
		v.Totals.Denied += w.Denied
		admittedBefore += was
		deniedBefore += b.Decisions.Denied
		addSince(&recent, &b.Latency, &c.Latency)
	}
	v.Rates.Admitted, v.Rates.Denied = rate(admittedBefore, v.Totals.Admitted), rate(deniedBefore, v.Totals.Denied)
	v.Latency = latencyOf(recent)
	slices.SortStableFunc(v.Commands, func(a, b commandView) int {
		return cmp.Or(cmp.Compare(b.Admitted+b.Denied, a.Admitted+a.Denied), cmp.Compare(b.Calls, a.Calls))
	})
}

// addSince adds the durations that are in now, but not in before.
func addSince(sum, before, now *stats.Distribution) {
	if now.Count < before.Count {
		before = new(stats.Distribution)
	}
	for i := range now.Counts {
		n := max(0, now.Counts[i]-before.Counts[i])
		sum.Counts[i] += n
		sum.Count += n
	}
}

func latencyOf(d stats.Distribution) latency {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()/10) / 100 }
	return latency{us(d.Percentile(50)), us(d.Percentile(99))}
}

// addPolicies adds the policies with the most decisions per second, in the order of their names.
func (v *view) addPolicies(before, now *State, rate func(before, now int64) float64) {
	earlier := make(map[string]Policy, len(before.Policies))
	for _, p := range before.Policies {
		earlier[p.Name] = p
	}
	v.Policies = make([]policyView, 0, len(now.Policies))
	for _, p := range now.Policies {
		b, d := earlier[p.Name].Decisions, p.Decisions
		v.Policies = append(v.Policies, policyView{
			Name: p.Name, Definition: p.Definition, Shadow: p.Shadow,
			Admitted: d.Admitted, Denied: d.Denied + d.ShadowDenied,
			AdmittedRate: rate(b.Admitted, d.Admitted),
			DeniedRate:   rate(b.Denied+b.ShadowDenied, d.Denied+d.ShadowDenied),
		})
	}
	if v.Omitted = len(v.Policies) - maxPolicies; v.Omitted > 0 {
		slices.SortStableFunc(v.Policies, func(a, b policyView) int {
			return cmp.Or(cmp.Compare(b.AdmittedRate+b.DeniedRate, a.AdmittedRate+a.DeniedRate),
				cmp.Compare(b.Admitted+b.Denied, a.Admitted+a.Denied))
		})
		v.Policies = v.Policies[:maxPolicies]
	}
	v.Omitted = max(0, v.Omitted)
	slices.SortFunc(v.Policies, func(a, b policyView) int { return cmp.Compare(a.Name, b.Name) })
}

func viewKeys(k Keys) keysView {
	v := keysView{Expired: k.Expired, Evicted: k.Evicted, Hits: k.Hits, Misses: k.Misses}
	v.Types = append([]TypeKeys{}, k.Types...) // not null: a node may lead no group
	v.Databases = []int{}
	for _, db := range k.Databases {
		v.Databases = append(v.Databases, db.Number)
		v.Total += db.Keys
		v.Expires += db.Expires
	}
	slices.Sort(v.Databases)
	return v
}

func viewDenied(list []DeniedKey) []deniedKey {
	views := make([]deniedKey, len(list))
	for i, d := range list {
		views[i] = deniedKey{
			Database: d.Database, ID: idOf(d), Name: shown(d),
			Count: d.Count, Rule: d.Rule,
		}
	}
	return views
}

// shown returns the name of a key, and says if it was cut.
func shown(d DeniedKey) string {
	if d.Hash != 0 {
		return strings.ToValidUTF8(readable(d.Name), "") + "…"
	}
	return readable(d.Name)
}

// readable returns the name of a key as text. It is quoted if parts of it are not printable.
func readable(name []byte) string {
	text := string(name)
	visible := utf8.ValidString(text) && text != ""
	for _, r := range text {
		visible = visible && unicode.IsPrint(r)
	}
	if visible {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// statusOf returns a short description of the server's health.
func statusOf(s *State, ready error) statusView {
	switch {
	case s.Disk.State == "failed":
		return statusView{"bad", "disk failed"}
	case s.Disk.State == "full":
		return statusView{"bad", "disk full"}
	case ready != nil:
		return statusView{"bad", ready.Error()}
	case s.Memory.Max > 0 && s.Memory.Keys+s.Memory.Overhead > s.Memory.Max/10*9:
		return statusView{"warn", "memory nearly full"}
	case s.Disk.LastSaveFailed:
		return statusView{"warn", "the last snapshot failed"}
	case s.Clock.State == "waiting":
		return statusView{"warn", "the system clock was set"}
	}
	return statusView{"ok", "healthy"}
}
