package budgets

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A call whose client is gone, or that was sent again, may wait in a node for a leader, and reserve
// after that.
func TestCallsThatMayReserveLateAreNotForgotten(t *testing.T) {
	const ttl, slow = 300_000, 2_000_000
	latest := callTimeout.Microseconds() + ttl + slow
	reserved := []any{[]any{"a", int64(1), int64(1)}}
	at := func(t int64) sent { return sent{first: t, answered: t + 100, times: 1} }
	for _, hold := range []sent{{first: 0}, {first: 0, last: 1, answered: 10, times: 2}} {
		r := &run{report: &Report{}, history: newHistory()}
		x := &call{id: "a", ttl: ttl, slow: slow, lost: hold.answered == 0, estimate: amounts{1, 1, 1}}
		r.history.begin(x, 0, x.lost)
		if hold.times > 0 {
			r.history.held(x, hold, false)
		}
		r.compare(0, dollars, nil, at(latest-1000))
		r.compare(0, dollars, reserved, at(latest-500))
		assert.Empty(t, r.report.Findings())
		r.compare(0, dollars, nil, at(latest+forgetAfter+2))
		r.compare(0, dollars, reserved, at(latest+forgetAfter+200))
		assert.Len(t, r.report.Findings(), 1, "it lapsed long ago")
	}
}
