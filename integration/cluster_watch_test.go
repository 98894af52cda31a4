package integration

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
	c := startCluster(t, 3, "--log-format", "json")

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

	await(t, func() bool { return c.infoOf(0, "cluster")["cluster_groups_led"] != "0" })
	c.kill(0)
	await(t, func() bool {
		one, two := c.infoOf(1, "cluster"), c.infoOf(2, "cluster")
		return one["cluster_nodes_up"] == "2" && two["cluster_nodes_up"] == "2" &&
			one["cluster_groups_without_leader"] == "0" && two["cluster_groups_without_leader"] == "0" &&
			one["cluster_elections_won"]+two["cluster_elections_won"] != "00"
	})
	because := regexp.MustCompile(`"msg":"this node leads the group".*"because":"no word from node n0 for [0-9.m]*s"`)
	await(t, func() bool { return because.MatchString(c.run[1].output() + c.run[2].output()) })
}
