package resp

import (
	"io"
	"net"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/config"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfig(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"CONFIG GET maxmemory", "*2 $9 maxmemory $1 0"},
		{"CONFIG GET MAXMEMORY", "*2 $9 MAXMEMORY $1 0"},
		{"CONFIG GET nope", "*0"},
		{"CONFIG GET nope*", "*0"},
		{"CONFIG GET hash-max-ziplist-value", "*2 $22 hash-max-ziplist-value $2 64"},
		{"CONFIG GET maxmemory maxmemory", "*2 $9 maxmemory $1 0"},
		{"CONFIG GET maxmemory-pol* nope", "*2 $16 maxmemory-policy $9 ratelimit"},
		{"CONFIG GET", "-ERR wrong number of arguments for 'config|get' command"},
		{"CONFIG SET hash-max-ziplist-value 10", "+OK"},
		{"CONFIG GET hash-max-listpack-value", "*2 $23 hash-max-listpack-value $2 10"},
		{"CONFIG SET hash-max-listpack-value 1kb hash-max-listpack-entries 7", "+OK"},
		{"CONFIG GET hash-max-ziplist-value", "*2 $22 hash-max-ziplist-value $4 1024"},
		{"CONFIG SET hash-max-listpack-value 64 hash-max-listpack-entries 512", "+OK"},
		{"CONFIG SET timeout 5 maxclients x", "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into an integer"},
		{"CONFIG GET timeout", "*2 $7 timeout $1 0"},
		{"CONFIG SET timeout -1", "-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive"},
		{"CONFIG SET timeout 2147483648", "-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive"},
		{"CONFIG SET maxclients 0", "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967295 inclusive"},
		{"CONFIG SET proto-max-bulk-len 1", "-ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be between 1048576 and 9223372036854775807 inclusive"},
		{"CONFIG SET proto-max-bulk-len much", "-ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be a memory value"},
		{"CONFIG SET proto-max-bulk-len -1", "-ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be a memory value"},
		{"CONFIG SET protected-mode maybe", "-ERR CONFIG SET failed (possibly related to argument 'protected-mode') - argument must be 'yes' or 'no'"},
		{"CONFIG SET loglevel loud", "-ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the following: debug, verbose, notice, warning…"},
		{"CONFIG SET databases 3", "-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config"},
		{"CONFIG SET timeout 0 timeout 0", "-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter"},
		{"CONFIG SET nope 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{"CONFIG SET timeout x nope 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{"CONFIG SET timeout x databases 1", "-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config"},
		{"CONFIG SET timeout 0 x", "-ERR syntax error"},
		{"CONFIG SET timeout", "-ERR wrong number of arguments for 'config|set' command"},
		{"CONFIG SET maxmemory-policy noeviction appendonly no maxmemory 0", "+OK"},
		{"CONFIG REWRITE", "-ERR The server is running without a config file"},
		{"CONFIG RESETSTAT", "+OK"},
		{"CONFIG NOPE", "-ERR unknown subcommand 'NOPE'. Try CONFIG HELP."},
		{"HELLO 3", "%7…"},
		{"CONFIG GET maxmemory", "%1 $9 maxmemory $1 0"},
	})
}

// What is not offered is refused, not silently taken.
func TestConfigOfWhatIsNotThere(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"CONFIG SET notify-keyspace-events K", "-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - this server has it at '' always: there are no notifications"},
		{"CONFIG SET hash-max-ziplist-value 1 hash-max-listpack-value 1", "-ERR CONFIG SET failed (possibly related to argument 'hash-max-listpack-value') - duplicate parameter"},
		{"CONFIG SET timeout 5 activedefrag yes", "-ERR CONFIG SET failed (possibly related to argument 'activedefrag') …"},
		{"CONFIG GET timeout", "*2 $7 timeout $1 0"},
	})
}

func TestEveryParameterTakesItsOwnValue(t *testing.T) {
	c := startServer(t, config.Defaults{LogLevel: "notice", Timeout: time.Hour, Port: 1, Bind: []string{"a", "b"}}).dial()
	for i := range config.Parameters {
		p := &config.Parameters[i]
		list := strings.SplitN(c.do("CONFIG GET "+p.Name), " ", 5)
		require.Equal(t, []string{"*2", "$" + strconv.Itoa(len(p.Name)), p.Name}, list[:3])
		value := ""
		if len(list) == 5 {
			value = list[4]
		}
		got := c.send("CONFIG", "SET", p.Name, value)
		if p.Set == nil {
			assert.Contains(t, got, "can't set immutable config")
		} else {
			assert.Equal(t, "+OK", got, p.Name)
		}
	}
	require.Equal(t, "*2 $4 bind $3 a b", c.do("CONFIG GET bind"))
}

