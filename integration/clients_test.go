package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The programs in the folder clients use a cluster with clients in other languages. Their arguments
// are the prefix of their keys, and the addresses of the nodes. They test the features of their
// library, and print ready. Then they call RL.SLIDE until their input ends, and print progress for
// every 100 replies. At the end they print a clientReport.

// clientReport is the result of a client.
type clientReport struct {
	Admitted []int          `json:"admitted"` // of each key
	Held     []int          `json:"held"`     // hits in the log of each key
	Errors   map[string]int `json:"errors"`
	Calls    int            `json:"calls"`
	Longest  int            `json:"longest_ms"`
}

// clientLimit is the limit of the key k of each client, per hour.
func clientLimit(k int) int { return 10 + 50*k }

// clusterUser is a client that uses the cluster while its nodes fail.
type clusterUser struct {
	progress func() int // in hundreds of replies
	end      func(t *testing.T) clientReport
}

// program starts a program of the folder clients.
func program(t *testing.T, addresses string, command ...string) clusterUser {
	t.Helper()
	name := command[len(command)-1]
	cmd := exec.Command(command[0], append(command[1:], filepath.Base(name), addresses)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("CLIENTS_DIR")+"/node_modules")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	p := start(t, cmd)
	require.True(t, p.becomesReady(), "%s: %s", name, p.output())
	return clusterUser{
		func() int { return strings.Count(p.stdout.String(), "progress\n") },
		func(t *testing.T) (report clientReport) {
			require.NoError(t, input.Close())
			await(t, func() bool { return isClosed(p.ended) })
			require.True(t, cmd.ProcessState.Success(), "%s: %s", name, p.output())
			lines := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &report), "%s: %s", name, p.output())
			return report
		},
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// library starts a client of Go, given what RL.SLIDE and ZCARD reply.
func library(
	name string, slide func(key string, limit int) (int64, error), count func(key string) (int64, error),
) clusterUser {
	var calls atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan clientReport, 1)
	key := func(k int) string { return fmt.Sprint(name, ":", k) }
	go func() {
		const keys = 20
		report := clientReport{Admitted: make([]int, keys), Errors: make(map[string]int)}
		for k := 0; ctx.Err() == nil; k = (k + 1) % keys {
			begun := time.Now()
			admitted, err := slide(key(k), clientLimit(k))
			report.Longest = max(report.Longest, int(time.Since(begun).Milliseconds()))
			if err != nil {
				report.Errors[strings.Fields(err.Error())[0]]++
				continue
			}
			report.Admitted[k] += int(admitted)
			report.Calls = int(calls.Add(1))
		}
		for k := range keys {
			held, err := count(key(k))
			for begun := time.Now(); err != nil && time.Since(begun) < time.Minute; {
				time.Sleep(10 * time.Millisecond) // a group may have been handed back just now
				held, err = count(key(k))
			}
			if err != nil {
				report.Errors["ERR ZCARD: "+err.Error()]++
			}
			report.Held = append(report.Held, int(held))
		}
		done <- report
	}()
	return clusterUser{
		func() int { return int(calls.Load()) / 100 },
		func(*testing.T) clientReport { stop(); return <-done },
	}
}

func goRedisUser(t *testing.T, c *nodes) clusterUser {
	// by default, go-redis notices a failed node only after a minute
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.addresses(), ClusterStateReloadInterval: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { client.Close() })
	return library("go-redis", func(key string, limit int) (int64, error) {
		reply, err := client.Do(context.Background(), "RL.SLIDE", key, limit, "1h").Int64Slice()
		if err != nil {
			return 0, err
		}
		return reply[0], nil
	}, func(key string) (int64, error) { return client.ZCard(context.Background(), key).Result() })
}

func rueidisUser(t *testing.T, c *nodes) clusterUser {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: c.addresses(), DisableCache: true,
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: time.Second},
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return library("rueidis", func(key string, limit int) (int64, error) {
		call := client.B().Arbitrary("RL.SLIDE").Keys(key).Args(strconv.Itoa(limit), "1h").Build()
		reply, err := client.Do(context.Background(), call).AsIntSlice()
		if err != nil {
			return 0, err
		}
		return reply[0], nil
	}, func(key string) (int64, error) {
		return client.Do(context.Background(), client.B().Zcard().Key(key).Build()).AsInt64()
	})
}

// TestClusterClients kills nodes with SIGKILL one after another, and starts them again, while
// clients of five libraries call RL.SLIDE. No client exceeds its limits, and all continue after
// each failure. `make clients` runs it.
func TestClusterClients(t *testing.T) {
	dir := os.Getenv("CLIENTS_DIR")
	if dir == "" {
		t.Skip("make clients runs it")
	}
	c := startCluster(t, 3)
	at := strings.Join(c.addresses(), ",")
	here, err := os.Getwd()
	require.NoError(t, err)
	source := func(name string) string { return filepath.Join(here, "clients", name) }
	users := map[string]clusterUser{
		"redis-py": program(t, at, dir+"/python/bin/python", source("cluster.py")),
		"ioredis":  program(t, at, "node", source("cluster.cjs")),
		"lettuce":  program(t, at, "java", "-cp", dir+"/jars/*", source("Cluster.java")),
		"go-redis": goRedisUser(t, c),
		"rueidis":  rueidisUser(t, c),
	}
	// goOn waits until each client has got replies again.
	goOn := func() {
		for _, user := range users {
			before := user.progress()
			await(t, func() bool { return user.progress() > before })
		}
	}
	failures, err := strconv.Atoi(os.Getenv("CLIENTS_FAILURES"))
	if err != nil {
		failures = 20
	}
	for n := range failures {
		goOn()
		c.kill(n % 3)
		goOn()
		c.start(n % 3)
		c.settled()
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		report := users[name].end(t)
		assert.NotContains(t, report.Errors, "ERR", name)
		admitted, held := 0, 0
		for k := range report.Admitted {
			assert.LessOrEqual(t, report.Admitted[k], clientLimit(k), "%s, key %d", name, k)
			assert.LessOrEqual(t, report.Held[k], clientLimit(k), "%s, key %d", name, k)
			assert.GreaterOrEqual(t, report.Held[k], report.Admitted[k], "%s, key %d: a hit is lost", name, k)
			admitted, held = admitted+report.Admitted[k], held+report.Held[k]
		}
		t.Logf("%s: %d calls, %d admitted, %d permits lost, longest call %d ms, errors %v",
			name, report.Calls, admitted, held-admitted, report.Longest, report.Errors)
	}
}
