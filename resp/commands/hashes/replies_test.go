package hashes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

const (
	wrongType  = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	notInteger = "-ERR value is not an integer or out of range"
)

// The replies are those of Redis 7.0.15.
func TestHashReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		// Fields
		{"HSET h a 1 b 2 a 3", ":2"},
		{"HSET h a 3", ":0"},
		{`HMSET h c ""`, "+OK"},
		{"HSET h a", "-ERR wrong number of arguments for 'hset' command"},
		{"HSET h a 1 b", "-ERR wrong number of arguments for 'hset' command"},
		{"HMSET h a 1 b", "-ERR wrong number of arguments for 'hmset' command"},
		{"HGET h a", "$1 3"},
		{"HGET h nope", "$-1"},
		{"HGET nobody a", "$-1"},
		{"HMGET h a nope c", "*3 $1 3 $-1 $0 "},
		{"HMGET nobody a b", "*2 $-1 $-1"},
		{"HSETNX h a 9", ":0"},
		{"HSETNX h d 4", ":1"},
		{"HSETNX new a 1", ":1"},
		{"HLEN h", ":4"},
		{"HLEN nobody", ":0"},
		{"HEXISTS h c", ":1"},
		{"HEXISTS h x", ":0"},
		{"HSTRLEN h c", ":0"},
		{"HSTRLEN h b", ":1"},
		{"HSTRLEN h x", ":0"},
		{"HGETALL h", "*8 $1 a $1 3 $1 b $1 2 $1 c $0  $1 d $1 4"},
		{"HKEYS h", "*4 $1 a $1 b $1 c $1 d"},
		{"HVALS h", "*4 $1 3 $1 2 $0  $1 4"},
		{"HGETALL nobody", "*0"},
		{"HDEL h b nope b", ":1"},
		{"HDEL nobody a", ":0"},
		{"HKEYS h", "*3 $1 a $1 c $1 d"},
		{"HDEL h a c d e", ":3"},
		{"EXISTS h", ":0"},
		{"TYPE h", "+none"},

		// Numbers
		{"HINCRBY h n 99", ":99"},
		{"HINCRBY h n 1", ":100"},
		{"HINCRBY h n -101", ":-1"},
		{"HINCRBY h n 1.5", notInteger},
		{"HINCRBY h n 9223372036854775807", ":9223372036854775806"},
		{"HINCRBY h n 9223372036854775807", "-ERR increment or decrement would overflow"},
		{"HINCRBYFLOAT h n 0", "$19 9223372036854775806"},
		{"HGET h n", "$19 9223372036854775806"},
		{"HSET h s abc f 1.5 i inf", ":3"},
		{"HINCRBY h s 1", "-ERR hash value is not an integer"},
		{"HINCRBY h f 1", "-ERR hash value is not an integer"},
		{"HINCRBYFLOAT h s 1", "-ERR hash value is not a float"},
		{"HINCRBYFLOAT h f 1e2", "$5 101.5"},
		{"HINCRBYFLOAT h f -0.25", "$6 101.25"},
		{"HINCRBYFLOAT h new -0", "$1 0"},
		{"HINCRBYFLOAT h i 1", "-ERR increment would produce NaN or Infinity"},
		{"HINCRBYFLOAT h f inf", "-ERR value is NaN or Infinity"},
		{"HINCRBYFLOAT h f abc", "-ERR value is not a valid float"},
		{"HMGET h n s f i new", "*5 $19 9223372036854775806 $3 abc $6 101.25 $3 inf $1 0"},
		{"HINCRBY nobody n x", notInteger},
		{"HINCRBYFLOAT nobody n inf", "-ERR value is NaN or Infinity"},
		{"EXISTS nobody", ":0"},

		// Scans and random fields
		{"DEL h", ":1"},
		{"HSET h a 1 b 2", ":2"},
		{"HSCAN h 0", "*2 $1 0 *4 $1 a $1 1 $1 b $1 2"},
		{"HSCAN h 0 MATCH b* COUNT 1", "*2 $1 0 *2 $1 b $1 2"},
		{"HSCAN h 0 COUNT 0", "-ERR syntax error"},
		{"HSCAN h x", "-ERR invalid cursor"},
		{"HSCAN h 0 nonsense", "-ERR syntax error"},
		{"HSCAN nobody 0 COUNT abc", "*2 $1 0 *0"},
		{"HSCAN nobody x", "-ERR invalid cursor"},
		{"HRANDFIELD h 0", "*0"},
		{"HRANDFIELD h 5", "*2 $1 a $1 b"},
		{"HRANDFIELD h 5 WITHVALUES", "*4 $1 a $1 1 $1 b $1 2"},
		{"HRANDFIELD nobody", "$-1"},
		{"HRANDFIELD nobody 5", "*0"},
		{"HRANDFIELD nobody -5", "*0"},
		{"HRANDFIELD h x", notInteger},
		{"HRANDFIELD h 1 x", "-ERR syntax error"},
		{"HRANDFIELD h 1 WITHVALUES x", "-ERR syntax error"},
		{
			"HRANDFIELD h -9223372036854775808",
			"-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
		},
		{"HRANDFIELD h -9223372036854770000 WITHVALUES", "-ERR value is out of range"},
		{"HSET one f v", ":1"},
		{"HRANDFIELD one", "$1 f"},
		{"HRANDFIELD one -2 WITHVALUES", "*4 $1 f $1 v $1 f $1 v"},

		// A key of another type
		{"SET s v", "+OK"},
		{"HSET s f v", wrongType},
		{"HSET s f", "-ERR wrong number of arguments for 'hset' command"},
		{"HSETNX s f v", wrongType},
		{"HGET s f", wrongType},
		{"HMGET s f", wrongType},
		{"HGETALL s", wrongType},
		{"HLEN s", wrongType},
		{"HDEL s f", wrongType},
		{"HINCRBY s f 1", wrongType},
		{"HINCRBY s f x", notInteger},
		{"HINCRBYFLOAT s f 1", wrongType},
		{"HINCRBYFLOAT s f inf", "-ERR value is NaN or Infinity"},
		{"HSCAN s 0", wrongType},
		{"HSCAN s x", "-ERR invalid cursor"},
		{"HSCAN s 0 COUNT abc", wrongType},
		{"HRANDFIELD s", wrongType},
		{"HRANDFIELD s x", notInteger},
		{"HRANDFIELD s 1", wrongType},
		{"GET s", "$1 v"},
	})
}

