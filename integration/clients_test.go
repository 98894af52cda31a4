package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
// are the prefix of their keys, the addresses of the nodes, and how many keys there will be at the
// end. They test the features of their library, its calls on all nodes last, and print ready. After
// a line of input they call RL.SLIDE on their keys in turn until their input ends, and print
// progress when all have replied. At the end they count the keys of all nodes, and print a
// clientReport.

// clientReport is the result of a client.
type clientReport struct {
	Admitted []int          `json:"admitted"` // of each key
	Held     []int          `json:"held"`     // hits in the log of each key
	Errors   map[string]int `json:"errors"`
	Calls    int            `json:"calls"`
	Longest  int            `json:"longest_ms"`
	Keys     int            `json:"keys"` // of all clients
}

const (
	clientLibraries = 5
	clientKeys      = 20 // of each
)

// clientLimit is the limit of the key k of each client, per hour.
func clientLimit(k int) int { return 10 + 50*k }

// clusterUser is a client that uses the cluster while its nodes fail.
type clusterUser struct {
	begin    func()
	progress func() int // in rounds of all keys
	end      func(t *testing.T) clientReport
}

// program starts a program of the folder clients.
func program(t *testing.T, addresses string, command ...string) clusterUser {
	t.Helper()
	name := command[len(command)-1]
	args := append(command[1:], filepath.Base(name), addresses, fmt.Sprint(clientLibraries*clientKeys))
	cmd := exec.Command(command[0], args...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("CLIENTS_DIR")+"/node_modules")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	p := start(t, cmd)
	require.True(t, p.becomesReady(), "%s: %s", name, p.output())
	return clusterUser{
		func() { io.WriteString(input, "begin\n") },
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

// library is a client of Go.
type library struct {
	name  string
	slide func(key string, limit int) (int64, error) // RL.SLIDE
	count func(key string) (int64, error)            // ZCARD
	size  func() (int64, error)                      // keys of all nodes
	flush func() error                               // of all nodes
}

// again repeats what fails while groups change their leaders.
func again(do func() error) (err error) {
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if err = do(); err == nil {
			return nil
		}
	}
	return err
}

// sizeIs checks that calls on all nodes find all keys.
func (l library) sizeIs(want int) error {
	return again(func() error {
		if size, err := l.size(); err != nil || size != int64(want) {
			return fmt.Errorf("%s finds %d keys of %d, %w", l.name, size, want, err)
		}
		return nil
	})
}

func (l library) key(k int) string { return fmt.Sprint(l.name, ":", k) }

// run makes calls until the context ends.
func (l library) run(ctx context.Context, rounds *atomic.Int64) clientReport {
	report := clientReport{Admitted: make([]int, clientKeys), Errors: make(map[string]int)}
	for ctx.Err() == nil {
		right := 0
		for k := range clientKeys {
			begun := time.Now()
			admitted, err := l.slide(l.key(k), clientLimit(k))
			report.Longest = max(report.Longest, int(time.Since(begun).Milliseconds()))
			if err != nil {
				report.Errors[strings.Fields(err.Error())[0]]++
				continue
			}
			report.Admitted[k] += int(admitted)
			report.Calls, right = report.Calls+1, right+1
		}
		if right == clientKeys {
			rounds.Add(1)
		}
	}
	for k := range clientKeys {
		err := again(func() error {
			held, err := l.count(l.key(k))
			if err == nil {
				report.Held = append(report.Held, int(held))
			}
			return err
		})
		if err != nil {
			report.Errors["ERR ZCARD: "+err.Error()]++
		}
	}
	if err := l.sizeIs(clientLibraries * clientKeys); err != nil {
		report.Errors["ERR "+err.Error()]++
	}
	report.Keys = clientLibraries * clientKeys
	return report
}

// user tests the calls on all nodes, and returns the client.
func (l library) user(t *testing.T) clusterUser {
	require.NoError(t, again(l.flush))
	for k := range clientKeys {
		require.NoError(t, again(func() error { _, err := l.slide(l.key(k), 1); return err }))
	}
	require.NoError(t, l.sizeIs(clientKeys))
	require.NoError(t, again(l.flush))
	require.NoError(t, l.sizeIs(0))
	var rounds atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan clientReport, 1)
	return clusterUser{
		func() { go func() { done <- l.run(ctx, &rounds) }() },
		func() int { return int(rounds.Load()) },
		func(*testing.T) clientReport { stop(); return <-done },
	}
}

func goRedisUser(t *testing.T, c *nodes) clusterUser {
	// by default, go-redis notices a failed node only after a minute
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.addresses(), ClusterStateReloadInterval: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { client.Close() })
	slide := func(key string, limit int) (int64, error) {
		reply, err := client.Do(context.Background(), "RL.SLIDE", key, limit, "1h").Int64Slice()
		if err != nil {
			return 0, err
		}
		return reply[0], nil
	}
	return library{
		"go-redis", slide,
		func(key string) (int64, error) { return client.ZCard(context.Background(), key).Result() },
		func() (int64, error) { return client.DBSize(context.Background()).Result() },
		func() error {
			return client.ForEachMaster(context.Background(), func(ctx context.Context, node *redis.Client) error {
				return node.FlushAll(ctx).Err()
			})
		},
	}.user(t)
}

func rueidisUser(t *testing.T, c *nodes) clusterUser {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: c.addresses(), DisableCache: true,
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: time.Second},
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	slide := func(key string, limit int) (int64, error) {
		call := client.B().Arbitrary("RL.SLIDE").Keys(key).Args(strconv.Itoa(limit), "1h").Build()
		reply, err := client.Do(context.Background(), call).AsIntSlice()
		if err != nil {
			return 0, err
		}
		return reply[0], nil
	}
	size := func() (sum int64, err error) {
		for _, node := range client.Nodes() {
			count, e := node.Do(context.Background(), node.B().Dbsize().Build()).AsInt64()
			sum, err = sum+count, errors.Join(err, e)
		}
		return sum, err
	}
	return library{
		"rueidis", slide,
		func(key string) (int64, error) {
			return client.Do(context.Background(), client.B().Zcard().Key(key).Build()).AsInt64()
		},
		size,
		func() (err error) {
			for _, node := range client.Nodes() {
				err = errors.Join(err, node.Do(context.Background(), node.B().Flushall().Build()).Error())
			}
			return err
		},
	}.user(t)
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
	for _, user := range users {
		user.begin()
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
		assert.Equal(t, clientLibraries*clientKeys, report.Keys, "%s does not find the keys of all nodes", name)
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
