package resp

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

func TestClientCommands(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"CLIENT GETNAME", "$-1"},
		{"CLIENT SETNAME me", "+OK"},
		{"CLIENT GETNAME", "$2 me"},
		{"CLIENT SETNAME a\x01b", "-ERR Client names cannot contain spaces, newlines or special characters."},
		{"CLIENT GETNAME", "$2 me"},
		{"CLIENT NO-EVICT ON", "+OK"},
		{"CLIENT NO-EVICT off", "+OK"},
		{"CLIENT NO-EVICT perhaps", "-ERR syntax error"},
		{"CLIENT GETREDIR", ":-1"},
		{"CLIENT TRACKINGINFO", "*6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0"},
		{
			"CLIENT CACHING YES",
			"-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode " +
				"enabled",
		},
		{"CLIENT TRACKING maybe", "-ERR syntax error"},
		{"HELLO 3", "%7…"},
		{"CLIENT TRACKING ON OPTIN", "+OK"},
		{"CLIENT TRACKINGINFO", "%3 $5 flags ~2 $2 on $5 optin $8 redirect :0 $8 prefixes *0"},
		{"CLIENT CACHING NO", "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."},
		{"CLIENT CACHING MAYBE", "-ERR syntax error"},
		{"CLIENT INFO", "=… flags=t …"},
		{"CLIENT TRACKING OFF", "+OK"},
		{"CLIENT TRACKINGINFO", "%3 $5 flags ~1 $3 off $8 redirect :-1 $8 prefixes *0"},
		{"CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'"},
		{"CLIENT LIST TYPE master", "=4 txt:"},
		{"CLIENT LIST ID", "-ERR syntax error"},
		{"CLIENT LIST ID x", "-ERR Invalid client ID"},
		{"CLIENT LIST ID 987654321", "=4 txt:"},
		{"CLIENT LIST FOO", "-ERR syntax error"},
		{"CLIENT KILL 1.2.3.4:5", "-ERR No such client"},
		{"CLIENT KILL ID 0", "-ERR client-id should be greater than 0"},
		{"CLIENT KILL ID x", "-ERR client-id should be greater than 0"},
		{"CLIENT KILL ID 987654321", ":0"},
		{"CLIENT KILL USER x", "-ERR No such user 'x'"},
		{"CLIENT KILL TYPE x", "-ERR Unknown client type 'x'"},
		{"CLIENT KILL TYPE pubsub", ":0"},
		{"CLIENT KILL ADDR", "-ERR No such client"},
		{"CLIENT KILL ADDR x LADDR", "-ERR syntax error"},
		{"CLIENT KILL SKIPME maybe", "-ERR syntax error"},
		{"CLIENT KILL LADDR 1.2.3.4:5 SKIPME no USER default", ":0"},
		{"CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command"},
	})
}

// Subcommands that Redis 7.0.15 does not have.
func TestClientSubcommandsRedisLacks(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"CLIENT SETINFO LIB-NAME lib(x)", "+OK"},
		{"CLIENT SETINFO lib-ver 1.2.3", "+OK"},
		{"CLIENT SETINFO LIB-OTHER x", "-ERR Unrecognized option 'LIB-OTHER'"},
		{"CLIENT SETINFO LIB-NAME a\x01", "-ERR LIB-NAME cannot contain spaces, newlines or special characters."},
		{"CLIENT INFO", "$… lib-name=lib(x) lib-ver=1.2.3\n"},
		{"CLIENT NO-TOUCH ON", "+OK"},
		{"CLIENT TRACKING ON OPTIN NOLOOP", "+OK"},
		{"CLIENT CACHING YES", "+OK"},
		{"RESET", "+RESET"},
		{"CLIENT GETREDIR", ":-1"},
		{"CLIENT INFO", "$… lib-name=lib(x) lib-ver=1.2.3\n"},
	})
}

func TestClientList(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	first, second := ts.dial(), ts.dial()
	require.Equal(t, ":1", first.do("CLIENT ID"))
	require.Equal(t, ":2", second.do("CLIENT ID"))
	second.check([]answer{{"SELECT 7", "+OK"}, {"CLIENT SETNAME two", "+OK"}, {"CLIENT NO-EVICT ON", "+OK"}})
	ts.advance(5000)

	lines := strings.Split(first.do("CLIENT LIST"), "\n")
	require.Len(t, lines, 3)
	require.Regexp(
		t,
		`^\$\d+ id=1 addr=127.0.0.1:\d+ laddr=`+ts.addr+
			` fd=\d+ name= age=5 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 `+
			`qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 `+
			`tot-mem=16384 events=r cmd=client\|list user=default redir=-1 resp=2 lib-name= lib-ver=$`,
		lines[0],
	)
	require.Regexp(t, `^id=2 .* name=two age=5 idle=5 flags=e db=7 .* cmd=client\|no-evict `, lines[1])

	require.Contains(t, first.do("CLIENT LIST ID 2 9"), " id=2 ")
	require.NotContains(t, first.do("CLIENT LIST ID 2 9"), " id=1 ")
	require.Contains(t, first.do("CLIENT LIST TYPE normal"), " id=1 ")
	require.Contains(t, second.do("CLIENT INFO"), " id=2 ")
}

