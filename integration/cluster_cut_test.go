//go:build linux

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/integration/network"
)

// inside is set in the environment of a test that runs in a network namespace of its own.
const inside = "TEST_INSIDE"

func inNamespace() bool { return os.Getenv(inside) != "" }

// runInNamespace runs the test again in a network namespace of its own. It returns false if the
// machine gives none.
func runInNamespace(t *testing.T) bool {
	probe := exec.Command("ip", "tuntap", "add", "dev", "tun0", "mode", "tun")
	probe.SysProcAttr = network.Alone()
	if out, err := probe.CombinedOutput(); err != nil {
		fmt.Printf("no network namespaces here: %v %s\n", err, out)
		return false
	}
	path, err := built()
	require.NoError(t, err)
	flags := []string{"-test.run", "^" + t.Name() + "$", "-test.v", "-test.timeout", "0"}
	cmd := exec.Command("/proc/self/exe", flags...)
	cmd.Env = append(os.Environ(), inside+"=1", builtBefore+"="+path)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = network.Alone()
	require.NoError(t, cmd.Run())
	return true
}

// inNetwork gives the nodes of a cluster, which are not started yet, a network that can be cut. The
// test is host 0, node i is host i+1.
func (c *nodes) inNetwork() *network.Network {
	net := network.New()
	require.NoError(c.t, net.Join(0))
	for i := range c.run {
		host := i + 1
		space, err := network.NewNamespace()
		require.NoError(c.t, err)
		require.NoError(c.t, space.Do(func() error { return net.Join(host) }))
		c.hosts, c.spaces = append(c.hosts, network.Address(host)), append(c.spaces, space.Do)
	}
	return net
}

// A leader whose clients still reach it is cut off from the other nodes while scripts that have
// written run on it.
func TestALeaderIsCutOffWhileAScriptRuns(t *testing.T) {
	t.Parallel()
	if !inNamespace() {
		if !runInNamespace(t) {
			t.Skip("a network that can be cut needs network namespaces")
		}
		return
	}
	c := newCluster(t, 3, nil, append(scriptLeaders, "--protected-mode", "no")...)
	net := c.inNetwork()
	c.startAll()
	c.leaderIsLost(func(leader int) {
		for i := range c.run {
			if i != leader {
				net.Set(leader+1, i+1, network.Link{Cut: true})
				net.Set(i+1, leader+1, network.Link{Cut: true})
			}
		}
	}, func(int) { net.Heal() })
}
