package integration

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestValuesGoToRedisAndBack moves every recorded value with DUMP and RESTORE to our server, from
// there to a real Redis and back, and compares the values. If no redis-server is installed, a
// second server of ours takes its place.
func TestValuesGoToRedisAndBack(t *testing.T) {
	servers := []*redis.Client{connect(t, startServer(t)), connect(t, startServer(t))}
	if _, err := exec.LookPath("redis-server"); err == nil {
		servers[1] = connect(t, startRedis(t))
	}
	file, err := os.Open("../internal/rdb/testdata/payloads-7.0.15.jsonl")
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	carried := 0
	for lines.Scan() {
		var recorded struct {
			Name, Payload string
			Content       []string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &recorded))
		payload, err := hex.DecodeString(recorded.Payload)
		require.NoError(t, err)
		if kind := recorded.Content[0]; kind == "list" || kind == "set" || kind == "stream" {
			continue
		}
		carried++
		carry(t, recorded.Name, string(payload), servers)
	}
	require.NoError(t, lines.Err())
	require.Greater(t, carried, 40)
}

func connect(t *testing.T, s *server) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	t.Cleanup(func() { client.Close() })
	return client
}

// carry restores a payload on the first server, dumps it, restores the dump on the second, and in
// the same way back on the first.
func carry(t *testing.T, name, payload string, servers []*redis.Client) {
	ctx := context.Background()
	var first any
	for i, server := range []*redis.Client{servers[0], servers[1], servers[0]} {
		require.NoError(t, server.RestoreReplace(ctx, "k", 0, payload).Err(), "%s: step %d", name, i)
		value := read(t, server)
		if i == 0 {
			first = value
		}
		assert.Equal(t, first, value, "%s: step %d", name, i)
		var err error
		payload, err = server.Dump(ctx, "k").Result()
		require.NoError(t, err)
	}
}

func read(t *testing.T, server *redis.Client) any {
	ctx := context.Background()
	kind, err := server.Type(ctx, "k").Result()
	require.NoError(t, err)
	var value any
	switch kind {
	case "string":
		value, err = server.Get(ctx, "k").Result()
	case "hash":
		value, err = server.HGetAll(ctx, "k").Result()
	default:
		value, err = server.ZRangeWithScores(ctx, "k", 0, -1).Result()
	}
	require.NoError(t, err)
	return value
}
