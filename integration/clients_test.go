//go:build rueidis

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// The programs in the folder clients use a cluster with clients in other languages. Their arguments
// are the prefix of their keys, the addresses of the nodes, and how many keys there will be at the
// end. They test the features of their library, its calls on all nodes last, and print ready. After
// a line of input they call RL.SLIDE on their keys in turn until their input ends, and print
// progress when all have replied in turn, with the longest call since then, ms. At the end they
// count the keys of all nodes, and print a clientReport.

// clientReport is the result of a client.
type clientReport struct {
	Admitted []int          `json:"admitted"` // of each key
	Held     []int          `json:"held"`     // hits in the log of each key
	Errors   map[string]int `json:"errors"`
	Calls    int            `json:"calls"`
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
	progress func() []int // the longest call of each round of all keys, ms
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
		func() (rounds []int) {
			for line := range strings.Lines(p.stdout.String()) {
				if text, ok := strings.CutPrefix(line, "progress "); ok && strings.HasSuffix(text, "\n") {
					longest, _ := strconv.Atoi(strings.TrimSpace(text))
					rounds = append(rounds, longest)
				}
			}
			return rounds
		},
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
func (l library) run(ctx context.Context, progress func(longest int)) clientReport {
	longest := 0
	report := clientReport{Admitted: make([]int, clientKeys), Errors: make(map[string]int)}
	for ctx.Err() == nil {
		right := 0
		for k := range clientKeys {
			begun := time.Now()
			admitted, err := l.slide(l.key(k), clientLimit(k))
			longest = max(longest, int(time.Since(begun).Milliseconds()))
			if err != nil {
				report.Errors[strings.Fields(err.Error())[0]]++
				continue
			}
			report.Admitted[k] += int(admitted)
			report.Calls, right = report.Calls+1, right+1
		}
		if right == clientKeys {
			progress(longest)
			longest = 0
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
	var mu sync.Mutex
	var rounds []int
	progress := func(longest int) {
		mu.Lock()
		defer mu.Unlock()
		rounds = append(rounds, longest)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan clientReport, 1)
	return clusterUser{
		func() { go func() { done <- l.run(ctx, progress) }() },
		func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(rounds)
		},
		func(*testing.T) clientReport { stop(); return <-done },
	}
}

func goRedisUser(t *testing.T, c *nodes) clusterUser {
	// by default, go-redis notices a failed node only after a minute
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.addresses(), ClusterStateReloadInterval: time.Second, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: 3 * time.Second,
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
		Dialer: net.Dialer{Timeout: time.Second}, ConnWriteTimeout: 3 * time.Second,
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
