package keys_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The replies are those of Redis 7.0.15.
func TestKeyReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"MSET a 1 b 2", "+OK"},
		{"HSET h f v", ":1"},
		{"ZADD z 1 m", ":1"},
		{"EXISTS a b missing a", ":3"},
		{"TOUCH a missing h h", ":3"},
		{"TYPE a", "+string"},
		{"TYPE h", "+hash"},
		{"TYPE z", "+zset"},
		{"TYPE missing", "+none"},
		{"DBSIZE", ":4"},
		{"DEL a a missing", ":1"},
		{"UNLINK h z missing", ":2"},
		{"DBSIZE", ":1"},
		{"RENAME missing b", "-ERR no such key"},
		{"RENAME missing missing", "-ERR no such key"},
		{"RENAME b b", "+OK"},
		{"RENAME b c", "+OK"},
		{"GET c", "$1 2"},
		{"SET d 3", "+OK"},
		{"RENAMENX c d", ":0"},
		{"RENAMENX c c", ":0"},
		{"RENAMENX missing d", "-ERR no such key"},
		{"RENAMENX c e", ":1"},
		{"GET e", "$1 2"},
		{"COPY e d", ":0"},
		{"COPY e d REPLACE", ":1"},
		{"GET d", "$1 2"},
		{"COPY missing d REPLACE", ":0"},
		{"COPY e e", "-ERR source and destination objects are the same"},
		{"COPY e e DB 0", "-ERR source and destination objects are the same"},
		{"COPY e e db 5", ":1"},
		{"COPY e e DB 5", ":0"},
		{"COPY e f DB 5 replace", ":1"},
		{"COPY e f DB 16", "-ERR DB index is out of range"},
		{"COPY e f DB 16 nonsense", "-ERR DB index is out of range"},
		{"COPY e f nonsense DB 16", "-ERR syntax error"},
		{"COPY e f DB -1", "-ERR DB index is out of range"},
		{"COPY e f DB x", "-ERR value is not an integer or out of range"},
		{"COPY e f DB 2147483648", "-ERR value is out of range, value must between -2147483648 and 2147483647"},
		{"COPY e f DB", "-ERR syntax error"},
		{"MOVE e 0", "-ERR source and destination objects are the same"},
		{"MOVE e 16", "-ERR DB index is out of range"},
		{"MOVE e 2147483648", "-ERR value is out of range, value must between -2147483648 and 2147483647"},
		{"MOVE e x", "-ERR value is not an integer or out of range"},
		{"MOVE missing 5", ":0"},
		{"MOVE e 5", ":0"},
		{"MOVE d 5", ":1"},
		{"EXISTS d e", ":1"},
		{"SELECT 5", "+OK"},
		{"KEYS d", "*1 $1 d"},
		{"GET d", "$1 2"},
		{"SWAPDB 0 5", "+OK"},
		{"DBSIZE", ":1"},
		{"SELECT 0", "+OK"},
		{"DBSIZE", ":3"},
		{"SWAPDB x y", "-ERR invalid first DB index"},
		{"SWAPDB 0 y", "-ERR invalid second DB index"},
		{"SWAPDB 0 2147483648", "-ERR invalid second DB index"},
		{"SWAPDB 0 16", "-ERR DB index is out of range"},
		{"SWAPDB -1 0", "-ERR DB index is out of range"},
		{"FLUSHDB nonsense", "-ERR syntax error"},
		{"FLUSHDB ASYNC SYNC", "-ERR syntax error"},
		{"FLUSHALL SYNC nonsense", "-ERR syntax error"},
		{"FLUSHDB async", "+OK"},
		{"DBSIZE", ":0"},
		{"RANDOMKEY", "$-1"},
		{"SELECT 5", "+OK"},
		{"SET x y", "+OK"},
		{"FLUSHDB SYNC", "+OK"},
		{"SET x y", "+OK"},
		{"RANDOMKEY", "$1 x"},
		{"SELECT 0", "+OK"},
		{"FLUSHALL", "+OK"},
		{"SELECT 5", "+OK"},
		{"DBSIZE", ":0"},
		{"DEL", "-ERR wrong number of arguments for 'del' command"},
		{"EXISTS", "-ERR wrong number of arguments for 'exists' command"},
		{"TYPE", "-ERR wrong number of arguments for 'type' command"},
		{"TYPE a b", "-ERR wrong number of arguments for 'type' command"},
		{"RENAME a", "-ERR wrong number of arguments for 'rename' command"},
		{"RENAMENX a b c", "-ERR wrong number of arguments for 'renamenx' command"},
		{"COPY a", "-ERR wrong number of arguments for 'copy' command"},
		{"MOVE a", "-ERR wrong number of arguments for 'move' command"},
		{"DBSIZE x", "-ERR wrong number of arguments for 'dbsize' command"},
		{"RANDOMKEY x", "-ERR wrong number of arguments for 'randomkey' command"},
		{"SWAPDB 0", "-ERR wrong number of arguments for 'swapdb' command"},
	})
}

