package integration

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The ids of a policy are walked over all groups. An id is looked at and reset wherever it is.
func TestCustomersOfAClusterAtAGlance(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--failover-hold", "60000")
	proxy := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:" + c.proxy[0], MaxRetries: -1, ReadTimeout: -1, Protocol: 2,
	})
	t.Cleanup(func() { proxy.Close() })
	_, err := answer(t, proxy, "RL.POLICY", "SET", "p", "TOKEN", 9, 9, "1h")
	require.NoError(t, err)
	want := make(map[string]int)
	for i := range 40 {
		id := fmt.Sprint("id-", i)
		want[id] = 1
		_, err := answer(t, proxy, "RL.CHECK", id, "p")
		require.NoError(t, err)
	}
	walk := func(client *redis.Client, found map[string]int) {
		for cursor := "0"; ; {
			reply, err := answer(t, client, "RL.POLICY", "IDS", "p", "CURSOR", cursor, "COUNT", 100)
			require.NoError(t, err)
			parts := reply.([]any)
			for _, entry := range parts[1].([]any) {
				found[entry.([]any)[1].(string)] = int(entry.([]any)[3].(int64))
			}
			if cursor = parts[0].(string); cursor == "0" {
				return
			}
		}
	}
	all := make(map[string]int)
	walk(proxy, all)
	require.Equal(t, want, all)
	for i := range 40 {
		id := fmt.Sprint("id-", i)
		reply, err := answer(t, proxy, "RL.USAGE", id)
		require.NoError(t, err)
		require.EqualValues(t, 8, reply.([]any)[0].([]any)[7], "%v", reply)
		reply, err = answer(t, proxy, "RL.RESET", id, "p")
		require.NoError(t, err)
		require.EqualValues(t, 1, reply)
	}
	all = make(map[string]int)
	walk(proxy, all)
	require.Empty(t, all)
}
