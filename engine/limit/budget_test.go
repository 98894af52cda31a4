package limit

import "testing"

// counted is a log of future hits, one per second, that counts lookups.
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

// A call makes a bounded number of lookups for any log, and its RetryAfter is never too early.
func TestDecideAllLooksUpBoundedHits(t *testing.T) {
	rules := make([]Window, 128)
	for i := range rules {
		rules[i] = Window{Limit: 1, Length: 1001 + int64(i)}
	}
	log := &counted{first: 1000, hits: 1 << 20}
	d := DecideAll(rules, log, 1000, 1)
	if most := 3*MaxSteps + 20*len(rules); log.asked > most {
		t.Errorf("%d lookups, at most %d were expected", log.asked, most)
	}
	if d.Allowed || !DecideAll(rules, log, 1000+d.RetryAfter, 1).Allowed {
		t.Errorf("%+v is too early", d)
	}
}
