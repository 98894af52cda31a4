package waitqueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/resptest"
)

// A call that waits for what is reserved is served in the millisecond in which it comes back: when
// the reservation lapses, or is settled with less.
func TestWaitingForReservations(t *testing.T) {
	for limit, key := range map[string]string{
		"RL.SLIDE k 5 1h": "k", "RL.TOKEN k 5 1 1h": "k", "RL.FIXED k 5 1000h": "k", "RL.COUNTER k 5 1000h": "k",
		"RL.MULTI k 5 1h 6 2h": "k", "RL.ALL k SLIDE 5 1h l FIXED 9 1000h": "k", "RL.CHECK ann p": "p:{ann}",
	} {
		t.Run(limit, func(t *testing.T) {
			resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
				b.Calls("holder", "RL.POLICY SET p SLIDE 5 1h")
				b.TakeReplies()
				holder := b.Calls("holder", limit+" COST 3 HOLD 400ms ID a")
				holder.Call(limit + " COST 2 HOLD 10s ID b")
				b.Calls("first", limit+" COST 2 WAIT 1m")
				b.Calls("second", limit+" COST 1 WAIT 1m")
				b.Calls("third", limit+" COST 2 WAIT 1m")
				b.Calls("too late", limit+" COST 5 WAIT 200ms")
				b.PassUntil(1000)
				b.Calls("settler", "RL.SETTLE "+key+" 0 ID b")
				b.PassUntil(2000)
				var order []string
				for _, r := range b.SortedReplies() {
					order = append(order, fmt.Sprintf("%d %s %.5s", r.At, r.Name, r.Text[3:]))
				}
				assert.Equal(t, []string{
					"0 holder :1 :5", "0 holder :1 :5", "0 too late :0 :5", "400 first :1 :5", "400 second :1 :5",
					"1000 settler *4 :1", "1000 third :1 :5",
				}, order)
			})
		})
	}
}

// One that waits for a reservation that is renewed waits for longer, and is denied as soon as that
// is beyond its timeout.
func TestWaitingForARenewedReservation(t *testing.T) {
	resptest.InBubble(t, func(t *testing.T, b *resptest.Bubble) {
		const limit = "RL.SLIDE k 5 1h"
		holder := b.Calls("holder", limit+" COST 5 HOLD 400ms ID a")
		b.Calls("patient", limit+" WAIT 1m")
		b.PassUntil(300)
		holder.Call(limit + " COST 5 HOLD 1s ID a")
		b.PassUntil(5000)
		var order []string
		for _, r := range b.SortedReplies() {
			order = append(order, fmt.Sprintf("%d %s %.5s", r.At, r.Name, r.Text[3:]))
		}
		assert.Equal(t, []string{"0 holder :1 :5", "300 holder :1 :5", "1300 patient :1 :5"}, order)
	})
}