// The replies are those of Redis 7.0.15.
func TestStringsAndHashesInRESP3(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	require.Equal(t, byte('%'), c.Do("HELLO 3")[0])
	c.Check([]resptest.Answer{
		{"GET nobody", "_"},
		{"SET k v XX", "_"},
		{"SET k v GET", "_"},
		{"GETEX nobody", "_"},
		{"MGET k nobody", "*2 $1 v _"},
		{"INCRBYFLOAT f 1.5", "$3 1.5"},
		{"HSET h a 1 b 2", ":2"},
		{"HGETALL h", "%2 $1 a $1 1 $1 b $1 2"},
		{"HGETALL nobody", "%0"},
		{"HKEYS h", "*2 $1 a $1 b"},
		{"HMGET h a x", "*2 $1 1 _"},
		{"HGET h x", "_"},
		{"HINCRBYFLOAT h a 0.5", "$3 1.5"},
		{"HRANDFIELD nobody", "_"},
		{"HRANDFIELD h 2 WITHVALUES", "*2 *2 $1 a $3 1.5 *2 $1 b $1 2"},
		{"HRANDFIELD h 2", "*2 $1 a $1 b"},
		{"HSCAN h 0", "*2 $1 0 *4 $1 a $3 1.5 $1 b $1 2"},
	})
}

