package web

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/stats"
)

func TestRatesBetweenTwoStates(t *testing.T) {
	f := newFake()
	before := f.State()
	f.set(func(s *State) {
		s.Calls, s.Policies = 100, []Policy{{Name: "login", Decisions: stats.DecisionCounts{Admitted: 12, Denied: 1}}}
		commands := append([]Command(nil), s.Commands...)
		commands[0].Calls, commands[0].Decisions.Denied = 30, 13
		s.Commands = commands
	})
	v := between(before, f.State(), 2*time.Second)
	assert.Equal(t, 50.0, v.Rates.Calls)
	assert.Equal(t, 5.0, v.Rates.Denied)
	assert.Equal(t, counts{Admitted: 7, Denied: 13, Calls: 100}, v.Totals)
	assert.Equal(t, 10.0, v.Commands[0].CallRate)
	assert.Equal(t, 5.0, v.Policies[0].AdmittedRate)
	v = between(f.State(), before, time.Second)
	assert.Equal(t, 3.0, v.Rates.Denied, "counted from zero after CONFIG RESETSTAT")
}

func TestMostActivePoliciesAreShown(t *testing.T) {
	var before, now State
	for i := range 500 {
		before.Policies = append(before.Policies, Policy{Name: fmt.Sprintf("p%03d", i)})
		now.Policies = append(now.Policies, Policy{
			Name: fmt.Sprintf("p%03d", i), Decisions: stats.DecisionCounts{Denied: int64(i)},
		})
	}
	v := between(&before, &now, time.Second)
	require.Len(t, v.Policies, maxPolicies)
	assert.Equal(t, 400, v.Omitted)
	assert.Equal(t, "p400", v.Policies[0].Name)
}

func TestHistoryKeepsAnHourOfLimitedSeries(t *testing.T) {
	p := newHistory()
	for i := range 2 * points {
		v := &view{Time: int64(i), Rates: rates{Admitted: float64(i)}}
		v.Policies = []policyView{
			{Name: "always", AdmittedRate: 1},
			{Name: "never"},
			{Name: fmt.Sprint(i), DeniedRate: 1},
		}
		p.add(v)
	}
	var got struct {
		Step, Points int
		Times        []int64
		Figures      map[string][2][]float64
		Policies     map[string][2][]float64
	}
	require.NoError(t, json.Unmarshal(p.json(), &got))
	assert.Equal(t, 3600, got.Step*got.Points/1000)
	require.Len(t, got.Times, points)
	assert.EqualValues(t, points, got.Times[0])
	assert.Equal(t, 2.0*float64(points)-1, got.Figures["decisions"][0][points-1])
	assert.Len(t, got.Policies["always"][0], points)
	assert.NotContains(t, got.Policies, "never")
	assert.LessOrEqual(t, len(got.Policies), maxSeries)
	assert.Equal(t, &p.json()[0], &p.json()[0], "encoded once for all readers")
}

func TestUnprintableNamesAreQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"login:ann": "login:ann", "größe 5": "größe 5", "a\x00b": `"a\x00b"`, "\xff": `"\xff"`, "": `""`,
		"\u202egnp": `"\u202egnp"`,
	} {
		assert.Equal(t, want, readable([]byte(name)))
	}
}
