package str_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

const (
	wrongType  = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	notInteger = "-ERR value is not an integer or out of range"
)

// The replies are those of Redis 7.0.15.
func TestStringReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		// SET and its options
		{"SET k v", "+OK"},
		{"GET k", "$1 v"},
		{"SET k w NX", "$-1"},
		{"SET k w GET", "$1 v"},
		{"SET k x NX GET", "$1 w"},
		{"SET nope v XX", "$-1"},
		{"SET nope v XX GET", "$-1"},
		{"EXISTS nope", ":0"},
		{"SET new v NX GET", "$-1"},
		{"SET k v EX 10 KEEPTTL", "-ERR syntax error"},
		{"SET k v EX 10 PX 10", "-ERR syntax error"},
		{"SET k v NX XX", "-ERR syntax error"},
		{"SET k v PERSIST", "-ERR syntax error"},
		{"SET k v EX", "-ERR syntax error"},
		{"SET k v EX 0", "-ERR invalid expire time in 'set' command"},
		{"SET k v EX abc nonsense", "-ERR syntax error"},
		{"SET k v PX 9223372036854775807", "-ERR invalid expire time in 'set' command"},
		{"GET k", "$1 w"},
		{"SET k v PXAT 4102444800123", "+OK"},
		{"SET k w KEEPTTL", "+OK"},
		{"PEXPIRETIME k", ":4102444800123"},
		{"SET k w", "+OK"},
		{"PEXPIRETIME k", ":-1"},
		{"SET gone v PXAT 1", "+OK"},
		{"GET gone", "$-1"},
		{"SETNX k x", ":0"},
		{"SETNX fresh x", ":1"},
		{"SETEX k 0 v", "-ERR invalid expire time in 'setex' command"},
		{"SETEX k x v", notInteger},
		{"PSETEX k -1 v", "-ERR invalid expire time in 'psetex' command"},
		{"GET k", "$1 w"},

		// The old value
		{"GETSET k x", "$1 w"},
		{"GETSET missing y", "$-1"},
		{"GETDEL k", "$1 x"},
		{"GETDEL k", "$-1"},
		{"SET k v PXAT 4102444800123", "+OK"},
		{"GETEX k", "$1 v"},
		{"PEXPIRETIME k", ":4102444800123"},
		{"GETEX k PERSIST", "$1 v"},
		{"PEXPIRETIME k", ":-1"},
		{"GETEX k EX 10 PERSIST", "-ERR syntax error"},
		{"GETEX k EX", "-ERR syntax error"},
		{"GETEX k EX 0", "-ERR invalid expire time in 'getex' command"},
		{"GETEX k EX abc", notInteger},
		{"GETEX nobody EX abc", "$-1"},
		{"GETEX k EXAT 4102444800", "$1 v"},
		{"EXPIRETIME k", ":4102444800"},
		{"GETEX k PXAT 1", "$1 v"},
		{"EXISTS k", ":0"},

		// Parts of a string
		{`APPEND a ""`, ":0"},
		{"EXISTS a", ":1"},
		{"APPEND a Hello", ":5"},
		{"APPEND a World", ":10"},
		{"GETRANGE a 0 -1", "$10 HelloWorld"},
		{"GETRANGE a 5 9", "$5 World"},
		{"SUBSTR a -5 -1", "$5 World"},
		{"GETRANGE a 3 1", "$0 "},
		{"GETRANGE a -1 -5", "$0 "},
		{"GETRANGE a 100 200", "$0 "},
		{"GETRANGE a -100 0", "$1 H"},
		{"GETRANGE a -100 -50", "$1 H"},
		{"GETRANGE a 0 abc", notInteger},
		{"GETRANGE nobody abc 0", notInteger},
		{"SETRANGE a 5 _", ":10"},
		{"SETRANGE a 12 !", ":13"},
		{"STRLEN a", ":13"},
		{`SETRANGE a 3 ""`, ":13"},
		{`SETRANGE nobody 5 ""`, ":0"},
		{"EXISTS nobody", ":0"},
		{"SETRANGE a -1 x", "-ERR offset is out of range"},
		{"SETRANGE a abc x", notInteger},
		{"SETRANGE a 536870912 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"},
		{"SETRANGE a 9223372036854775807 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"},
		{"SETRANGE nobody 536870911 xy", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"},
		{"STRLEN a", ":13"},
		{"STRLEN nobody", ":0"},

		// Several keys
		{"MSET a 1 b 2 a 3", "+OK"},
		{"MGET a b c a", "*4 $1 3 $1 2 $-1 $1 3"},
		{"MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"},
		{"MSETNX c 1 a 2", ":0"},
		{"MGET c a", "*2 $-1 $1 3"},
		{"MSETNX c 1 d 2 c 3", ":1"},
		{"MGET c d", "*2 $1 3 $1 2"},
		{"MSETNX c 1 d", "-ERR wrong number of arguments for 'msetnx' command"},
		{"MSET h x", "+OK"},

		// A key of another type
		{"DEL h", ":1"},
		{"HSET h f v", ":1"},
		{"GET h", wrongType},
		{"STRLEN h", wrongType},
		{"APPEND h x", wrongType},
		{"GETRANGE h 0 -1", wrongType},
		{"GETRANGE h x -1", notInteger},
		{"SETRANGE h 0 x", wrongType},
		{`SETRANGE h 0 ""`, wrongType},
		{"SETRANGE h -1 x", "-ERR offset is out of range"},
		{"SETRANGE h 536870912 x", wrongType},
		{"GETSET h x", wrongType},
		{"GETDEL h", wrongType},
		{"GETEX h EX abc", wrongType},
		{"GETEX h nonsense", "-ERR syntax error"},
		{"SET h v GET", wrongType},
		{"MGET h a", "*2 $-1 $1 3"},
		{"INCR h", wrongType},
		{"INCRBY h x", notInteger},
		{"DECRBY h -9223372036854775808", "-ERR decrement would overflow"},
		{"INCRBYFLOAT h x", wrongType},
		{"MSETNX h 1 free 1", ":0"},
		{"EXISTS free", ":0"},
		{"HGET h f", "$1 v"},
		{"SET h v", "+OK"},
		{"GET h", "$1 v"},
	})
}

