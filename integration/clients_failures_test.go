//go:build linux && rueidis

package integration

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/integration/network"
)

// TestClusterClients kills nodes with SIGKILL, stops them with SIGSTOP and cuts them off, one after
// another, while clients of five libraries call RL.SLIDE. While a node is gone, each library gets
// replies for all its keys. No client exceeds its limits. `make clients` runs it.
func TestClusterClients(t *testing.T) {
	dir := os.Getenv("CLIENTS_DIR")
	if dir == "" {
		t.Skip("make clients runs it")
	}
	if !inNamespace() && runInNamespace(t) {
		return
	}
	c, failures := failingCluster(t)
	c.balanced()
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
	for _, user := range users {
		user.begin()
	}
	count, err := strconv.Atoi(os.Getenv("CLIENTS_FAILURES"))
	if err != nil {
		count = 12
	}
	longest := make(map[string]map[string]int) // by failure and library, ms
	for n := range count {
		c.balanced()
		goOn(t, users, nil)
		f := failures[n%len(failures)]
		if longest[f.name] == nil {
			longest[f.name] = make(map[string]int)
		}
		node := n / len(failures) % len(c.run)
		f.begin(node)
		goOn(t, users, longest[f.name])
		f.end(node)
		goOn(t, users, longest[f.name])
		c.settled()
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		checkReport(t, name, users[name].end(t))
		for _, f := range failures {
			t.Logf("%s: longest call when a node is %s: %d ms", name, f.name, longest[f.name][name])
		}
	}
}

// goOn waits until each client has got replies for all its keys twice, and notes the longest calls.
// A round may have begun before the failure: the second one has not.
func goOn(t *testing.T, users map[string]clusterUser, longest map[string]int) {
	t.Helper()
	before := make(map[string]int)
	for name, user := range users {
		before[name] = len(user.progress())
	}
	for name, user := range users {
		var rounds []int
		await(t, func() bool {
			rounds = user.progress()
			return len(rounds) > before[name]+1
		})
		if longest != nil {
			longest[name] = max(longest[name], slices.Max(rounds[before[name]:]))
		}
	}
}

func checkReport(t *testing.T, name string, report clientReport) {
	assert.NotContains(t, report.Errors, "ERR", name)
	assert.Equal(t, clientLibraries*clientKeys, report.Keys, "%s does not find the keys of all nodes", name)
	admitted, held := 0, 0
	for k := range report.Admitted {
		assert.LessOrEqual(t, report.Admitted[k], clientLimit(k), "%s, key %d", name, k)
		assert.LessOrEqual(t, report.Held[k], clientLimit(k), "%s, key %d", name, k)
		assert.GreaterOrEqual(t, report.Held[k], report.Admitted[k], "%s, key %d: a hit is lost", name, k)
		admitted, held = admitted+report.Admitted[k], held+report.Held[k]
	}
	t.Logf("%s: %d calls, %d admitted, %d permits lost, errors %v", name, report.Calls, admitted, held-admitted,
		report.Errors)
}

// failure is what is done to a node.
type failure struct {
	name       string
	begin, end func(node int)
}

// failingCluster starts a cluster, and returns what can be done to it.
func failingCluster(t *testing.T) (*nodes, []failure) {
	c := newCluster(t, 3, nil, "--protected-mode", "no")
	signal := func(s syscall.Signal) func(int) {
		return func(node int) { require.NoError(t, c.run[node].cmd.Process.Signal(s)) }
	}
	failures := []failure{{"killed", c.kill, c.start}, {"stopped", signal(syscall.SIGSTOP), signal(syscall.SIGCONT)}}
	if !inNamespace() {
		t.Log("NOT TESTED: nodes that are cut off, as this machine does not give network namespaces")
		c.startAll()
		return c, failures
	}
	net := c.inNetwork()
	cutOff := func(node int) {
		for host := range len(c.run) + 1 {
			net.Set(node+1, host, network.Link{Cut: true})
			net.Set(host, node+1, network.Link{Cut: true})
		}
	}
	c.startAll()
	return c, append(failures, failure{"cut off", cutOff, func(int) { net.Heal() }})
}
