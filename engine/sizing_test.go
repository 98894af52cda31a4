package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/limit"
)

// sizeOfLog is the memory of a log of hits as docs/OPERATE.md says for sizing: of n calls that are
// some ms apart, with a key of so many bytes.
func sizeOfLog(n int, apart int64, key int) int {
	each := 4
	for i, ms := range []int64{64, 8_192, 1_048_576} {
		if apart < ms {
			each = i + 1
			break
		}
	}
	for _, size := range []int{48, 56, 80, 104, 128} {
		if 41+key+n*each <= size {
			return 10 + size
		}
	}
	return 190 + key + n*each*5/4
}

// sizeOfLease is the same for a lease with an id of so many bytes, of n with a key.
func sizeOfLease(n, id int) int {
	if n <= 128 {
		return 20 + id
	}
	return 56 + id
}

// The weight of logs and leases is what docs/OPERATE.md says.
func TestSizing(t *testing.T) {
	for _, n := range []int{1, 5, 20, 60, 100, 1000, 5000} {
		for _, apart := range []int64{5, 1000, 60_000, 3_600_000} {
			c := newCaller(t, Options{Shards: 1})
			for range n {
				c.slide("user:0000001", []limit.Window{{Limit: 10_000, Length: limit.MaxDuration}}, 1, "")
				c.now += apart
			}
			assert.InEpsilon(t, sizeOfLog(n, apart, 12), c.e.Weight(), 0.3, "%d hits, %d ms apart", n, apart)
		}
	}
	for _, n := range []int{30, 128, 1000} {
		for _, id := range []string{"%012d", "%036d"} {
			c := newCaller(t, Options{Shards: 1})
			for i := range n {
				c.lease("jobs", limit.Lease{Limit: 10_000, TTL: 60_000}, fmt.Sprintf(id, i))
			}
			want := 350 + n*sizeOfLease(n, len(fmt.Sprintf(id, 0)))
			assert.InEpsilon(t, want, c.e.Weight(), 0.3, "%d leases like "+id, n, 0)
		}
	}
}
