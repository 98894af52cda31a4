package keys_test

import (
	"testing"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The replies are those of Redis 7.0.15.
func TestExpireReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"EXPIRE missing 100", ":0"},
		{"TTL missing", ":-2"},
		{"PTTL missing", ":-2"},
		{"EXPIRETIME missing", ":-2"},
		{"PEXPIRETIME missing", ":-2"},
		{"PERSIST missing", ":0"},
		{"SET k v", "+OK"},
		{"TTL k", ":-1"},
		{"PTTL k", ":-1"},
		{"EXPIRETIME k", ":-1"},
		{"PEXPIRETIME k", ":-1"},
		{"PERSIST k", ":0"},
		{"EXPIREAT k 4102444800", ":1"},
		{"EXPIRETIME k", ":4102444800"},
		{"PEXPIRETIME k", ":4102444800000"},
		{"PEXPIREAT k 4102444800499", ":1"},
		{"EXPIRETIME k", ":4102444800"},
		{"PEXPIREAT k 4102444800500", ":1"},
		{"EXPIRETIME k", ":4102444801"},
		{"EXPIREAT k 4102444900 NX", ":0"},
		{"EXPIREAT k 4102444900 LT", ":0"},
		{"EXPIREAT k 4102444900 GT", ":1"},
		{"EXPIREAT k 4102444800 xx lt", ":1"},
		{"PERSIST k", ":1"},
		{"EXPIREAT k 4102444900 XX", ":0"},
		{"EXPIREAT k 4102444900 gt", ":0"},
		{"EXPIREAT k 4102444900 lt", ":1"},
		{"EXPIREAT k 4102444900 GT XX", ":0"},
		{"PEXPIREAT k 4102444900001 GT XX", ":1"},
		{"EXPIRE k 1 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
		{"EXPIRE k 1 LT NX", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
		{"EXPIRE k 1 LT GT", "-ERR GT and LT options at the same time are not compatible"},
		{"EXPIRE k 1 NX XX GT LT", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
		{"EXPIRE k x AB", "-ERR Unsupported option AB"},
		{"EXPIRE k x NX GT", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
		{"EXPIRE k x", "-ERR value is not an integer or out of range"},
		{"EXPIRE k 1.5", "-ERR value is not an integer or out of range"},
		{"EXPIRE missing x", "-ERR value is not an integer or out of range"},
		{"EXPIRE missing 1 AB", "-ERR Unsupported option AB"},
		{"EXPIRE missing 9223372036854775807", "-ERR invalid expire time in 'expire' command"},
		{"EXPIRE k 9223372036854775", "-ERR invalid expire time in 'expire' command"},
		{"EXPIRE k -9223372036854776", "-ERR invalid expire time in 'expire' command"},
		{"EXPIREAT k 9223372036854776", "-ERR invalid expire time in 'expireat' command"},
		{"PEXPIRE k 9223372036854775807", "-ERR invalid expire time in 'pexpire' command"},
		{"PEXPIREAT k 9223372036854775808", "-ERR value is not an integer or out of range"},
		{"PEXPIRETIME k", ":4102444900001"},
		{"PEXPIREAT k 9223372036854775807", ":1"},
		{"PEXPIRETIME k", ":9223372036854775807"},
		{"EXPIRE k -1 GT", ":0"},
		{"EXISTS k", ":1"},
		{"EXPIRE k -1 XX", ":1"},
		{"EXISTS k", ":0"},
		{"SET k v", "+OK"},
		{"PEXPIREAT k -9223372036854775808", ":1"},
		{"EXISTS k", ":0"},
		{"SET k v", "+OK"},
		{"EXPIREAT k 0", ":1"},
		{"EXISTS k", ":0"},
		{"EXPIRE k", "-ERR wrong number of arguments for 'expire' command"},
		{"PEXPIREAT k", "-ERR wrong number of arguments for 'pexpireat' command"},
		{"TTL", "-ERR wrong number of arguments for 'ttl' command"},
		{"PTTL k k", "-ERR wrong number of arguments for 'pttl' command"},
		{"PERSIST", "-ERR wrong number of arguments for 'persist' command"},
	})
}

// A key exists up to and including its deadline. Seconds are rounded to the nearest, as in Redis.
func TestTimeToLive(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	c.Check([]resptest.Answer{
		{"SET k v", "+OK"},
		{"PEXPIRE k 2500", ":1"},
		{"TTL k", ":3"},
		{"PTTL k", ":2500"},
		{"EXPIRETIME k", ":1767225603"},
	},
	)
	ts.Advance(1)
	c.Check([]resptest.Answer{{"TTL k", ":2"}, {"PTTL k", ":2499"}, {"EXPIRETIME k", ":1767225603"}})
	ts.Advance(2000)
	c.Check([]resptest.Answer{{"TTL k", ":0"}, {"PTTL k", ":499"}})
	ts.Advance(499)
	c.Check([]resptest.Answer{{"EXISTS k", ":1"}, {"PTTL k", ":0"}, {"PEXPIRE k 0 NX", ":0"}})
	ts.Advance(1)
	c.Check([]resptest.Answer{
		{
			"PTTL k",
			":-2",
		}, {"EXISTS k", ":0"}, {"TYPE k", "+none"}, {"KEYS *", "*0"}, {"SCAN 0", "*2 $1 0 *0"}, {"RANDOMKEY", "$-1"},
		{
			"EXPIRE k 10",
			":0",
		}, {"PERSIST k", ":0"}, {"RENAME k l", "-ERR no such key"}, {"COPY k l", ":0"}, {"MOVE k 1", ":0"},
		{"DBSIZE", ":1"}, // counts an expired key until it is deleted, as in Redis
		{"DEL k", ":0"},
		{"DBSIZE", ":0"},
	})
}

// The latest deadline that fits in 64 bits does not overflow when it is converted to seconds. The
// replies are those of Redis 7.0.15.
func TestLongestTimeToLive(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"SET k v", "+OK"},
		{"PEXPIREAT k 9223372036854775807", ":1"},
		{"PEXPIRETIME k", ":9223372036854775807"},
		{"EXPIRETIME k", ":9223372036854776"},
	})
}
