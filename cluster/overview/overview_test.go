package overview

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"rlserver/internal/stats"
)

func example() *Cluster {
	return &Cluster{
		Name: "a", Drained: true, Proxy: Proxy{1, 2, 3, 4, 5, 6, 7, 8},
		Nodes: []Node{
			{Name: "a", Host: "a", Port: 6379, Up: true, Leads: 1, Replicas: 2, Version: "1"},
			{Name: "b", Host: "b", Port: 6379, Heard: -1, Leaving: true, ClockOff: true},
		},
		Groups: []Group{
			{
				Number: 0, First: 0, Last: 8191, Leader: "a", Role: Leader, Replicas: []string{"a", "b"}, Term: 3,
				LogEnd: 12, Committed: 11, Applied: 10, LagEntries: 2, Lag: 5 * time.Millisecond,
				Policies: "ab12", Counts: Counts{
					ReplicaCounts: ReplicaCounts{
						ElectionsCalled: 1, ElectionsWon: 1, LeaderChanges: 2, HandOvers: 3, Rebuilds: 4, Snapshots: 5,
						FailedSnapshots: 6, Digests: 7,
					},
					GroupCounts: stats.GroupCounts{Holding: 1, Held: 7, Refused: 11, Uncertain: 8, Repeat: 9},
				},
			},
			{Number: 1, First: 8192, Last: 16383, Role: Follower, Lag: time.Second, LagEntries: 1, Counts: Counts{
				ReplicaCounts: ReplicaCounts{ElectionsCalled: 10}, GroupCounts: stats.GroupCounts{Uncertain: 1},
			}},
			{Number: 2, Role: None, Leader: "b"},
		},
	}
}

func TestInfo(t *testing.T) {
	var b strings.Builder
	write := func(name string, value any) { fmt.Fprintf(&b, "%s:%v\n", name, value) }
	c := example()
	c.WriteCluster(write)
	assert.Equal(t, `cluster_node:a
cluster_nodes:2
cluster_nodes_up:1
cluster_nodes_leaving:1
cluster_nodes_clock_off:1
cluster_timeout_ms:0
cluster_timeout_needed_ms:0
cluster_map_version:0
cluster_moves_in_progress:0
cluster_drained:1
cluster_ready:0
cluster_not_ready_because:group 1 has no leader that this node hears
cluster_groups:3
cluster_groups_replicated:2
cluster_groups_led:1
cluster_groups_without_leader:1
cluster_groups_broken:0
cluster_elections_called:11
cluster_elections_won:1
cluster_leader_changes:2
cluster_handovers:3
cluster_rebuilds:4
cluster_snapshots:5
cluster_failed_snapshots:6
cluster_digests:7
cluster_holding_calls:1
cluster_held_calls:7
cluster_refused_calls:11
cluster_uncertain_replies:9
cluster_tryagain_replies:9
proxy_clients:1
proxy_links_in:2
proxy_links_out:3
proxy_calls:4
proxy_calls_again:5
proxy_calls_unknown:6
proxy_calls_failed:7
proxy_link_waits:8
node0:name=a,address=a:6379,up=1,leaving=0,heard_ms=0,leads=1,replicas=2,clock_off=0,round_trip_us=0,sync_us=0,version=1
node1:name=b,address=b:6379,up=0,leaving=1,heard_ms=-1,leads=0,replicas=0,clock_off=1,round_trip_us=0,sync_us=0,version=
`, b.String())
	b.Reset()
	c.WriteReplication(write)
	assert.Equal(t, `lag_entries:3
lag_ms:1000
group0:slots=0-8191,role=leader,leader=a,term=3,committed=11,log_end=12,applied=10,lag_entries=2,lag_ms=5,replicas=2,`+
		`elections_called=1,elections_won=1,leader_changes=2,handovers=3,rebuilds=4,snapshots=5,failed_snapshots=6,digests=7,`+
		`policies=ab12,`+
		`holding_calls=1,held_calls=7,refused_calls=11,uncertain_replies=8,tryagain_replies=9
group1:slots=8192-16383,role=follower,leader=,term=0,committed=0,log_end=0,applied=0,lag_entries=1,lag_ms=1000,replicas=0,`+
		`elections_called=10,elections_won=0,leader_changes=0,handovers=0,rebuilds=0,snapshots=0,failed_snapshots=0,digests=0,`+
		`policies=,`+
		`holding_calls=0,held_calls=0,refused_calls=0,uncertain_replies=1,tryagain_replies=0
group2:slots=0-0,role=none,leader=b,holding_calls=0,held_calls=0,refused_calls=0,uncertain_replies=0,tryagain_replies=0
`, b.String())
}

func TestReady(t *testing.T) {
	assert.ErrorContains(t, new(Cluster).Ready(), "the cluster is not made yet")
	c := example()
	assert.EqualError(t, c.Ready(), "group 1 has no leader that this node hears")
	c.Groups[1].Leader = "b"
	c.Groups[2].Leader, c.Groups[2].AtRisk = "", "no leader"
	assert.NoError(t, c.ReadyForTraffic(), "of groups without a replica here others know more")
	assert.EqualError(t, c.Ready(), "group 2: no leader", "the cluster is ready if all groups are")
	c.Groups[2].AtRisk = ""
	assert.NoError(t, c.Ready())
	c.Groups[1].Disk = errors.New("no space left on device")
	assert.EqualError(t, c.Ready(), "the log of group 1 cannot be written: no space left on device")
	assert.EqualError(t, c.Disk(), "no space left on device")
	c.Groups[0].Role, c.Groups[0].Fault = Broken, "entry 7 is cut"
	assert.EqualError(t, c.Ready(), "the replica of group 0 is broken: entry 7 is cut")
}

func TestHeardAgo(t *testing.T) {
	for heard, want := range map[time.Duration]int64{-1: -1, -time.Hour: -1, 0: 0, 1: 0, time.Second: 1000} {
		assert.Equal(t, want, (&Node{Heard: heard}).HeardAgo())
	}
}