// The replies are those of Redis 7.0.15.
func TestObjectReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"OBJECT ENCODING missing", "$-1"},
		{"OBJECT IDLETIME missing", "$-1"},
		{"OBJECT REFCOUNT missing", "$-1"},
		{"OBJECT FREQ missing", "$-1"},
		{"SET k 12345", "+OK"},
		{"OBJECT ENCODING k", "$3 int"},
		{"OBJECT REFCOUNT k", ":1"},
		{"OBJECT IDLETIME k", ":0"},
		{
			"OBJECT FREQ k",
			"-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when " +
				"switching between policies at runtime LRU and LFU data will take some time to adjust.",
		},
		{"SET k 1", "+OK"},
		{"OBJECT REFCOUNT k", ":2147483647"},
		{"SET k abc", "+OK"},
		{"OBJECT ENCODING k", "$6 embstr"},
		{"OBJECT REFCOUNT k", ":1"},
		{"HSET h f v", ":1"},
		{"OBJECT ENCODING h", "$8 listpack"},
		{"ZADD z 1 m", ":1"},
		{"object encoding z", "$8 listpack"},
		{"OBJECT", "-ERR wrong number of arguments for 'object' command"},
		{"OBJECT ENCODING", "-ERR wrong number of arguments for 'object|encoding' command"},
		{"OBJECT ENCODING k k", "-ERR wrong number of arguments for 'object|encoding' command"},
		{"OBJECT HELP k", "-ERR wrong number of arguments for 'object|help' command"},
		{"OBJECT nonsense", "-ERR unknown subcommand 'nonsense'. Try OBJECT HELP."},
	})
}

// Limiters are keys like any other, and TYPE shows their kind.
func TestLimitersAreKeys(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"RL.TOKEN t 10 1 1s", "*5 :1 :10 :9 :0 :1000"},
		{"RL.FIXED f 10 1s", "*5 :1 :10 :9 :0 :1000"},
		{"RL.SLIDE s 10 1s ID x", "*5 :1 :10 :9 :0 :1000"},
		{"TYPE t", "+rl.token"},
		{"TYPE f", "+rl.fixed"},
		{"TYPE s", "+zset"},
		{"OBJECT ENCODING t", "$6 packed"},
		{"OBJECT ENCODING f", "$6 packed"},
		{"OBJECT ENCODING s", "$8 listpack"},
		{"PTTL t", ":1000"},
		{"SCAN 0 TYPE rl.token", "*2 $1 0 *1 $1 t"},
		{"SCAN 0 TYPE RL.FIXED", "*2 $1 0 *1 $1 f"},
		{"RENAME t u", "+OK"},
		{"RL.TOKEN u 10 1 1s", "*5 :1 :10 :8 :0 :2000"},
		{"COPY u v", ":1"},
		{"RL.TOKEN v 10 1 1s COST 8", "*5 :1 :10 :0 :0 :10000"},
		{"RL.TOKEN u 10 1 1s COST 0", "*5 :1 :10 :8 :0 :2000"},
		{"MOVE u 3", ":1"},
		{"DEL u v f s", ":3"},
		{"DBSIZE", ":0"},
	})
}

func TestMissingKeysInRESP3(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("HELLO 3")
	c.Check([]resptest.Answer{
		{"RANDOMKEY", "_"},
		{"OBJECT ENCODING missing", "_"},
		{"OBJECT FREQ missing", "_"},
		{"OBJECT IDLETIME missing", "_"},
		{"OBJECT REFCOUNT missing", "_"},
		{"KEYS *", "*0"},
	})
}

// OBJECT does not change the idle time of a key, nor do other commands that only inspect it.
func TestIdleTime(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Check([]resptest.Answer{{"SET k v", "+OK"}, {"RL.TOKEN t 1000 1 1s COST 1000", "*5 :1 :1000 :0 :0 :1000000"}})
	ts.Advance(10_000)
	c.Check([]resptest.Answer{
		{
			"TYPE k",
			"+string",
		}, {"EXISTS k", ":1"}, {"TTL k", ":-1"}, {"OBJECT ENCODING k", "$6 embstr"}, {"KEYS k", "*1 $1 k"},
		{"OBJECT IDLETIME k", ":10"},
		{"OBJECT IDLETIME t", ":10"},
		{"TOUCH k", ":1"},
		{"RL.TOKEN t 1000 1 1s COST 0", "*5 :1 :1000 :10 :0 :990000"},
		{"OBJECT IDLETIME k", ":0"},
		{"OBJECT IDLETIME t", ":0"},
	})
}

// SWAPDB and FLUSHALL affect the database that another client has selected.
func TestSwapDBAffectsOtherClients(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	one, other := ts.Dial(), ts.Dial()
	one.Check([]resptest.Answer{{"SET k 0", "+OK"}, {"SELECT 9", "+OK"}, {"SET k 9", "+OK"}, {"PEXPIRE k 1000", ":1"}})
	other.Check([]resptest.Answer{{"SWAPDB 9 0", "+OK"}, {"GET k", "$1 9"}, {"PTTL k", ":1000"}})
	one.Check([]resptest.Answer{{"GET k", "$1 0"}, {"TTL k", ":-1"}, {"FLUSHDB", "+OK"}, {"DBSIZE", ":0"}})
	other.Check([]resptest.Answer{{"DBSIZE", ":1"}, {"FLUSHALL", "+OK"}, {"DBSIZE", ":0"}})
}

// A call may name keys of every shard, and a key twice.
func TestManyKeysInACall(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	set, del := []string{"MSET"}, []string{"DEL"}
	for i := range 500 {
		set = append(set, fmt.Sprint("k", i), "v")
		del = append(del, fmt.Sprint("k", i), fmt.Sprint("missing", i), fmt.Sprint("k", i))
	}
	require.Equal(t, "+OK", c.Send(set...))
	assert.Equal(t, ":1000", c.Send(append([]string{"EXISTS"}, del[1:]...)...), "a key named twice counts twice")
	assert.Equal(t, ":500", c.Send(del...))
	assert.Equal(t, ":0", c.Do("DBSIZE"))
}
