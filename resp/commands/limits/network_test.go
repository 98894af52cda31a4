package limits_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

func TestAddressesOfANetworkCountTogether(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	const definition = "-ERR 'IP4' has no place there: a policy is SLIDE limit window " +
		"[BAN denials for [max]] [IP4 bits] [IP6 bits] [SHADOW]"
	for _, step := range [][2]string{
		{"RL.POLICY SET login SLIDE 3 1m ip6 64 shadow IP4 24", "+OK"},
		{"RL.POLICY GET login", "$31 SLIDE 3 1m IP4 24 IP6 64 SHADOW"},
		{"RL.POLICY SET login SLIDE 3 1m IP4 24 IP6 64", "+OK"},
		{"RL.POLICY SET each SLIDE 5 1m", "+OK"},
		{"RL.POLICY SET host SLIDE 5 1m IP4 32 IP6 128", "+OK"},
		{"RL.CHECK 10.1.2.3 login", "*6 :1 :3 :2 :0 :60000 :0"},
		{"RL.CHECK [::ffff:10.1.2.4]:443 login each", "*6 :1 :3 :1 :0 :60000 :0"},
		{"RL.CHECK 10.1.2.3:50000 each login host", "*6 :1 :3 :0 :0 :60000 :1"},
		{"RL.CHECK 10.1.2.3 login host", "*6 :0 :3 :0 :60000 :60000 :0"},
		{"RL.CHECK 10.1.3.3 login", "*6 :1 :3 :2 :0 :60000 :0"},
		{"RL.CHECK 10.1.2.0/24 login", "*6 :0 :3 :0 :60000 :60000 :0"}, // the network by its name
		{"RL.CHECK 2001:DB8::1 login host", "*6 :1 :3 :2 :0 :60000 :0"},
		{"RL.CHECK [2001:db8::2%eth0]:1 login host", "*6 :1 :3 :1 :0 :60000 :0"},
		{"RL.CHECK ann login", "*6 :1 :3 :2 :0 :60000 :0"},
		{"ZCARD login:{10.1.2.0/24}", ":3"},
		{"ZCARD host:{10.1.2.3}", ":1"},
		{"ZCARD each:{10.1.2.3:50000}", ":1"},
		{"ZCARD login:{2001:db8::/64}", ":2"},
		{"ZCARD host:{2001:db8::2}", ":1"},
		{"ZCARD login:{ann}", ":1"},
		{"RL.POLICY SET login SLIDE 3 1m IP4 8", "+OK"}, // it begins anew
		{"RL.CHECK 10.1.2.3 login", "*6 :1 :3 :2 :0 :60000 :0"},
		{"RL.CHECK 2001:DB8::1 login", "*6 :1 :3 :2 :0 :60000 :0"},
		{"ZCARD login:{2001:DB8::1}", ":1"},
		{"RL.POLICY SET login SLIDE 3 1m IP4 33", "-ERR IP4 must be from 0 to 32"},
		{"RL.POLICY SET login SLIDE 3 1m IP4 -1", "-ERR IP4 must be from 0 to 32"},
		{"RL.POLICY SET login SLIDE 3 1m IP6 129", "-ERR IP6 must be from 0 to 128"},
		{"RL.POLICY SET login SLIDE 3 1m IP6 /64",
			"-ERR value is not an integer or out of range: IP6 must be from 0 to 128"},
		{"RL.POLICY SET login SLIDE 3 1m IP4 24 IP4 24", definition},
		{"RL.POLICY SET login SLIDE 3 1m IP6",
			"-ERR something is missing: a policy is SLIDE limit window " +
				"[BAN denials for [max]] [IP4 bits] [IP6 bits] [SHADOW]"},
		{"RL.POLICY GET login", "$16 SLIDE 3 1m IP4 8"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
}

// A user may check an address only with permission for the key of its network.
func TestPermissionIsForTheKeyOfTheNetwork(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET login SLIDE 3 1m IP4 24")
	near, far := ts.As("near", "+@all ~login:{10.1.2.3}"), ts.As("far", "+@all ~login:{10.1.2.0/24}")
	const denied = "This user has no permissions to access the 'login:{10.1.2.0/24}' key"
	assert.Contains(t, c.Do("ACL DRYRUN near RL.CHECK 10.1.2.3 login"), denied)
	assert.Equal(t, "+OK", c.Do("ACL DRYRUN far RL.CHECK 10.1.2.3 login"))
	assert.Contains(t, near.Do("RL.CHECK 10.1.2.3 login"), "-NOPERM")
	assert.Equal(t, "*6 :1 :3 :2 :0 :60000 :0", far.Do("RL.CHECK 10.1.2.3 login"))
}

func TestNetworksInTransactionsAndScripts(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET login SLIDE 3 1m IP4 24")
	for _, step := range [][2]string{
		{"MULTI", "+OK"},
		{"RL.CHECK 10.1.2.3 login", "+QUEUED"},
		{"RL.CHECK 10.1.2.4 login", "+QUEUED"},
		{"EXEC", "*2 *6 :1 :3 :2 :0 :60000 :0 *6 :1 :3 :1 :0 :60000 :0"},
	} {
		assert.Equal(t, step[1], c.Do(step[0]), step[0])
	}
	const script = "return redis.call('RL.CHECK', ARGV[1], 'login')"
	assert.Equal(t, "*6 :1 :3 :0 :0 :60000 :0",
		c.Send("EVAL", script, "1", "login:{10.1.2.0/24}", "10.1.2.9"))
	assert.Contains(t, c.Send("EVAL", script, "1", "login:{10.1.2.9}", "10.1.2.9"), "login:{10.1.2.0/24}")
}

// A call that waits has the keys of the networks as they were: it is not decided with others.
func TestWaitingCallsSeeThatTheirNetworkHasChanged(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Do("RL.POLICY SET login SLIDE 1 1m IP4 24")
	c.Do("RL.CHECK 10.1.2.3 login")
	waiting := ts.Dial()
	_, err := waiting.Write([]byte("RL.CHECK 10.1.2.4 login WAIT 1h\r\n"))
	require.NoError(t, err)
	ts.AwaitWaiting(1)
	c.Do("RL.POLICY SET login SLIDE 1 1m IP4 16")
	const again = "-TRYAGAIN the IP4 or IP6 of a policy has just been changed: send the call again"
	assert.Equal(t, again, strings.TrimSpace(waiting.Read()))
	assert.Equal(t, "*6 :1 :1 :0 :0 :60000 :0", c.Do("RL.CHECK 10.1.2.4 login"))
}
