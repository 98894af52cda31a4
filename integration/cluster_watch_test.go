package integration

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// infoOf returns the fields of sections of INFO of a node.
func (c *nodes) infoOf(i int, sections ...string) map[string]string {
	fields := make(map[string]string)
	text := c.client(i).Info(c.t.Context(), sections...).Val()
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// TestClusterCanBeSeen looks at what the nodes of a cluster show of themselves, before and after
// one of them is killed.
func TestClusterCanBeSeen(t *testing.T) {
	t.Parallel()
	var pages []string
	for range 3 {
		pages = append(pages, freePort(t))
	}
	c := startClusterOf(t, 3, func(i int) []string {
		return []string{"--http-port", pages[i], "--http-bind", "127.0.0.1"}
	}, "--log-format", "json")
	get := func(i int, path string) (status int, text string) {
		response, err := http.Get("http://127.0.0.1:" + pages[i] + path)
		if !assert.NoError(t, err) {
			return 0, ""
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		assert.NoError(t, err)
		return response.StatusCode, string(body)
	}
	ready := func(i int) bool {
		status, _ := get(i, "/readyz")
		return status == http.StatusOK
	}

	leader := regexp.MustCompile(`,leader=(n\d),`)
	for i := range 3 {
		fields := c.infoOf(i, "cluster", "replication")
		assert.Equal(t, fmt.Sprint("n", i), fields["cluster_node"])
		assert.Equal(t, "3", fields["cluster_nodes"])
		assert.Equal(t, "4", fields["cluster_groups_replicated"])
		assert.Equal(t, "0", fields["cluster_groups_without_leader"])
		await(t, func() bool { return c.infoOf(i, "replication")["connected_slaves"] == "2" })
		for group := range 4 {
			line := fields[fmt.Sprint("group", group)]
			if found := leader.FindStringSubmatch(line); assert.NotNil(t, found, line) &&
				found[1] == fields["cluster_node"] {
				assert.Contains(t, line, ",role=leader,")
			}
		}
	}

	// the metrics have the figures of INFO, and what calls on all groups have done
	client := c.clusterClient()
	replicas, err := client.Do(t.Context(), "WAIT", 2, 0).Int()
	assert.NoError(t, err)
	assert.Equal(t, 1, replicas, "with the leader, one other node is a majority")
	for i := range 20 {
		for range 2 {
			require.NoError(t, client.Do(t.Context(), "RL.FIXED", fmt.Sprint("key", i), 1, "1h").Err())
		}
	}
	metric := regexp.MustCompile(`(?m)^(rlserver_[a-z_]+\{[^}]*\}) (\d+)$`)
	sum := func() map[string]int {
		sums := make(map[string]int)
		for i := range 3 {
			_, text := get(i, "/metrics")
			for _, found := range metric.FindAllStringSubmatch(text, -1) {
				n, _ := strconv.Atoi(found[2])
				sums[found[1]] += n
			}
		}
		return sums
	}
	assert.Equal(t, 20, sum()[`rlserver_decisions_total{command="rl.fixed",outcome="denied"}`])
	await(t, func() bool { // leadership may move while the nodes are asked
		sums := sum()
		good := ready(0) && ready(1) && ready(2) && sums[`rlserver_database_keys{db="0"}`] == 20
		for group := range 4 {
			good = good && sums[fmt.Sprintf(`rlserver_group_has_leader{group="%d"}`, group)] == 3 &&
				sums[fmt.Sprintf(`rlserver_group_role{group="%d",role="leader"}`, group)] == 1
		}
		return good
	})

	await(t, func() bool { return c.infoOf(0, "cluster")["cluster_groups_led"] != "0" })
	c.kill(0)
	await(t, func() bool {
		one, two := c.infoOf(1, "cluster"), c.infoOf(2, "cluster")
		return one["cluster_nodes_up"] == "2" && two["cluster_nodes_up"] == "2" &&
			one["cluster_groups_without_leader"] == "0" && two["cluster_groups_without_leader"] == "0" &&
			one["cluster_elections_won"]+two["cluster_elections_won"] != "00"
	})
	// on a slow machine the timeout may be over before a connection is refused
	because := regexp.MustCompile(`"msg":"this node leads the group".*"because":"(` +
		`the process of node n0 has ended: its port refuses connections|no word from node n0 for [0-9.m]*s)"`)
	await(t, func() bool { return because.MatchString(c.run[1].output() + c.run[2].output()) })

	status, why := get(2, "/readyz/traffic")
	assert.Equal(t, http.StatusOK, status, why)
	_, why = get(2, "/readyz")
	assert.Contains(t, why, "one more loss would stop it", "the next node must not be stopped")

	// without a majority the last node is alive, and not ready
	c.kill(1)
	await(t, func() bool {
		status, why := get(2, "/readyz/traffic")
		return status == http.StatusServiceUnavailable && strings.Contains(why, "has no leader that this node hears")
	})
	health := func(path string) error {
		return rlserver(t, "healthcheck", "http://127.0.0.1:"+pages[2]+path).Run()
	}
	assert.NoError(t, health("/healthz"))
	assert.Error(t, health("/readyz"))
	_, text := get(2, "/metrics")
	assert.Contains(t, text, "\nrlserver_ready 0\n")
	await(t, func() bool {
		return strings.Contains(c.run[2].output(), "the group has no leader that this node hears")
	})
}
