package limit

import "testing"

// counted is a log of hits a second apart, all in the future, that counts what it is asked.
type counted struct {
	first, hits int
	asked       int
}

func (c *counted) Len() int         { return c.hits }
func (c *counted) At(i int) float64 { c.asked++; return float64(c.first + i*1000) }
func (c *counted) After(t float64) int {
	c.asked++
	return max(0, min(c.hits, (int(t)-c.first)/1000+1))
}

// A call asks a bounded number of questions, whatever the log holds, and its answer is never too
// early.
func TestStepsOverTheFutureAreBounded(t *testing.T) {
	rules := make([]Window, 128)
	for i := range rules {
		rules[i] = Window{Limit: 1, Length: 1001 + int64(i)}
	}
	log := &counted{first: 1000, hits: 1 << 20}
	d := DecideAll(rules, log, 1000, 1)
	if most := 3*MaxSteps + 20*len(rules); log.asked > most {
		t.Errorf("asked %d questions, at most %d were expected", log.asked, most)
	}
	if d.Allowed || !DecideAll(rules, log, 1000+d.RetryAfter, 1).Allowed {
		t.Errorf("%+v is too early", d)
	}
}