// A large hash, which is not kept in order, is scanned completely and in several steps.
func TestHScanOfALargeHash(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	want := make(map[string]string)
	for i := range 1000 {
		field, value := fmt.Sprint("field:", i), fmt.Sprint(i)
		want[field] = value
		require.Equal(t, ":1", c.Send("HSET", "h", field, value))
	}
	got, calls := make(map[string]string), 0
	for cursor := ""; cursor != "0"; calls++ {
		if cursor == "" {
			cursor = "0"
		}
		words := strings.Fields(c.Send("HSCAN", "h", cursor, "COUNT", "100"))
		cursor = words[2]
		for i := 4; i < len(words); i += 4 { // $6 field $1 value
			got[words[i+1]] = words[i+3]
		}
	}
	assert.Equal(t, want, got)
	assert.Greater(t, calls, 5)
	assert.Less(t, calls, 20)

	words := strings.Fields(c.Send("HSCAN", "h", "0", "MATCH", "field:99?", "COUNT", "100000"))
	matched := make(map[string]string)
	for i := 4; i < len(words); i += 4 {
		matched[words[i+1]] = words[i+3]
	}
	maps.DeleteFunc(want, func(field, value string) bool { return len(value) != 3 || value[:2] != "99" })
	assert.Equal(t, want, matched)
}

func TestRandomFields(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("HSET h a 1 b 2 c 3 d 4")
	for range 20 {
		assert.Contains(t, []string{"$1 a", "$1 b", "$1 c", "$1 d"}, c.Do("HRANDFIELD h"))
		assert.Contains(t, c.Do("HRANDFIELD h -50"), "*50 ")

		words := strings.Fields(c.Do("HRANDFIELD h 3 WITHVALUES"))
		require.Equal(t, "*6", words[0])
		fields := []string{words[2], words[6], words[10]}
		slices.Sort(fields)
		assert.Len(t, slices.Compact(fields), 3)
		for i := 2; i < len(words); i += 4 {
			assert.Equal(t, "abcd"[words[i+2][0]-'1'], words[i][0], "a field has the value of another one")
		}
	}
	assert.Equal(t, "-ERR value is out of range", c.Do("HRANDFIELD h -10000001"))
}

// What Redis 7.0.15 lacks: HGETDEL is from Redis 8.0, NOVALUES from 7.4.
func TestHashCommandsOfLaterVersions(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"HSET h a 1 b 2 c 3", ":3"},
		{"HSCAN h 0 NOVALUES", "*2 $1 0 *3 $1 a $1 b $1 c"},
		{"HSCAN h 0 MATCH b novalues COUNT 5", "*2 $1 0 *1 $1 b"},
		{"HSCAN h 0 COUNT 5", "*2 $1 0 *6 $1 a $1 1 $1 b $1 2 $1 c $1 3"},
		{"ZADD z 1 m", ":1"},
		{"ZSCAN z 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"},
		{"SCAN 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"},
		{"HGETDEL h FIELDS 2 a nope", "*2 $1 1 $-1"},
		{"HGETDEL h FIELDS 2 b b", "*2 $1 2 $-1"},
		{"HGETALL h", "*2 $1 c $1 3"},
		{"HGETDEL h FIELDS 1", "-ERR wrong number of arguments for 'hgetdel' command"},
		{"HGETDEL h FIELDS 2 c", "-ERR The `numfields` parameter must match the number of arguments"},
		{"HGETDEL h FIELDS 1 c d", "-ERR The `numfields` parameter must match the number of arguments"},
		{"HGETDEL h FIELDS 0 c", "-ERR Number of fields must be a positive integer"},
		{"HGETDEL h FIELDS x c", "-ERR Number of fields must be a positive integer"},
		{"HGETDEL h NOPE 1 c", "-ERR Mandatory argument FIELDS is missing or not at the right position"},
		{"HGETDEL z NOPE 1 c", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"HGETDEL nope FIELDS 2 a b", "*2 $-1 $-1"},
		{"HGETDEL h fields 1 c", "*1 $1 3"},
		{"EXISTS h", ":0"},
	})
}
