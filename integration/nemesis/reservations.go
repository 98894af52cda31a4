//go:build linux

package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"rlserver/cluster/clustertest"
)

// Reservations last for longer than the run, but for some, whose calls are made once: of these it
// is known when they must be gone.
const (
	lapsesAfter = 3 * time.Second
	// lapsesEvery is the distance between the reservations that lapse, of each key.
	lapsesEvery = 4
	// The time of a cluster that was started as a whole is that of the clock in the middle, or up
	// to half a second less.
	lapsesEarly = 700 * time.Millisecond
	// A node that was cut off, and leads as soon as it has caught up, knows only when the last
	// entry was made: the time then falls behind by as long as the group had no leader.
	lapsesLate = 15 * time.Second
)

// lapses reports whether a call makes a reservation that lapses.
func lapses(call clustertest.Call) bool {
	return call.Kind == clustertest.Hold && call.Reservation%lapsesEvery == 0
}

// reservation chooses a reservation of a key: a new one, or one to be reserved again or settled.
// One that lapses is reserved once.
func (k *key) reservation(kind clustertest.Kind) (reservation int, amount int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	amount = 1 + rand.Int64N(4)
	if kind == clustertest.Settle {
		return rand.IntN(min(k.reserved+1, clustertest.MaxReservations)), amount - 1
	}
	if k.reserved == clustertest.MaxReservations || k.reserved > 0 && rand.IntN(3) == 0 {
		return rand.IntN(k.reserved) | 1, amount
	}
	k.reserved++
	return k.reserved - 1, amount
}

// lapse adds the moment at which a reservation lapses to the calls on a key, which must be locked.
func (k *key) lapse(client int, begun, returned int64, call clustertest.Call) {
	if returned == math.MaxInt64 {
		k.unchecked = true
		return
	}
	call.Kind = clustertest.Lapse
	k.calls = append(k.calls, porcupine.Operation{
		ClientId: client, Input: call, Output: clustertest.Answer{},
		Call: begun + int64(lapsesAfter-lapsesEarly), Return: returned + int64(lapsesAfter+lapsesLate),
	})
}