func TestHelp(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	assert.Equal(t, "*5 +FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are: +FLUSH [ASYNC | SYNC] +    Deleting all functions. "+
		"+HELP +    Prints this help.", c.do("FUNCTION HELP"))
	for _, each := range command.Commands.Sorted() {
		if len(each.Subs) > 0 && each.Name != "debug" {
			assert.Regexp(t, `^\*\d+ \+`+strings.ToUpper(each.Name)+` .* \+HELP \+    Prints this help\.$`, c.do(each.Name+" HELP"))
		}
	}
}

func TestCommandCommand(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"COMMAND INFO nope", "*1 $-1"},
		{"COMMAND DOCS nope", "*0"},
		{"COMMAND COUNT x", "-ERR wrong number of arguments for 'command|count' command"},
		{"COMMAND NOPE", "-ERR unknown subcommand 'NOPE'. Try COMMAND HELP."},
		{"COMMAND INFO get", "*1 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 *6 $5 flags *2 +RO +access $12 begin_search " +
			"*4 $4 type $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0"},
		{"COMMAND INFO CLIENT|ID", "*1 *10 $9 client|id :2 *3 +noscript +loading +stale :0 :0 :0 *2 +@slow +@connection *0 *0 *0"},
		{"COMMAND DOCS select", "*2 $6 select *10 $7 summary $55 Change the selected database for the current connection…"},
		{"COMMAND GETKEYS GET k", "*1 $1 k"},
		{"COMMAND GETKEYS MSET a 1 b 2", "*2 $1 a $1 b"},
		{"COMMAND GETKEYS MEMORY USAGE k", "*1 $1 k"},
		{"COMMAND GETKEYS ZUNIONSTORE d 2 a b", "*3 $1 d $1 a $1 b"},
		{"COMMAND GETKEYS ZUNIONSTORE d 3 a b", "-ERR Invalid arguments specified for command"},
		{"COMMAND GETKEYS ZUNIONSTORE d 0 a b", "-ERR Invalid arguments specified for command"},
		{"COMMAND GETKEYS ZUNIONSTORE d x a b", "-ERR Invalid arguments specified for command"},
		{"COMMAND GETKEYS GET k x", "-ERR Invalid number of arguments specified for command"},
		{"COMMAND GETKEYS NOPE x", "-ERR Invalid command specified"},
		{"COMMAND GETKEYS PING x", "-ERR The command has no key arguments"},
		{"COMMAND GETKEYS GET", "-ERR wrong number of arguments for 'command|getkeys' command"},
		{"COMMAND GETKEYSANDFLAGS COPY a b", "*2 *2 $1 a *2 +RO +access *2 $1 b *2 +OW +update"},
		{"COMMAND LIST FILTERBY PATTERN hgeta*", "*1 $7 hgetall"},
		{"COMMAND LIST FILTERBY pattern client|i[a-d]", "*1 $9 client|id"},
		{"COMMAND LIST FILTERBY MODULE json", "*0"},
		{"COMMAND LIST FILTERBY ACLCAT nope", "*0"},
		{"COMMAND LIST FILTERBY NOPE x", "-ERR syntax error"},
		{"COMMAND LIST FILTERBY PATTERN", "-ERR syntax error"},
		{"COMMAND LIST nope", "-ERR syntax error"},
	})
}

func TestCommandListsAgree(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	count := len(command.Commands)
	assert.Equal(t, ":"+strconv.Itoa(count), c.do("COMMAND COUNT"))
	assert.True(t, strings.HasPrefix(c.do("COMMAND"), "*"+strconv.Itoa(count)+" "))
	assert.True(t, strings.HasPrefix(c.do("COMMAND INFO"), "*"+strconv.Itoa(count)+" "))
	assert.True(t, strings.HasPrefix(c.do("COMMAND DOCS"), "*"+strconv.Itoa(2*count)+" "))
	assert.True(t, strings.HasPrefix(c.do("COMMAND LIST FILTERBY PATTERN hgetall"), "*1 "))
	limiters := c.do("COMMAND LIST FILTERBY ACLCAT ratelimit")
	for _, each := range command.Commands.Sorted() {
		assert.Equal(t, each.Group == "ratelimit" && each.Run != nil, slices.Contains(strings.Fields(limiters), each.Name), each.Name)
	}
}

