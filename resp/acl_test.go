package resp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments"

func noCommand(name string) string {
	return "-NOPERM this user has no permissions to run the '" + name + "' command"
}

// as returns a client that is logged in as a user with these rules.
func (ts *testServer) as(user, rules string) *testClient {
	ts.t.Helper()
	require.Equal(ts.t, "+OK", ts.dial().do("ACL SETUSER "+user+" reset on nopass "+rules))
	c := ts.dial()
	require.Equal(ts.t, "+OK", c.do("AUTH "+user+" any"))
	return c
}

// A user can be given a single policy: its keys match policy:{id}.
func TestUserMayCheckOnePolicyOnly(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ts.dial().check([]answer{
		{"RL.POLICY SET login SLIDE 5 1m", "+OK"}, {"RL.POLICY SET mail SLIDE 5 1m", "+OK"},
	})
	ts.as("front", "+rl.check %RW~login:*").check([]answer{
		{"RL.CHECK ann login", "*6 :1 :5 :4 :0 :60000 :0"},
		{"RL.CHECK ann mail", noKey},
		{"RL.CHECK ann login mail", noKey},
		{"RL.CHECK login:x mail", noKey},
		{"RL.POLICY SET login SLIDE 50 1m", noCommand("rl.policy|set")},
		{"RL.SLIDE login:{ann} 5 1m", noCommand("rl.slide")},
		{"GET login:{ann}", noCommand("get")},
		{"DEL login:{ann}", noCommand("del")},
	})
	ts.as("reader", "+rl.check %R~login:*").check([]answer{{"RL.CHECK ann login", noKey}})
	ts.as("one", "+rl.check ~login:{ann}").check([]answer{
		{"RL.CHECK bob login", noKey}, {"RL.CHECK ann login", "*6 :1 :5 :3 :0 :60000 :0"},
	})
}

func TestLimiterKeysNeedPermission(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ts.as("ann", "+@ratelimit ~a* %R~r*").check([]answer{
		{"RL.ALL a1 SLIDE 5 1m a2 TOKEN 5 5 1m", "*6 :1 :5 :4 :0 :60000 :0"},
		{"RL.ALL a1 SLIDE 5 1m b TOKEN 5 5 1m", noKey},
		{"RL.TOKEN r 5 5 1m", noKey},
		{"RL.TOKEN r 5 5 1m COST 0", noKey},
		{"CL.THROTTLE a3 1 1 1", "*5 :0 :2 :1 :-1 :1"},
		{"CL.THROTTLE b 1 1 1", noKey},
		{"RL.RELEASE b x", noKey},
		{"RL.REFUND b 1", noKey},
		{"SET a1 v", noCommand("set")},
		{"PING", noCommand("ping")},
	})
	ts.as("bob", "+@all -@ratelimit ~*").check([]answer{
		{
			"RL.TOKEN k 5 5 1m",
			noCommand("rl.token"),
		}, {"RL.POLICY LIST", noCommand("rl.policy|list")}, {"SET k v", "+OK"},
	})
}

func TestLimitersAreInCategoryRatelimit(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	listed := ts.dial().do("ACL CAT ratelimit") + " "
	for _, name := range strings.Fields("rl.slide rl.token rl.multi rl.fixed rl.counter rl.all rl.lease rl.release " +
		"rl.refund rl.leaky rl.check rl.top rl.policy|set rl.policy|list cl.throttle gcra throttle") {
		assert.Contains(t, listed, " "+name+" ")
		assert.Contains(t, ts.dial().do("COMMAND INFO "+name), "+@ratelimit ")
	}
}

// The calls of a pipeline run under the same locks, but each is checked on its own.
func TestPipelineChecksEachCall(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.as("ann", "+rl.token ~a*")
	var lines, want []string
	for i := range 40 {
		key, reply := fmt.Sprint("a", i), "*5 :1 :5 :4 :0 :12000"
		if i%7 == 3 {
			key, reply = "b", noKey
		}
		lines, want = append(lines, "RL.TOKEN "+key+" 5 5 1m"), append(want, reply)
	}
	require.Equal(t, want, c.pipe(lines...))
	require.Equal(t, ":0", ts.dial().do("EXISTS b"))
}