// The replies are those of Redis 7.0.15.
func TestNumberReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"INCR n", ":1"},
		{"INCR n", ":2"},
		{"DECR n", ":1"},
		{"INCRBY n 98", ":99"},
		{"DECRBY n 100", ":-1"},
		{"INCRBY n -99", ":-100"},
		{"INCRBY n 0", ":-100"},
		{"GET n", "$4 -100"},
		{"INCRBY n 1.0", notInteger},
		{"INCRBY n +1", notInteger},
		{`INCRBY n ""`, notInteger},
		{"DECRBY n -9223372036854775808", "-ERR decrement would overflow"},
		{"SET n 9223372036854775807", "+OK"},
		{"INCR n", "-ERR increment or decrement would overflow"},
		{"INCRBY n -9223372036854775808", ":-1"},
		{"DECRBY n 9223372036854775807", ":-9223372036854775808"},
		{"DECR n", "-ERR increment or decrement would overflow"},
		{"GET n", "$20 -9223372036854775808"},
		{"SET n 1 PXAT 4102444800123", "+OK"},
		{"INCR n", ":2"},
		{"INCRBYFLOAT n 0.5", "$3 2.5"},
		{"PEXPIRETIME n", ":4102444800123"},
		{"GET n", "$3 2.5"},
		{"INCR n", notInteger},
		{"INCRBYFLOAT n -2.5", "$1 0"},
		{"INCRBYFLOAT n 1e-18", "$1 0"},
		{"INCRBYFLOAT n 0.1", "$3 0.1"},
		{"SET n 1e4932", "+OK"},
		{"INCRBYFLOAT n 1e4932", "-ERR increment would produce NaN or Infinity"},
		{"GET n", "$6 1e4932"},
		{"INCRBYFLOAT n inf", "-ERR increment would produce NaN or Infinity"},
		{"INCRBYFLOAT n nan", "-ERR value is not a valid float"},
		{"SET n abc", "+OK"},
		{"INCR n", notInteger},
		{"INCRBYFLOAT n 1", "-ERR value is not a valid float"},
		{"INCRBYFLOAT n abc", "-ERR value is not a valid float"},
		{`SET n ""`, "+OK"},
		{"INCR n", notInteger},
		{"GET n", "$0 "},
		{"INCRBYFLOAT f 3.0e3", "$4 3000"},
		{"INCRBYFLOAT f 0x1p3", "$4 3008"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command"},
		{"INCRBY n", "-ERR wrong number of arguments for 'incrby' command"},
	})
}

func TestStringExpiry(t *testing.T) {
	ts := resptest.Start(t, config.Defaults{})
	c := ts.Dial()
	for _, step := range []struct {
		wait int64 // ms before the call
		call string
		want string
	}{
		{0, "SET k v EX 10", "+OK"},
		{0, "PTTL k", ":10000"},
		{0, "SET k w PX 1500", "+OK"},
		{1500, "GET k", "$1 w"},
		{1, "GET k", "$-1"},
		{0, "SETEX k 2 v", "+OK"},
		{1000, "PTTL k", ":1000"},
		{0, "APPEND k w", ":2"},
		{0, "SETRANGE k 0 x", ":2"},
		{0, "SET k 5 KEEPTTL", "+OK"},
		{0, "INCR k", ":6"},
		{0, "PTTL k", ":1000"},
		{0, "GETEX k PX 3000", "$1 6"},
		{3001, "INCR k", ":1"},
		{0, "PTTL k", ":-1"},
		{0, "PSETEX k 5 v", "+OK"},
		{6, "SETNX k new", ":1"},
		{0, "PSETEX k 5 v", "+OK"},
		{6, "MSETNX k a l b", ":1"},
		{0, "PSETEX k 5 v", "+OK"},
		{6, "APPEND k x", ":1"},
	} {
		ts.Advance(step.wait)
		require.Equal(t, step.want, c.Do(step.call), step.call)
	}
}