func TestInfo(t *testing.T) {
	ts := startServer(t, config.Defaults{Port: 6379})
	c, other := ts.dial(), ts.dial()
	c.do("SET a 1")
	c.do("SET b 1 EX 1")
	c.do("GET a")
	c.do("GET nope")
	c.do("NOPE")
	other.do("SELECT 3")
	other.do("SET x 1")
	other.quit()

	all := c.do("INFO")
	for _, field := range []string{
		"# Server\r\nredis_version:7.0.15\r\nserver_name:rlserver\r\nrlserver_version:test\r\nredis_mode:standalone\r\n", "tcp_port:6379\r\n",
		"server_time_usec:1767225600000000\r\n", "# Clients\r\nconnected_clients:1\r\nmaxclients:1000\r\n", "# Memory\r\nused_memory:", "maxmemory:0\r\n",
		"total_connections_received:2\r\ntotal_commands_processed:7\r\n", "keyspace_hits:1\r\nkeyspace_misses:1\r\n", "total_error_replies:1\r\n",
		"# Replication\r\nrole:master\r\n", "# CPU\r\nused_cpu_sys:", "# Cluster\r\ncluster_enabled:0\r\n",
		"# Keyspace\r\ndb0:keys=2,expires=1\r\ndb3:keys=1,expires=0\r\n",
	} {
		assert.Contains(t, all, field)
	}
	for line := range strings.Lines(strings.TrimLeft(all, "$0123456789 ")) {
		assert.Regexp(t, `^(\r\n|# \w+\r\n|[a-z0-9_]+:[^:]*\r\n)$`, line)
	}
	for _, section := range []string{"all", "DEFAULT", "everything", "nope everything"} {
		assert.Equal(t, strings.Count(all, "# "), strings.Count(c.do("INFO "+section), "# "), section)
	}
	assert.Equal(t, "$0 ", c.do("INFO nope"))
	assert.Equal(t, "$30 # Cluster\r\ncluster_enabled:0\r\n", c.do("info cluster"))
	assert.Regexp(t, `^\$\d+ # CPU\r\n(.*\r\n)+\r\n# Cluster\r\ncluster_enabled:0\r\n$`, c.do("INFO cluster nope cpu"))
	c.do("HELLO 3")
	assert.Equal(t, "=34 txt:# Cluster\r\ncluster_enabled:0\r\n", c.do("INFO cluster"))
}

func (c *testClient) quit() {
	require.Equal(c.t, "+OK", c.do("QUIT"))
	c.ends()
}

func TestResetStat(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c, other := ts.dial(), ts.dial()
	other.do("GET nope")
	other.quit()
	require.Contains(t, c.do("INFO stats"), "total_connections_received:2\r\ntotal_commands_processed:2\r\n")
	c.do("CONFIG RESETSTAT")
	stats := c.do("INFO stats")
	for _, field := range []string{"connections_received", "net_output_bytes", "error_replies"} {
		assert.Regexp(t, "total_"+field+`:\d{1,3}\r\n`, stats)
	}
	assert.Contains(t, stats, "total_connections_received:0\r\ntotal_commands_processed:1\r\n") // CONFIG RESETSTAT itself
	assert.Contains(t, stats, "keyspace_misses:0\r\n")
	require.Equal(t, ":1", c.do("CLIENT ID"))
	require.Equal(t, ":3", ts.dial().do("CLIENT ID"))
}

func TestTime(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	ts.advance(1234)
	require.Equal(t, "*2 $10 1767225601 $6 234000", ts.dial().do("TIME"))
}

