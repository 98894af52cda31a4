package clientmem

import (
	"sync"
	"time"
)

// RecentMax is the largest of the values of the last 8 seconds, for INFO.
type RecentMax struct {
	mu    sync.Mutex
	slots [8]struct{ second, value int64 }
}

func (r *RecentMax) note(value int64) {
	second := time.Now().Unix()
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := &r.slots[second%int64(len(r.slots))]
	if slot.second != second {
		slot.second, slot.value = second, 0
	}
	slot.value = max(slot.value, value)
}

// Value returns the largest recent value, 0 if there is none.
func (r *RecentMax) Value() (most int64) {
	oldest := time.Now().Unix() - int64(len(r.slots))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slot := range r.slots {
		if slot.second > oldest {
			most = max(most, slot.value)
		}
	}
	return most
}
