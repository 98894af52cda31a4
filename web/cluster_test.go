package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/overview"
	"rlserver/internal/stats"
)

func exampleCluster(groups int) *overview.Cluster {
	c := &overview.Cluster{Name: "a", Proxy: overview.Proxy{
		Clients: 1, LinksIn: 2, LinksOut: 3, Calls: 4, Again: 5, Unknown: 6, Failed: 7, LinkWaits: 8,
	}, Nodes: []overview.Node{
		{Name: "a", Host: "a", Port: 6379, Up: true, Leads: 1, Replicas: groups}, {Name: "b", Heard: -1},
	}}
	for i := range groups {
		c.Groups = append(c.Groups, overview.Group{
			Number: i, Leader: "b", Role: overview.Follower, Term: 3, LogEnd: 9, Committed: 8, Applied: 7,
			LagEntries: 2, Lag: 1500 * time.Millisecond, Counts: overview.Counts{
				ReplicaCounts: overview.ReplicaCounts{
					ElectionsCalled: 4, ElectionsWon: 1, LeaderChanges: 5, HandOvers: 6, Rebuilds: 7, Snapshots: 8,
					FailedSnapshots: 2, Digests: 9,
				},
				GroupCounts: stats.GroupCounts{Holding: 1, Held: 2, Refused: 5, Uncertain: 3, Repeat: 4},
			},
		})
	}
	return c
}

func TestMetricsOfACluster(t *testing.T) {
	f := newFake()
	f.state.Cluster = exampleCluster(2)
	f.state.Cluster.Drained = true
	f.state.Cluster.Groups[1].Role, f.state.Cluster.Groups[1].Leader = overview.None, ""
	f.state.Cluster.Timeout, f.state.Cluster.NeededTimeout = time.Second, 1500*time.Millisecond
	_, address := serving(t, options(f))
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, line := range []string{
		`proxy_clients 1`, `proxy_links{direction="in"} 2`, `proxy_links{direction="out"} 3`, `proxy_calls_total 4`,
		`proxy_calls_sent_again_total 5`, `proxy_errors_total{reason="unknown"} 6`,
		`proxy_errors_total{reason="failed"} 7`, `proxy_link_waits_total 8`, `log_fsync_duration_seconds_count 0`,
		`cluster_nodes 2`, `cluster_groups 2`, `cluster_node_up{node="a"} 1`, `cluster_node_up{node="b"} 0`,
		`cluster_node_groups_led{node="a"} 1`, `group_has_leader{group="0"} 1`, `group_has_leader{group="1"} 0`,
		`group_role{group="0",role="follower"} 1`, `group_role{group="0",role="leader"} 0`,
		`group_role{group="1",role="none"} 1`, `group_term{group="0"} 3`, `group_log_end_index{group="0"} 9`,
		`group_committed_index{group="0"} 8`, `group_applied_index{group="0"} 7`, `group_lag_entries{group="0"} 2`,
		`group_lag_seconds{group="0"} 1.5`, `group_elections_called_total{group="0"} 4`,
		`group_elections_won_total{group="0"} 1`, `group_leader_changes_total{group="0"} 5`,
		`group_handovers_total{group="0"} 6`, `group_rebuilds_total{group="0"} 7`,
		`group_snapshots_total{group="0",outcome="success"} 8`, `group_snapshots_total{group="0",outcome="failure"} 2`,
		`group_digests_total{group="0"} 9`, `group_holding_calls{group="0"} 1`, `group_held_calls_total{group="0"} 2`,
		`group_refused_calls_total{group="0"} 5`,
		`cluster_moves_in_progress 0`, `cluster_drained 1`, `cluster_timeout_seconds 1`,
		`cluster_timeout_needed_seconds 1.5`,
		`group_uncertain_replies_total{group="0"} 3`, `group_tryagain_replies_total{group="0"} 4`,
	} {
		assert.Contains(t, string(text), "\nrlserver_"+line+"\n")
	}
	assert.NotContains(t, string(text), `group_term{group="1"}`, "of a group without a replica here")
}

// An event has a bounded number of groups: those in trouble, then those that this node leads.
func TestManyGroupsAreCut(t *testing.T) {
	c := exampleCluster(200)
	for i := range c.Groups {
		c.Groups[i].Lag = 0
	}
	c.Groups[150].Leader, c.Groups[160].Lag, c.Groups[170].Role = "", 2*time.Second, overview.Leader
	v := viewCluster(c)
	require.Len(t, v.Groups, maxGroupViews)
	assert.Equal(t, 200-maxGroupViews, v.Omitted)
	var numbers []string
	for i := range v.Groups {
		numbers = append(numbers, fmt.Sprint(v.Groups[i].Number))
	}
	assert.Equal(t, "59 60 150 160 170", strings.Join(numbers[len(numbers)-5:], " "))
	assert.Nil(t, viewCluster(nil), "a server alone")
}