func TestMemoryUsage(t *testing.T) {
	c := startServer(t, config.Defaults{}).dial()
	c.check([]answer{
		{"MEMORY USAGE nope", "$-1"},
		{"MEMORY USAGE nope SAMPLES", "-ERR syntax error"},
		{"MEMORY USAGE nope SAMPLES -1", "-ERR syntax error"},
		{"MEMORY USAGE nope FOO 1", "-ERR syntax error"},
		{"MEMORY USAGE", "-ERR wrong number of arguments for 'memory|usage' command"},
		{"MEMORY NOPE", "-ERR unknown subcommand 'NOPE'. Try MEMORY HELP."},
	})
	c.send("SET", "s", strings.Repeat("x", 100_000))
	c.do("RL.TOKEN t 5 5 1s")
	c.do("RL.FIXED f 5 1m")
	c.do("HSET h f v")
	for i := range 1000 {
		c.do("HSET large field" + strconv.Itoa(i) + " value" + strconv.Itoa(i))
		c.do("ZADD z " + strconv.Itoa(i) + " member" + strconv.Itoa(i))
	}
	for key, bounds := range map[string][2]int{
		"s": {100_000, 120_000}, "t": {48, 200}, "f": {48, 200}, "h": {64, 500}, "large": {40_000, 150_000}, "z": {20_000, 150_000},
	} {
		for _, samples := range []string{"", " SAMPLES 0", " samples 100"} {
			n, err := strconv.Atoi(strings.TrimPrefix(c.do("MEMORY USAGE "+key+samples), ":"))
			require.NoError(t, err)
			assert.True(t, bounds[0] <= n && n <= bounds[1], "%s takes %d bytes", key, n)
		}
	}
}

func TestDebug(t *testing.T) {
	for who, calls := range map[string][]answer{
		"": {
			{"DEBUG SLEEP 0", "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, " +
				"otherwise you need to set this option in the configuration file, and then restart the server."},
			{"DEBUG log hello", "-ERR DEBUG command not allowed.…"},
			{"DEBUG HELP", "-ERR DEBUG command not allowed.…"},
		},
		"local": {
			{"DEBUG SLEEP 0.01", "+OK"},
			{"DEBUG SLEEP x", "-ERR value is not a valid float"},
			{"DEBUG LOG hello", "+OK"},
			{"DEBUG SET-ACTIVE-EXPIRE 0", "+OK"},
			{"DEBUG SET-ACTIVE-EXPIRE x", "-ERR value is not an integer or out of range"},
			{"DEBUG NOPE", "-ERR unknown subcommand 'NOPE'. Try DEBUG HELP."},
			{"DEBUG HELP", "*21 +DEBUG …"},
		},
	} {
		startServer(t, config.Defaults{DebugCommand: who}).dial().check(calls)
	}
}

func TestShutdownAnswersWhatWasSent(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	idle, c := ts.dial(), ts.dial()
	require.Equal(t, "+PONG", idle.do("PING"))
	_, err := c.Write([]byte("SET k v\r\nSHUTDOWN ABORT\r\nSHUTDOWN SAVE NOSAVE\r\nSHUTDOWN\r\nPING\r\n"))
	require.NoError(t, err)
	got, _ := io.ReadAll(c.r)
	require.Equal(t, "+OK\r\n-ERR No shutdown in progress.\r\n-ERR syntax error\r\n", string(got))
	<-ts.ShutdownRequested()
	require.Zero(t, ts.Shutdown(t.Context()))
	idle.ends()
	_, err = net.Dial("tcp", ts.addr)
	require.Error(t, err)
}

// A client that never stops sending gets the replies to all that was done, and then the end of the stream.
func TestShutdownUnderLoad(t *testing.T) {
	ts := startServer(t, config.Defaults{})
	c := ts.dial()
	go func() {
		batch := []byte(strings.Repeat("INCR n\r\n", 1000))
		for {
			if _, err := c.Write(batch); err != nil {
				return
			}
		}
	}()
	_, err := c.r.ReadString('\n')
	require.NoError(t, err)
	go ts.Shutdown(t.Context())

	last := ":1\r\n"
	for err == nil {
		var line string
		if line, err = c.r.ReadString('\n'); line != "" {
			last = line
		}
	}
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, ts.Shutdown(t.Context()))
	tx := ts.Engine.NewTx()
	keys := []engine.Key{ts.Engine.Key([]byte("n"))}
	tx.Begin(ts.Clock(), 0, keys, false)
	value, _, err := tx.Get(keys[0])
	require.NoError(t, err)
	require.Equal(t, ":"+string(value)+"\r\n", last)
	tx.End()
}

func TestFunctionFlush(t *testing.T) {
	startServer(t, config.Defaults{}).dial().check([]answer{
		{"FUNCTION FLUSH", "+OK"},
		{"FUNCTION FLUSH ASYNC", "+OK"},
		{"FUNCTION FLUSH sync", "+OK"},
		{"FUNCTION FLUSH nope", "-ERR FUNCTION FLUSH only supports SYNC|ASYNC option"},
	})
	require.Equal(t, "-ERR unknown subcommand 'LIST'. Try FUNCTION HELP.", startServer(t, config.Defaults{}).dial().do("FUNCTION LIST"))
}