func TestClientsOnAUnixSocket(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	go ts.Serve(ln)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	c := ts.over(conn)
	require.Contains(t, c.do("CLIENT INFO"), "addr="+path+":0 laddr="+path+":0 ")
	require.Contains(t, c.do("CLIENT INFO"), " flags=U ")
	require.Equal(t, "+OK", c.do("CLIENT KILL "+path+":0"))
	c.requireClosed()
}

func TestClientNoTouch(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	c.check([]answer{{"SET k v", "+OK"}, {"CLIENT NO-TOUCH ON", "+OK"}})
	ts.advance(10_000)
	c.check([]answer{{"GET k", "$1 v"}, {"OBJECT IDLETIME k", ":10"}, {"TOUCH k", ":1"}, {"OBJECT IDLETIME k", ":0"}})
	ts.advance(10_000)
	c.check([]answer{{"RESET", "+RESET"}, {"OBJECT IDLETIME k", ":10"}, {"GET k", "$1 v"}, {"OBJECT IDLETIME k", ":0"}})

	ts.advance(10_000) // NO-TOUCH applies from the next call on, also within EXEC
	c.check([]answer{
		{"MULTI", "+OK"}, {"CLIENT NO-TOUCH ON", "+QUEUED"}, {"GET k", "+QUEUED"}, {"EXEC", "*2 +OK $1 v"},
		{"OBJECT IDLETIME k", ":10"},
		{"MULTI", "+OK"}, {"CLIENT NO-TOUCH OFF", "+QUEUED"}, {"GET k", "+QUEUED"}, {"EXEC", "*2 +OK $1 v"},
		{"OBJECT IDLETIME k", ":0"},
	})
}

var addrField = regexp.MustCompile(` addr=(\S+) `)

func TestClientKill(t *testing.T) {
	for name, kill := range map[string]string{
		"by address": "CLIENT KILL %addr", "by id": "CLIENT KILL ID 2", "by option": "CLIENT KILL ADDR %addr TYPE " +
			"normal USER default",
		"all others": "CLIENT KILL SKIPME yes", "by the address here": "CLIENT KILL LADDR %laddr",
	} {
		t.Run(name, func(t *testing.T) {
			ts := startServer(t, config.Defaults{})
			killer, victim := ts.dial(), ts.dial()
			require.Equal(t, ":1", killer.do("CLIENT ID"))
			addr := addrField.FindStringSubmatch(victim.do("CLIENT INFO"))[1]

			got := killer.do(strings.NewReplacer("%addr", addr, "%laddr", ts.addr).Replace(kill))
			assert.Contains(t, []string{"+OK", ":1"}, got)
			victim.requireClosed() // although the server is reading from it
			assert.NotContains(t, killer.do("CLIENT LIST"), addr)
			assert.Equal(t, "+PONG", killer.do("PING"))
		})
	}
}

func TestClientKillOfItselfSendsTheReply(t *testing.T) {
	for _, kill := range []string{"CLIENT KILL ID 1 SKIPME no", "CLIENT KILL TYPE normal SKIPME no"} {
		c := startServer(t, config.Defaults{}).dial()
		require.Equal(t, ":1", c.do(kill))
		c.requireClosed()
	}
}

func TestNewTimeoutClosesIdleClients(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	idle, other := ts.dial(), ts.dial()
	require.Equal(t, "+PONG", idle.do("PING"))
	require.Equal(t, "+OK", other.do("CONFIG SET timeout 1"))
	idle.requireClosed()
}

