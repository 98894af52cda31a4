package users_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp"
	"rlserver/resp/command/commandtest"
	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments"

func noCommand(name string) string {
	return "-NOPERM this user has no permissions to run the '" + name + "' command"
}

// A user can be given a single policy: its keys match policy:{id}.
func TestUserMayCheckOnePolicyOnly(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	ts.Dial().Check([]resptest.Answer{
		{"RL.POLICY SET login SLIDE 5 1m", "+OK"}, {"RL.POLICY SET mail SLIDE 5 1m", "+OK"},
	})
	ts.As("front", "+rl.check %RW~login:*").Check([]resptest.Answer{
		{"RL.CHECK ann login", "*6 :1 :5 :4 :0 :60000 :0"},
		{"RL.CHECK ann mail", noKey},
		{"RL.CHECK ann login mail", noKey},
		{"RL.CHECK login:x mail", noKey},
		{"RL.POLICY SET login SLIDE 50 1m", noCommand("rl.policy|set")},
		{"RL.SLIDE login:{ann} 5 1m", noCommand("rl.slide")},
		{"GET login:{ann}", noCommand("get")},
		{"DEL login:{ann}", noCommand("del")},
	})
	ts.As("reader", "+rl.check %R~login:*").Check([]resptest.Answer{{"RL.CHECK ann login", noKey}})
	ts.As("one", "+rl.check ~login:{ann}").Check([]resptest.Answer{
		{"RL.CHECK bob login", noKey}, {"RL.CHECK ann login", "*6 :1 :5 :3 :0 :60000 :0"},
	})
}

