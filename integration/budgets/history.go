package budgets

import "sync"

// What each call asks of its customer: a request, tokens, and micro-dollars.
const (
	requests = iota
	tokens
	dollars
	budgetsCount
)

// amounts are of each budget.
type amounts [budgetsCount]int64

// call is what a client knows of a reservation and its settlement.
type call struct {
	id       string
	customer int
	estimate amounts
	used     amounts // 0: it was not charged
	ttl      int64   // µs
	fast     int64   // by how much more has passed by the servers' time at most, µs
	slow     int64   // by how much less

	hold    sent // answered 0: nobody knows whether it was admitted
	allowed bool
	settle  sent // answered 0: not yet, or never; first 0: not sent
	lost    bool // a client that was killed has sent its reservation
	doubted bool // a client that was killed has sent its settlement
	gone    bool // RL.HOLDS has shown that it came back by itself
}

// history has the calls of all clients.
type history struct {
	mu    sync.Mutex
	calls []*call
	open  [customers]map[string]*call // by the ids: what may be reserved now, or was a moment ago
}

func newHistory() *history {
	h := &history{}
	for i := range h.open {
		h.open[i] = make(map[string]*call)
	}
	return h
}

// find returns what is known of a call: that was forgotten as it should have nothing reserved.
func (h *history) find(id string) (c call) {
	for _, x := range h.calls {
		if x.id == id {
			c = *x
		}
	}
	return c
}

// begin notes a call before its reservation is sent; lost: the client will be killed then.
func (h *history) begin(c *call, now int64, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.hold.first, c.lost = now, lost
	h.calls = append(h.calls, c)
	h.open[c.customer][c.id] = c
}

// held notes the reply to a reservation.
func (h *history) held(c *call, s sent, allowed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.hold, c.allowed = s, allowed
	if !allowed && s.times == 1 {
		delete(h.open[c.customer], c.id)
	}
}

// settling notes that a settlement is about to be sent.
func (h *history) settling(c *call, used amounts, now int64, doubted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.used, c.doubted = used, doubted
	if c.settle.first == 0 {
		c.settle.first = now
	}
}

// settled notes the reply to a settlement.
func (h *history) settled(c *call, s sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.first = c.settle.first
	c.settle = s
}