// CLIENT LIST after calls that are refused, as in Redis 7.0.15.
func TestClientListShowsRefusedCommands(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	require.Equal(t, ":1", c.do("CLIENT ID"))
	for _, step := range []struct{ call, shown string }{
		{"GET", "get"}, {"NOPE x", "NULL"}, {"CLIENT NOPE", "NULL"}, {"GET k", "get"}, {"MULTI", "multi"},
		{"GET", "get"},
		{"CLIENT GETNAME a", "client|getname"}, {"CLIENT", "client"}, {"FCALL x 0", "NULL"},
	} {
		ts.advance(5000)
		c.do(step.call)
		require.Regexp(t, ` idle=0 .* cmd=`+regexp.QuoteMeta(step.shown)+` `, other.do("CLIENT LIST ID 1"), step.call)
	}
	ts.advance(5000)
	require.Contains(t, other.do("CLIENT LIST ID 1"), " idle=5 ")
}

// Messages can be redirected to one client that exists.
func TestClientTrackingRedirect(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, ":1", c.do("CLIENT ID"))
	c.check([]answer{
		{"CLIENT TRACKING ON REDIRECT 1 REDIRECT 1", "-ERR A client can only redirect to a single other client"},
		{"CLIENT TRACKING ON REDIRECT 99", "-ERR The client ID you want redirect to does not exist"},
		{"CLIENT TRACKING ON REDIRECT 1", "+OK"},
		{"CLIENT GETREDIR", ":1"},
		{"CLIENT TRACKING OFF REDIRECT 1", "+OK"},
		{"CLIENT GETREDIR", ":-1"},
	})
}

// The filters of CLIENT LIST and CLIENT KILL. Redis 7.0.15 has some of them only for CLIENT KILL.
func TestClientFilters(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	require.Equal(t, ":1", c.do("CLIENT ID"))
	ts.advance(5000)
	named, plain := ts.dial(), ts.dial()
	require.Equal(t, "+OK", named.do("CLIENT SETNAME worker"))
	require.Equal(t, ":3", plain.do("CLIENT ID"))
	addr := addrField.FindStringSubmatch(named.do("CLIENT INFO"))[1]
	ts.advance(5000)

	for filter, want := range map[string]string{
		"":                               "1 2 3",
		"SKIPME yes":                     "2 3",
		"SKIPME NO":                      "1 2 3",
		"NAME worker":                    "2",
		"NAME nobody":                    "",
		"USER default":                   "1 2 3",
		"ADDR " + addr:                   "2",
		"LADDR " + ts.addr:               "1 2 3",
		"LADDR 1.2.3.4:5":                "",
		"MAXAGE 5":                       "1 2 3",
		"MAXAGE 6":                       "1",
		"MAXAGE 11":                      "",
		"ID 2 1":                         "1 2",
		"ID 2 1 SKIPME YES":              "2",
		"id 2 id 3 type normal":          "2 3",
		"TYPE normal NAME worker ID 3 2": "2",
		"TYPE pubsub":                    "",
		"MAXAGE 5 SKIPME YES ID 1 2 3":   "2 3",
	} {
		var ids []string
		for _, found := range regexp.MustCompile(`(?m)(?:^|\s)id=(\d+) `).FindAllStringSubmatch(c.do("CLIENT LIST "+
			filter), -1) {
			ids = append(ids, found[1])
		}
		assert.Equal(t, want, strings.Join(ids, " "), filter)
	}
	c.check([]answer{
		{"CLIENT LIST MAXAGE", "-ERR syntax error"},
		{"CLIENT LIST MAXAGE x", "-ERR maxage is not an integer or out of range"},
		{"CLIENT LIST MAXAGE 0", "-ERR maxage should be greater than 0"},
		{"CLIENT LIST SKIPME maybe", "-ERR syntax error"},
		{"CLIENT LIST USER x", "-ERR No such user 'x'"},
		{"CLIENT LIST NAME", "-ERR syntax error"},
		{"CLIENT LIST ID 1 x", "-ERR Invalid client ID"},
		{"CLIENT LIST ID 1 ID", "-ERR syntax error"},
		{"CLIENT LIST ID -1", "$0 "},
		{"CLIENT KILL MAXAGE x", "-ERR maxage is not an integer or out of range"},
		{"CLIENT KILL MAXAGE -1", "-ERR maxage should be greater than 0"},
		{"CLIENT KILL ID 10 wrong_arg", "-ERR syntax error"},
		{"CLIENT KILL ID 10 TYPE wrong_arg", "-ERR Unknown client type 'wrong_arg'"},
		{"CLIENT KILL ID 1 0", "-ERR client-id should be greater than 0"},
		{"CLIENT KILL NAME nobody", ":0"},
		{"CLIENT KILL MAXAGE 11 SKIPME no", ":0"},
		{"CLIENT KILL NAME worker MAXAGE 5", ":1"},
		{"CLIENT KILL ID 3 2 MAXAGE 1", ":1"},
	})
	named.requireClosed()
	plain.requireClosed()
}
