package integration

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who waits for what others have reserved goes on when that is settled at another node, or lapses,
// also after another node has come to lead.
func TestCallsThatWaitForReservationsInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, patient...)
	c.balanced()
	proxies := []*redis.Client{c.proxied(0, 2), c.proxied(1, 2), c.proxied(2, 2)}
	leads := func(i int) bool { return c.client(i).Get(t.Context(), "{k}none").Err() == redis.Nil }
	for _, moves := range []bool{false, true} {
		for _, settles := range []bool{true, false} {
			key, hold := "{k}"+strconv.FormatBool(moves)+strconv.FormatBool(settles), "1h"
			if !settles {
				hold = "1s"
			}
			begun := time.Now()
			_, err := answer(t, proxies[0], "RL.SLIDE", key, 5, "1h", "COST", 5, "HOLD", hold, "ID", "call")
			require.NoError(t, err)
			admitted := make(chan error, 1)
			go func() {
				reply, err := answer(t, proxies[1], "RL.ALL", key, "SLIDE", 5, "1h", "WAIT", "2h")
				if err == nil {
					assert.EqualValues(t, 1, reply.([]any)[0])
				}
				admitted <- err // nil unless the call is wrong
			}()
			if settles {
				await(t, func() bool {
					waiting := 0
					for i := range c.run {
						n, _ := strconv.Atoi(c.infoOf(i, "clients")["blocked_clients"])
						waiting += n
					}
					return waiting > 0 || len(admitted) > 0
				})
			}
			if moves {
				before := 0
				for !leads(before) {
					before = (before + 1) % 3
				}
				await(t, func() bool {
					return c.client(before).Do(t.Context(), "CLUSTER", "FAILOVER").Err() == nil && !leads(before)
				})
			}
			if settles {
				_, err = answer(t, proxies[2], "RL.SETTLE", key, 0, "ID", "call")
				require.NoError(t, err)
			}
			select {
			case err := <-admitted:
				assert.NoError(t, err, key)
			case <-time.After(patience):
				require.Fail(t, "a call still waits", key)
			}
			if !settles {
				assert.GreaterOrEqual(t, time.Since(begun), time.Second, "it had not lapsed")
			}
		}
	}
}