// A change to a user applies from the next call, also within a pipeline that the user sent.
func TestUserChangeAppliesToTheNextCall(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.as("ann", "+get +acl|setuser ~a*")
	require.Equal(t, []string{"$-1", "+OK", noKey, "+OK", noCommand("acl|setuser"), noCommand("get")},
		c.pipe("GET a1", "ACL SETUSER ann resetkeys", "GET a1", "ACL SETUSER ann nocommands", "ACL SETUSER ann +@all",
			"GET a1"))
}

func TestExecChecksPermissionsAgain(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, admin := ts.as("ann", "+@all ~a* ~b*"), ts.dial()
	c.check([]answer{
		{"MULTI", "+OK"}, {"SET a1 v", "+QUEUED"}, {"SET b1 v", "+QUEUED"}, {"RL.SLIDE a2 1 1m", "+QUEUED"},
	})
	require.Equal(t, "+OK", admin.do("ACL SETUSER ann resetkeys ~a* -rl.slide"))
	const gone = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: no permission to "
	require.Equal(t, "*3 +OK "+gone+"touch the specified keys "+gone+"execute the command or subcommand", c.do("EXEC"))
	require.Equal(t, ":1", admin.do("EXISTS a1 b1 a2"))
	log := admin.do("ACL LOG")
	assert.Contains(t, log, "context $5 multi $6 object $8 rl.slide ")
	assert.Contains(t, log, "reason $3 key $7 context $5 multi $6 object $2 b1 ")
}

// block sends a call and returns when the server has queued it.
func (c *testClient) block(ts *testServer, line string) {
	c.t.Helper()
	before := ts.queues.Waiting.Load()
	_, err := c.Write([]byte(frame(strings.Fields(line)...)))
	require.NoError(c.t, err)
	c.eventually("the call waits", func() bool { return ts.queues.Waiting.Load() == before+1 })
}

func TestWaitingCallEndsWithItsPermission(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	admin := ts.dial()
	require.Equal(t, "*5 :1 :1 :0 :0 :60000", admin.do("RL.SLIDE a 1 1m"))
	for _, change := range []string{"-rl.slide -bzpopmin", "resetkeys ~b"} {
		ann, bob := ts.as("ann", "+rl.slide +bzpopmin +ping ~a ~z"), ts.as("bob", "+rl.slide +ping ~a")
		popper := ts.dial()
		require.Equal(t, "+OK", popper.do("AUTH ann x"))
		ann.block(ts, "RL.SLIDE a 1 1m WAIT 2m")
		bob.block(ts, "RL.SLIDE a 1 1m WAIT 2m")
		popper.block(ts, "BZPOPMIN z 0")
		require.Equal(t, "+OK", admin.do("ACL SETUSER ann "+change))
		assert.Contains(t, ann.read(), "-NOPERM this user has no permissions to ")
		assert.Contains(t, popper.read(), "-NOPERM this user has no permissions to ")
		require.Equal(t, "+PONG", ann.do("PING"), "the connection stays open")
		bob.eventually("other users still wait", func() bool { return ts.queues.Waiting.Load() == 1 })
		require.Equal(t, ":1", admin.do("ACL DELUSER bob"))
		bob.requireClosed()
		admin.eventually("bob's call has ended", func() bool { return ts.queues.Waiting.Load() == 0 })
	}
	assert.Contains(t, admin.do("ACL LOG"), "reason $3 key ")
}

func TestDelUserClosesConnections(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ann, other, bob := ts.as("ann", "+@all ~*"), ts.dial(), ts.as("bob", "+@all ~*")
	require.Equal(t, "+OK", other.do("AUTH ann x"))
	require.Equal(t, ":1", ann.do("ACL DELUSER ann"), "the caller gets its reply first")
	ann.requireClosed()
	other.requireClosed()
	require.Equal(t, "+PONG", bob.do("PING"))
	require.NotContains(t, bob.do("CLIENT LIST"), "user=ann")
}

// MONITOR shows the calls of all clients, so it ends when its user loses the permission.
func TestMonitorEndsWithThePermission(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	admin, m, other := ts.dial(), ts.as("ann", "+@all ~*"), ts.dial()
	require.Equal(t, "+OK", other.do("AUTH ann x"))
	require.Equal(t, "+OK", m.do("MONITOR"))
	require.Equal(t, "+OK", admin.do("ACL SETUSER ann -get"))
	require.Equal(t, "+PONG", m.do("PING"), "MONITOR goes on")
	m.monitored(1)
	require.Equal(t, "+OK", admin.do("ACL SETUSER ann -monitor"))
	m.requireClosed()
	assert.Equal(t, "+PONG", other.do("PING"), "the user's other connections stay open")
}