func TestLimiterKeysNeedPermission(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	ts.As("ann", "+@ratelimit ~a* %R~r*").Check([]resptest.Answer{
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
	ts.As("bob", "+@all -@ratelimit ~*").Check([]resptest.Answer{
		{
			"RL.TOKEN k 5 5 1m",
			noCommand("rl.token"),
		}, {"RL.POLICY LIST", noCommand("rl.policy|list")}, {"SET k v", "+OK"},
	})
}

func TestLimitersAreInCategoryRatelimit(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	listed := ts.Dial().Do("ACL CAT ratelimit") + " "
	for _, name := range strings.Fields("rl.slide rl.token rl.multi rl.fixed rl.counter rl.all rl.lease rl.release " +
		"rl.refund rl.leaky rl.check rl.top rl.policy|set rl.policy|list cl.throttle gcra throttle") {
		assert.Contains(t, listed, " "+name+" ")
		assert.Contains(t, ts.Dial().Do("COMMAND INFO "+name), "+@ratelimit ")
	}
}

// A change to a user applies from the next call, also within a pipeline that the user sent.
func TestUserChangeAppliesToTheNextCall(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.As("ann", "+get +acl|setuser ~a*")
	require.Equal(t, []string{"$-1", "+OK", noKey, "+OK", noCommand("acl|setuser"), noCommand("get")},
		c.Pipe("GET a1", "ACL SETUSER ann resetkeys", "GET a1", "ACL SETUSER ann nocommands", "ACL SETUSER ann +@all",
			"GET a1"))
}

func TestExecChecksPermissionsAgain(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c, admin := ts.As("ann", "+@all ~a* ~b*"), ts.Dial()
	c.Check([]resptest.Answer{
		{"MULTI", "+OK"}, {"SET a1 v", "+QUEUED"}, {"SET b1 v", "+QUEUED"}, {"RL.SLIDE a2 1 1m", "+QUEUED"},
	})
	require.Equal(t, "+OK", admin.Do("ACL SETUSER ann resetkeys ~a* -rl.slide"))
	const gone = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: no permission to "
	require.Equal(t, "*3 +OK "+gone+"touch the specified keys "+gone+"execute the command or subcommand", c.Do("EXEC"))
	require.Equal(t, ":1", admin.Do("EXISTS a1 b1 a2"))
	log := admin.Do("ACL LOG")
	assert.Contains(t, log, "context $5 multi $6 object $8 rl.slide ")
	assert.Contains(t, log, "reason $3 key $7 context $5 multi $6 object $2 b1 ")
}

// block sends a call and returns when the server has queued it.
func block(c *resptest.Client, ts *resptest.Server, line string) {
	c.T.Helper()
	before := ts.Queues().Waiting.Load()
	_, err := c.Write([]byte(commandtest.Frame(strings.Fields(line)...)))
	require.NoError(c.T, err)
	c.Eventually("the call waits", func() bool { return ts.Queues().Waiting.Load() == before+1 })
}

func TestWaitingCallEndsWithItsPermission(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	admin := ts.Dial()
	require.Equal(t, "*5 :1 :1 :0 :0 :60000", admin.Do("RL.SLIDE a 1 1m"))
	for _, change := range []string{"-rl.slide -bzpopmin", "resetkeys ~b"} {
		ann, bob := ts.As("ann", "+rl.slide +bzpopmin +ping ~a ~z"), ts.As("bob", "+rl.slide +ping ~a")
		popper := ts.Dial()
		require.Equal(t, "+OK", popper.Do("AUTH ann x"))
		block(ann, ts, "RL.SLIDE a 1 1m WAIT 2m")
		block(bob, ts, "RL.SLIDE a 1 1m WAIT 2m")
		block(popper, ts, "BZPOPMIN z 0")
		require.Equal(t, "+OK", admin.Do("ACL SETUSER ann "+change))
		assert.Contains(t, ann.Read(), "-NOPERM this user has no permissions to ")
		assert.Contains(t, popper.Read(), "-NOPERM this user has no permissions to ")
		require.Equal(t, "+PONG", ann.Do("PING"), "the connection stays open")
		bob.Eventually("other users still wait", func() bool { return ts.Queues().Waiting.Load() == 1 })
		require.Equal(t, ":1", admin.Do("ACL DELUSER bob"))
		bob.RequireClosed()
		admin.Eventually("bob's call has ended", func() bool { return ts.Queues().Waiting.Load() == 0 })
	}
	assert.Contains(t, admin.Do("ACL LOG"), "reason $3 key ")
}

func TestDelUserClosesConnections(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	ann, other, bob := ts.As("ann", "+@all ~*"), ts.Dial(), ts.As("bob", "+@all ~*")
	require.Equal(t, "+OK", other.Do("AUTH ann x"))
	require.Equal(t, ":1", ann.Do("ACL DELUSER ann"), "the caller gets its reply first")
	ann.RequireClosed()
	other.RequireClosed()
	require.Equal(t, "+PONG", bob.Do("PING"))
	require.NotContains(t, bob.Do("CLIENT LIST"), "user=ann")
}

// MONITOR shows the calls of all clients, so it ends when its user loses the permission.
func TestMonitorEndsWithThePermission(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	admin, m, other := ts.Dial(), ts.As("ann", "+@all ~*"), ts.Dial()
	require.Equal(t, "+OK", other.Do("AUTH ann x"))
	require.Equal(t, "+OK", m.Do("MONITOR"))
	require.Equal(t, "+OK", admin.Do("ACL SETUSER ann -get"))
	require.Equal(t, "+PONG", m.Do("PING"), "MONITOR goes on")
	m.Monitored(1)
	require.Equal(t, "+OK", admin.Do("ACL SETUSER ann -monitor"))
	m.RequireClosed()
	assert.Equal(t, "+PONG", other.Do("PING"), "the user's other connections stay open")
}

func TestClientCommandsShowUsers(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	ann, admin := ts.As("ann", "+@all ~*"), ts.Dial()
	assert.Contains(t, ann.Do("CLIENT INFO"), " user=ann ")
	list := admin.Do("CLIENT LIST USER ann")
	assert.Contains(t, list, " user=ann ")
	assert.NotContains(t, list, " user=default ")
	assert.Equal(t, "-ERR No such user 'bob'", admin.Do("CLIENT KILL USER bob"))
	assert.Equal(t, ":1", admin.Do("CLIENT KILL USER ann"))
	ann.RequireClosed()
	assert.Equal(t, "+RESET", admin.Do("RESET"))
	assert.Contains(t, admin.Do("CLIENT INFO"), " user=default ")
}

func TestPasswordsAreNotShown(t *testing.T) {
	var log commandtest.LogBuffer
	ts := resptest.Start(t, config.Defaults{}, func(o *resp.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c, watcher := ts.Dial(), ts.Dial()
	require.Equal(t, "+OK", watcher.Do("MONITOR"))
	require.Equal(t, "+OK", c.Do("CONFIG SET slowlog-log-slower-than 0"))
	c.Check([]resptest.Answer{
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
		shown += c.Do(line)
	}
	for line := ""; !strings.Contains(line, "last"); shown += line {
		line = watcher.Read()
	}
	assert.Contains(t, shown, "ACL", "SETUSER")
	assert.Contains(t, shown, "requirepass $8 (hidden)")
	assert.NotContains(t, shown+log.String(), "sesame")
}

func TestInfoACLFields(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	ann, admin := ts.As("ann", "+get ~a"), ts.Dial()
	ann.Do("GET b")
	ann.Do("PING")
	ann.Do("SET a b")
	ann.Do("AUTH nobody x")
	for field, want := range map[string]string{
		"acl_access_denied_auth": "1", "acl_access_denied_cmd": "2", "acl_access_denied_key": "1",
		"acl_access_denied_channel": "0", "acl_users": "2",
	} {
		assert.Equal(t, want, admin.Info(field), field)
	}
	require.Equal(t, "+OK", admin.Do("CONFIG RESETSTAT"))
	assert.Equal(t, "0", admin.Info("acl_access_denied_cmd"))
}

func TestACLLimits(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Check([]resptest.Answer{
		{"CONFIG SET acl-max-users 2 acl-max-user-size 1kb acllog-max-len 3", "+OK"},
		{"ACL SETUSER a", "+OK"},
		{"ACL SETUSER b", "-ERR There are too many users: acl-max-users is 2"},
		{"CONFIG SET acllog-max-len 100001", "-ERR CONFIG SET failed (possibly related to argument 'acllog-max-len') " +
			"- argument must be between 0 and 100000 inclusive"},
	})
	assert.Equal(t, "-ERR Usernames can't be empty", c.Send("ACL", "SETUSER", "", "on"))
	assert.Contains(t, c.Do("ACL SETUSER a ~"+strings.Repeat("x", 1000)), "acl-max-user-size is 1024")
	for i := range 10 {
		c.Do(fmt.Sprint("AUTH ", strings.Repeat("u", 300), i, " x"))
	}
	log := ts.AccessLog.Latest(100)
	require.Len(t, log, 1, "the names are truncated to the same prefix")
	assert.EqualValues(t, 10, log[0].Count)
}

// A key pattern with many wildcards does not make a call slow.
func TestKeyPatternWithManyWildcards(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.As("ann", "+get ~"+strings.Repeat("[a-z]*", 300)+"!")
	require.Equal(t, noKey, c.Do("GET "+strings.Repeat("a", 30_000)))
}

// The calls of a pipeline run under the same locks, but each is checked on its own.
func TestPipelineChecksEachCall(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.As("ann", "+rl.token ~a*")
	var lines, want []string
	for i := range 40 {
		key, reply := fmt.Sprint("a", i), "*5 :1 :5 :4 :0 :12000"
		if i%7 == 3 {
			key, reply = "b", noKey
		}
		lines, want = append(lines, "RL.TOKEN "+key+" 5 5 1m"), append(want, reply)
	}
	require.Equal(t, want, c.Pipe(lines...))
	require.Equal(t, ":0", ts.Dial().Do("EXISTS b"))
}

// Commands that only rules know are in no list and cannot be called.
func TestAbsentCommandsAreOnlyInRules(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"ACL SETUSER u -geoadd -eval -@geo -script|load -xinfo|stream", "+OK"},
		{"ACL LIST", "*2 $34 user default on nopass ~* &* +@all $30 user u off resetchannels -@all"},
		{"ACL SETUSER u +pfadd +eval +@geo +script|load +sadd|x", "+OK"},
		{"ACL LIST", "… $70 user u off resetchannels -@all +@geo +eval +pfadd +sadd|x +script|load"},
		{"ACL SETUSER u +@nosuch", "-ERR Error in ACL SETUSER modifier '+@nosuch': Unknown command or category name " +
			"in ACL"},
		{"ACL CAT geo", "*0"},
		{"COMMAND INFO pfadd", "*1 $-1"},
		{"COMMAND LIST FILTERBY ACLCAT geo", "*0"},
		{"PFADD a b", "-ERR unknown command 'PFADD', with args beginning with: 'a' 'b' "},
	})
}