func TestClientCommandsShowUsers(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ann, admin := ts.as("ann", "+@all ~*"), ts.dial()
	assert.Contains(t, ann.do("CLIENT INFO"), " user=ann ")
	list := admin.do("CLIENT LIST USER ann")
	assert.Contains(t, list, " user=ann ")
	assert.NotContains(t, list, " user=default ")
	assert.Equal(t, "-ERR No such user 'bob'", admin.do("CLIENT KILL USER bob"))
	assert.Equal(t, ":1", admin.do("CLIENT KILL USER ann"))
	ann.requireClosed()
	assert.Equal(t, "+RESET", admin.do("RESET"))
	assert.Contains(t, admin.do("CLIENT INFO"), " user=default ")
}

func TestPasswordsAreNotShown(t *testing.T) {
	var log logBuffer
	ts := startServer(t, config.Defaults{}, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c, watcher := ts.dial(), ts.dial()
	require.Equal(t, "+OK", watcher.do("MONITOR"))
	require.Equal(t, "+OK", c.do("CONFIG SET slowlog-log-slower-than 0"))
	c.check([]answer{
		{"CONFIG SET requirepass sesame1", "+OK"}, {"ACL SETUSER ann on >sesame2 +@all ~*", "+OK"},
		{"AUTH ann sesame2", "+OK"}, {"AUTH default sesame1", "+OK"},
		{"AUTH ann sesame3", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"CONFIG SET requirepass (hidden)", "-ERR CONFIG SET failed (possibly related to argument 'requirepass') - " +
			"'(hidden)' is what CONFIG GET shows instead of a password"},
	})
	var shown string
	for _, line := range []string{"CONFIG GET *", "INFO everything", "ACL LIST", "ACL GETUSER ann",
		"ACL GETUSER default",
		"ACL LOG", "CLIENT LIST", "CLIENT INFO", "SLOWLOG GET", "ECHO last"} {
		shown += c.do(line)
	}
	for line := ""; !strings.Contains(line, "last"); shown += line {
		line = watcher.read()
	}
	assert.Contains(t, shown, "ACL", "SETUSER")
	assert.Contains(t, shown, "requirepass $8 (hidden)")
	assert.NotContains(t, shown+log.String(), "sesame")
}

func TestInfoACLFields(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ann, admin := ts.as("ann", "+get ~a"), ts.dial()
	ann.do("GET b")
	ann.do("PING")
	ann.do("SET a b")
	ann.do("AUTH nobody x")
	for field, want := range map[string]string{
		"acl_access_denied_auth": "1", "acl_access_denied_cmd": "2", "acl_access_denied_key": "1",
		"acl_access_denied_channel": "0", "acl_users": "2",
	} {
		assert.Equal(t, want, admin.field(field), field)
	}
	require.Equal(t, "+OK", admin.do("CONFIG RESETSTAT"))
	assert.Equal(t, "0", admin.field("acl_access_denied_cmd"))
}

func TestACLLimits(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	c.check([]answer{
		{"CONFIG SET acl-max-users 2 acl-max-user-size 1kb acllog-max-len 3", "+OK"},
		{"ACL SETUSER a", "+OK"},
		{"ACL SETUSER b", "-ERR There are too many users: acl-max-users is 2"},
		{"CONFIG SET acllog-max-len 100001", "-ERR CONFIG SET failed (possibly related to argument 'acllog-max-len') " +
			"- argument must be between 0 and 100000 inclusive"},
	})
	assert.Equal(t, "-ERR Usernames can't be empty", c.send("ACL", "SETUSER", "", "on"))
	assert.Contains(t, c.do("ACL SETUSER a ~"+strings.Repeat("x", 1000)), "acl-max-user-size is 1024")
	for i := range 10 {
		c.do(fmt.Sprint("AUTH ", strings.Repeat("u", 300), i, " x"))
	}
	log := ts.AccessLog.Latest(100)
	require.Len(t, log, 1, "the names are truncated to the same prefix")
	assert.EqualValues(t, 10, log[0].Count)
}

// A key pattern with many wildcards does not make a call slow.
func TestKeyPatternWithManyWildcards(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.as("ann", "+get ~"+strings.Repeat("[a-z]*", 300)+"!")
	require.Equal(t, noKey, c.do("GET "+strings.Repeat("a", 30_000)))
}
