package zsets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
	"rlserver/resp/resptest"
)

// The replies are those of Redis 7.0.15, here and below.
func TestSortedSetReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"ZADD z 1 a 2 b 3 c", ":3"},
		{"ZADD z CH 1 a 5 b 4 d", ":2"},
		{"ZADD z XX CH 9 e 6 b", ":1"},
		{"ZADD z NX 7 a 0.5 f", ":1"},
		{"ZADD z GT CH 2 a 1 b", ":1"},
		{"ZADD z LT CH 3 a 1 b", ":1"},
		{"ZADD z GT XX INCR -1 a", "$-1"},
		{"ZADD z INCR 2.5 a", "$3 4.5"},
		{"ZADD z NX INCR 1 a", "$-1"},
		{"ZADD none XX INCR 1 a", "$-1"},
		{"ZADD none XX 1 a", ":0"},
		{"ZCARD none", ":0"},
		{"ZADD z ch Incr 1e1 a", "$4 14.5"},
		{"ZRANGE z 0 -1 WITHSCORES", "*10 $1 f $3 0.5 $1 b $1 1 $1 c $1 3 $1 d $1 4 $1 a $4 14.5"},
		// Nothing is added if any argument is wrong.
		{"ZADD z 1 g x h", "-ERR value is not a valid float"},
		{"ZADD z 1 g nan h", "-ERR value is not a valid float"},
		{"ZADD z 1 g 1e400 h", "-ERR value is not a valid float"},
		{"ZADD z 1 g 2", "-ERR syntax error"},
		{"ZADD z NX", "-ERR wrong number of arguments for 'zadd' command"},
		{"ZADD z NX XX", "-ERR syntax error"},
		{"ZADD z NX XX 1", "-ERR syntax error"},
		{"ZADD z NX XX x g", "-ERR XX and NX options at the same time are not compatible"},
		{"ZADD z NX GT 1 g", "-ERR GT, LT, and/or NX options at the same time are not compatible"},
		{"ZADD z GT LT 1 g", "-ERR GT, LT, and/or NX options at the same time are not compatible"},
		{"ZADD z NX LT 1 g 2 h", "-ERR GT, LT, and/or NX options at the same time are not compatible"},
		{"ZADD z INCR 1 g 2 h", "-ERR INCR option supports a single increment-element pair"},
		{"ZADD z INCR x g", "-ERR value is not a valid float"},
		{"ZADD z WHAT 1 g", "-ERR syntax error"},
		{"ZADD z 1", "-ERR wrong number of arguments for 'zadd' command"},
		{"ZCARD z", ":5"},
		// Infinity and NaN.
		{"ZADD inf +inf a -inf b Infinity c", ":3"},
		{"ZADD inf INCR -inf a", "-ERR resulting score is not a number (NaN)"},
		{"ZADD inf NX INCR -inf a", "$-1"},
		{"ZINCRBY inf inf b", "-ERR resulting score is not a number (NaN)"},
		{"ZINCRBY inf 1 a", "$3 inf"},
		{"ZRANGE inf 0 -1 WITHSCORES", "*6 $1 b $4 -inf $1 a $3 inf $1 c $3 inf"},
		{"ZINCRBY z 2 a", "$4 16.5"},
		{"ZINCRBY z 0x10 a", "$4 32.5"},
		{"ZINCRBY z 1e-1 new", "$19 0.10000000000000001"},
		{"ZINCRBY z NX a", "-ERR syntax error"},
		{"ZINCRBY z CH INCR", "-ERR syntax error"},
		{"ZINCRBY z x a", "-ERR value is not a valid float"},
		{"ZINCRBY z nan a", "-ERR value is not a valid float"},
		{"ZINCRBY z 1", "-ERR wrong number of arguments for 'zincrby' command"},
		// A score of -0 is 0.
		{"ZADD zero -0 a", ":1"},
		{"ZADD zero CH 0 a", ":0"},
		{"ZINCRBY zero -0 b", "$2 -0"},
		{"ZRANGE zero 0 -1 WITHSCORES", "*4 $1 a $1 0 $1 b $1 0"},
		{"ZUNIONSTORE zero 1 z WEIGHTS -0", ":6"},
		{"ZSCORE zero a", "$1 0"},
		{
			"ZUNION 1 zero WEIGHTS -1 WITHSCORES",
			"*12 $1 a $2 -0 $1 b $2 -0 $1 c $2 -0 $1 d $2 -0 $1 f $2 -0 $3 new $2 -0",
		},
		{"ZSCORE z a", "$4 32.5"},
		{"ZSCORE z nobody", "$-1"},
		{"ZSCORE none a", "$-1"},
		{"ZMSCORE z a nobody c", "*3 $4 32.5 $-1 $1 3"},
		{"ZMSCORE none a b", "*2 $-1 $-1"},
		{"ZRANK z a", ":5"},
		{"ZREVRANK z a", ":0"},
		{"ZRANK z nobody", "$-1"},
		{"ZRANK none a", "$-1"},
		{"ZRANK z a extra", "-ERR wrong number of arguments for 'zrank' command"},
		{"ZRANK z a b c", "-ERR wrong number of arguments for 'zrank' command"},
		{"ZREVRANK z a extra", "-ERR wrong number of arguments for 'zrevrank' command"},
		{"ZREM z a nobody a", ":1"},
		{"ZREM z a", ":0"},
		{"ZREM none a", ":0"},
		{"ZREM zero a b c d e f new", ":6"},
		{"EXISTS zero", ":0"},
		{"SET s v", "+OK"},
		{"ZADD s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZADD s x a", "-ERR value is not a valid float"},
		{"ZADD s 1", "-ERR wrong number of arguments for 'zadd' command"},
		{"ZADD s XX 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZINCRBY s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZINCRBY s x a", "-ERR value is not a valid float"},
		{"ZREM s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZCARD s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZSCORE s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZMSCORE s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZRANK s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZSCAN s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZSCAN s 0 COUNT x", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZSCAN s x", "-ERR invalid cursor"},
		{"ZSCAN z x", "-ERR invalid cursor"},
		{"ZSCAN z 0 COUNT 0", "-ERR syntax error"},
		{"ZSCAN z 0 COUNT x", "-ERR value is not an integer or out of range"},
		{"ZSCAN z 0 MATCH", "-ERR syntax error"},
		{"ZSCAN z 0 TYPE zset", "-ERR syntax error"},
		{"ZSCAN none 0 COUNT x", "*2 $1 0 *0"},
		{"ZSCAN none 5", "*2 $1 0 *0"},
		{"ZSCAN z 0 MATCH [a-c]", "*2 $1 0 *4 $1 b $1 1 $1 c $1 3"},
		{"ZSCAN z 0 MATCH nothing COUNT 1", "*2 $1 0 *0"},
	})
}

func TestSortedSetRangeReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"},
		{"ZRANGE z 1 2", "*2 $1 b $1 c"},
		{"ZRANGE z -2 -1 WITHSCORES", "*4 $1 d $1 4 $1 e $1 5"},
		{"ZRANGE z 0 1 REV WITHSCORES", "*4 $1 e $1 5 $1 d $1 4"},
		{"ZRANGE z 3 1", "*0"},
		{"ZRANGE z 9 12", "*0"},
		{"ZRANGE z -9223372036854775808 9223372036854775807", "*5 $1 a $1 b $1 c $1 d $1 e"},
		{"ZRANGE none 0 -1", "*0"},
		{"ZRANGE z (1 4 BYSCORE", "*3 $1 b $1 c $1 d"},
		{"ZRANGE z 4 (1 BYSCORE REV WITHSCORES", "*6 $1 d $1 4 $1 c $1 3 $1 b $1 2"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "*2 $1 b $1 c"},
		{"ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2", "*2 $1 d $1 c"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT 3 -1", "*2 $1 d $1 e"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT -1 3", "*0"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT 5 1", "*0"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT 1 0", "*0"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT 9223372036854775807 9223372036854775807", "*0"},
		{"ZRANGE z -inf +inf BYSCORE LIMIT 1 9223372036854775807", "*4 $1 b $1 c $1 d $1 e"},
		{"ZRANGE z 5 1 BYSCORE", "*0"},
		{"ZRANGE z 3 (3 BYSCORE", "*0"},
		{"ZRANGE z 0 -1 LIMIT 1 -1", "*5 $1 a $1 b $1 c $1 d $1 e"},
		{
			"ZRANGE z 0 -1 LIMIT 1 2",
			"-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
		},
		{"ZRANGE z 0 -1 BYSCORE LIMIT 1", "-ERR syntax error"},
		{"ZRANGE z 0 -1 BYSCORE LIMIT x 1", "-ERR value is not an integer or out of range"},
		{"ZRANGE z x y BYSCORE LIMIT x 1", "-ERR value is not an integer or out of range"},
		{"ZRANGE z 0 -1 BYSCORE BYLEX", "-ERR syntax error"},
		{"ZRANGE z 0 -1 REV REV", "-ERR syntax error"},
		{"ZRANGE z 0 -1 WITHSCORES WITHSCORES", "*10 $1 a $1 1 $1 b $1 2 $1 c $1 3 $1 d $1 4 $1 e $1 5"},
		{"ZRANGE z 0 -1 BYLEX WITHSCORES", "-ERR syntax error, WITHSCORES not supported in combination with BYLEX"},
		{"ZRANGE z - + BYLEX WITHSCORES", "-ERR syntax error, WITHSCORES not supported in combination with BYLEX"},
		{"ZRANGE z 0 -1 WHAT", "-ERR syntax error"},
		{"ZRANGE z 0 1.5", "-ERR value is not an integer or out of range"},
		{"ZRANGE z x 1", "-ERR value is not an integer or out of range"},
		{"ZRANGE z 1 x BYSCORE", "-ERR min or max is not a float"},
		{"ZRANGE z a b BYLEX", "-ERR min or max not valid string range item"},
		{"ZREVRANGE z 0 1", "*2 $1 e $1 d"},
		{"ZREVRANGE z 0 1 WITHSCORES", "*4 $1 e $1 5 $1 d $1 4"},
		{"ZREVRANGE z 0 1 REV", "-ERR syntax error"},
		{"ZREVRANGE z 0 1 BYSCORE", "-ERR syntax error"},
		{
			"ZREVRANGE z 0 1 LIMIT 0 1",
			"-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
		},
		{"ZRANGEBYSCORE z 2 3", "*2 $1 b $1 c"},
		{"ZRANGEBYSCORE z (2 (4 WITHSCORES LIMIT 0 1", "*2 $1 c $1 3"},
		{"ZRANGEBYSCORE z 2 3 REV", "-ERR syntax error"},
		{"ZRANGEBYSCORE z 2 3 BYLEX", "-ERR syntax error"},
		{"ZREVRANGEBYSCORE z 3 2 WITHSCORES", "*4 $1 c $1 3 $1 b $1 2"},
		{"ZREVRANGEBYSCORE z +inf -inf LIMIT 1 2", "*2 $1 d $1 c"},
		{"ZADD lex 0 a 0 aa 0 b 0 c 0 d", ":5"},
		{"ZRANGEBYLEX lex - +", "*5 $1 a $2 aa $1 b $1 c $1 d"},
		{"ZRANGEBYLEX lex [a (c", "*3 $1 a $2 aa $1 b"},
		{"ZRANGEBYLEX lex (a [c LIMIT 1 1", "*1 $1 b"},
		{"ZRANGEBYLEX lex + -", "*0"},
		{"ZRANGEBYLEX lex ( [", "*0"},
		{"ZRANGEBYLEX lex - + WITHSCORES", "-ERR syntax error, WITHSCORES not supported in combination with BYLEX"},
		{"ZREVRANGEBYLEX lex + [b", "*3 $1 d $1 c $1 b"},
		{"ZREVRANGEBYLEX lex (d - LIMIT 1 2", "*2 $1 b $2 aa"},
		{"ZRANGE lex [c - BYLEX REV", "*4 $1 c $1 b $2 aa $1 a"},
		{"ZRANGEBYLEX lex a +", "-ERR min or max not valid string range item"},
		{"ZRANGEBYLEX lex -x +", "-ERR min or max not valid string range item"},
		{"ZLEXCOUNT lex - +", ":5"},
		{"ZLEXCOUNT lex (a [c", ":3"},
		{"ZLEXCOUNT lex + +", ":0"},
		{"ZLEXCOUNT none - +", ":0"},
		{"ZLEXCOUNT lex x +", "-ERR min or max not valid string range item"},
		{"ZCOUNT z -inf +inf", ":5"},
		{"ZCOUNT z (1 (5", ":3"},
		{"ZCOUNT z 5 1", ":0"},
		{"ZCOUNT z 1e400 +inf", ":0"},
		{"ZCOUNT z -1e400 1e400", ":5"},
		{"ZCOUNT z 1e-400 0x2", ":2"},
		{"ZCOUNT z nan 1", "-ERR min or max is not a float"},
		{"ZCOUNT z ((1 2", "-ERR min or max is not a float"},
		{"ZCOUNT z ( 3", ":3"},
		{"ZCOUNT none 1 2", ":0"},
		{`ZCOUNT z "" 2`, ":2"},
		{"ZCOUNT z 1 (", ":0"},
		{`ZLEXCOUNT lex "" +`, "-ERR min or max not valid string range item"},
		{"ZRANGESTORE d z 1 3", ":3"},
		{"ZRANGE d 0 -1 WITHSCORES", "*6 $1 b $1 2 $1 c $1 3 $1 d $1 4"},
		{"ZRANGESTORE d d 0 0 REV", ":1"},
		{"ZRANGE d 0 -1", "*1 $1 d"},
		{"ZRANGESTORE d z (1 +inf BYSCORE LIMIT 1 2", ":2"},
		{"ZRANGE d 0 -1", "*2 $1 c $1 d"},
		{"ZRANGESTORE d z 0 -1 WITHSCORES", "-ERR syntax error"},
		{"ZRANGESTORE d none 0 -1", ":0"},
		{"EXISTS d", ":0"},
		{"SET s v", "+OK"},
		{"ZRANGESTORE s z 0 0", ":1"},
		{"ZRANGE s 0 -1", "*1 $1 a"},
		{"SET s v", "+OK"},
		{"ZRANGESTORE d s 0 -1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZRANGESTORE d s x -1", "-ERR value is not an integer or out of range"},
		{"ZRANGE s 0 -1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZRANGE s 0 x", "-ERR value is not an integer or out of range"},
		{"ZCOUNT s 0 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZCOUNT s x 1", "-ERR min or max is not a float"},
		{"ZLEXCOUNT s - +", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZREMRANGEBYRANK s 0 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZREMRANGEBYSCORE s x 1", "-ERR min or max is not a float"},
		{"ZREMRANGEBYRANK z 1 2", ":2"},
		{"ZREMRANGEBYRANK z -1 -1", ":1"},
		{"ZREMRANGEBYRANK z 5 9", ":0"},
		{"ZREMRANGEBYRANK z 0 1.5", "-ERR value is not an integer or out of range"},
		{"ZREMRANGEBYSCORE z (1 (4", ":0"},
		{"ZREMRANGEBYSCORE z -inf (4", ":1"},
		{"ZREMRANGEBYSCORE z -inf x", "-ERR min or max is not a float"},
		{"ZREMRANGEBYLEX lex [aa (c", ":2"},
		{"ZREMRANGEBYLEX lex [a c", "-ERR min or max not valid string range item"},
		{"ZRANGE z 0 -1", "*1 $1 d"},
		{"ZREMRANGEBYLEX lex - +", ":3"},
		{"EXISTS lex", ":0"},
		{"ZREMRANGEBYLEX lex - +", ":0"},
	})
}

func TestSortedSetOperationReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"ZADD a 1 x 2 y 3 z", ":3"},
		{"ZADD b 10 y 20 z 30 w", ":3"},
		{"SET s v", "+OK"},
		{"ZUNION 2 a b WITHSCORES", "*8 $1 x $1 1 $1 y $2 12 $1 z $2 23 $1 w $2 30"},
		{"ZUNION 2 a b WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES", "*8 $1 x $1 2 $1 y $1 5 $1 z $2 10 $1 w $2 15"},
		{"ZUNION 1 none", "*0"},
		{"ZINTER 2 a b AGGREGATE MIN WITHSCORES", "*4 $1 y $1 2 $1 z $1 3"},
		{"ZINTER 3 a b none", "*0"},
		{"ZINTER 2 a a WITHSCORES", "*6 $1 x $1 2 $1 y $1 4 $1 z $1 6"},
		{"ZDIFF 2 a b WITHSCORES", "*2 $1 x $1 1"},
		{"ZDIFF 2 none a", "*0"},
		{"ZINTERCARD 2 a b", ":2"},
		{"ZINTERCARD 2 a b LIMIT 1", ":1"},
		{"ZUNIONSTORE a 2 a b WEIGHTS 1 2", ":4"},
		{"ZRANGE a 0 -1 WITHSCORES", "*8 $1 x $1 1 $1 y $2 22 $1 z $2 43 $1 w $2 60"},
		{"ZINTERSTORE s 2 a b AGGREGATE MIN", ":3"},
		{"ZRANGE s 0 -1 WITHSCORES", "*6 $1 y $2 10 $1 z $2 20 $1 w $2 30"},
		{"ZDIFFSTORE s 2 a b", ":1"},
		{"ZRANGE s 0 -1", "*1 $1 x"},
		{"ZDIFFSTORE s 1 none", ":0"},
		{"EXISTS s", ":0"},
		{"SET s v", "+OK"},
		// Checked in this order: the number of keys, their types, the other arguments.
		{"ZUNION x a", "-ERR value is not an integer or out of range"},
		{"ZUNION 0 a", "-ERR at least 1 input key is needed for 'zunion' command"},
		{"ZUNION -1 a WITHSCORES", "-ERR at least 1 input key is needed for 'zunion' command"},
		{"ZUNION 3 a b", "-ERR syntax error"},
		{"ZUNION 3 a s", "-ERR syntax error"},
		{"ZUNION 2 a s WEIGHTS", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZUNION 2 a s WHAT", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZUNION 2 a b WEIGHTS 1", "-ERR syntax error"},
		{"ZUNION 2 a b WEIGHTS 1 x", "-ERR weight value is not a float"},
		{"ZUNION 2 a b WEIGHTS 1 nan", "-ERR weight value is not a float"},
		{"ZUNION 2 a b AGGREGATE", "-ERR syntax error"},
		{"ZUNION 2 a b AGGREGATE AVG", "-ERR syntax error"},
		{"ZUNION 2 a b AGGREGATE AVG WEIGHTS x y", "-ERR syntax error"},
		{"ZUNION 1 a b", "-ERR syntax error"},
		{"ZUNIONSTORE d 0 a", "-ERR at least 1 input key is needed for 'zunionstore' command"},
		{"ZUNIONSTORE d 2 a s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZUNIONSTORE d 2 a b WITHSCORES", "-ERR syntax error"},
		{"ZINTERSTORE d 0 a", "-ERR at least 1 input key is needed for 'zinterstore' command"},
		{"ZDIFFSTORE d 0 a", "-ERR at least 1 input key is needed for 'zdiffstore' command"},
		{"ZDIFFSTORE d 2 a b WEIGHTS 1 2", "-ERR syntax error"},
		{"ZDIFF 0 a", "-ERR at least 1 input key is needed for 'zdiff' command"},
		{"ZDIFF 2 a b AGGREGATE SUM", "-ERR syntax error"},
		{"ZINTER 0 a", "-ERR at least 1 input key is needed for 'zinter' command"},
		{"ZINTERCARD 0 a", "-ERR at least 1 input key is needed for 'zintercard' command"},
		{"ZINTERCARD 2 a b LIMIT -1", "-ERR LIMIT can't be negative"},
		{"ZINTERCARD 2 a b LIMIT x", "-ERR LIMIT can't be negative"},
		{"ZINTERCARD 2 a b LIMIT", "-ERR syntax error"},
		{"ZINTERCARD 2 a b WITHSCORES", "-ERR syntax error"},
		{"ZINTERCARD 2 a s LIMIT -1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"EXISTS d", ":0"},
	})
}

func TestSortedSetPopReplies(t *testing.T) {
	resptest.Start(t, config.Defaults{}).Dial().Check([]resptest.Answer{
		{"ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"},
		{"ZPOPMIN z", "*2 $1 a $1 1"},
		{"ZPOPMAX z 2", "*4 $1 e $1 5 $1 d $1 4"},
		{"ZPOPMIN z 0", "*0"},
		{"ZPOPMIN z -1", "-ERR value is out of range, must be positive"},
		{"ZPOPMIN z x", "-ERR value is out of range, must be positive"},
		{"ZPOPMIN z x y", "-ERR syntax error"},
		{"ZPOPMIN z 99", "*4 $1 b $1 2 $1 c $1 3"},
		{"EXISTS z", ":0"},
		{"ZPOPMIN z", "*0"},
		{"ZPOPMAX z 3", "*0"},
		{"SET s v", "+OK"},
		{"ZPOPMIN s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZPOPMIN s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZPOPMIN s -1", "-ERR value is out of range, must be positive"},
		{"ZADD z 1 a 2 b 3 c", ":3"},
		{"ZMPOP 2 none z MIN", "*2 $1 z *1 *2 $1 a $1 1"},
		{"ZMPOP 2 none z MAX COUNT 5", "*2 $1 z *2 *2 $1 c $1 3 *2 $1 b $1 2"},
		{"ZMPOP 2 none z MAX COUNT 5", "*-1"},
		{"ZMPOP 2 none s MIN", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZMPOP 0 z MIN", "-ERR numkeys should be greater than 0"},
		{"ZMPOP x z MIN", "-ERR numkeys should be greater than 0"},
		{"ZMPOP 1 z WHAT", "-ERR syntax error"},
		{"ZMPOP 3 z none MIN", "-ERR syntax error"},
		{"ZMPOP 2 z MIN", "-ERR syntax error"},
		{"ZMPOP 1 z MIN COUNT", "-ERR syntax error"},
		{"ZMPOP 1 z MIN COUNT 0", "-ERR count should be greater than 0"},
		{"ZMPOP 1 z MIN COUNT x", "-ERR count should be greater than 0"},
		{"ZMPOP 1 z MIN COUNT 1 COUNT 1", "-ERR syntax error"},
		{"ZMPOP 1 s MIN COUNT 0", "-ERR count should be greater than 0"},
		{"ZADD one 1.5 a", ":1"},
		{"ZRANDMEMBER one", "$1 a"},
		{"ZRANDMEMBER one 3", "*1 $1 a"},
		{"ZRANDMEMBER one 0", "*0"},
		{"ZRANDMEMBER one -3", "*3 $1 a $1 a $1 a"},
		{"ZRANDMEMBER one -2 WITHSCORES", "*4 $1 a $3 1.5 $1 a $3 1.5"},
		{"ZRANDMEMBER one 2 WITHSCORES", "*2 $1 a $3 1.5"},
		{"ZRANDMEMBER none", "$-1"},
		{"ZRANDMEMBER none 2", "*0"},
		{"ZRANDMEMBER s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZRANDMEMBER s x", "-ERR value is not an integer or out of range"},
		{"ZRANDMEMBER one x y z", "-ERR value is not an integer or out of range"},
		{"ZRANDMEMBER one 1 WHAT", "-ERR syntax error"},
		{"ZRANDMEMBER one 1 WITHSCORES 2", "-ERR syntax error"},
		{
			"ZRANDMEMBER one -9223372036854775808",
			"-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
		},
		{"ZRANDMEMBER one -9223372036854775807 WITHSCORES", "-ERR value is out of range"},
		{"ZRANDMEMBER one 9223372036854775807", "*1 $1 a"},
		{"ZRANDMEMBER one 9223372036854775807 WITHSCORES", "-ERR value is out of range"},
	})
}

func TestSortedSetRepliesInRESP3(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("HELLO 3")
	c.Check([]resptest.Answer{
		{"ZADD z 1 a 2.5 b inf c", ":3"},
		{"ZSCORE z b", ",2.5"},
		{"ZSCORE z nobody", "_"},
		{"ZMSCORE z a nobody", "*2 ,1 _"},
		{"ZINCRBY z 0.1 a", ",1.1000000000000001"},
		{"ZADD z INCR 1 b", ",3.5"},
		{"ZADD z NX INCR 1 b", "_"},
		{"ZRANK z nobody", "_"},
		{"ZRANGE z 0 -1", "*3 $1 a $1 b $1 c"},
		{"ZRANGE z 0 -1 WITHSCORES", "*3 *2 $1 a ,1.1000000000000001 *2 $1 b ,3.5 *2 $1 c ,inf"},
		{"ZREVRANGEBYSCORE z +inf 2 WITHSCORES", "*2 *2 $1 c ,inf *2 $1 b ,3.5"},
		{"ZUNION 1 z WITHSCORES", "*3 *2 $1 a ,1.1000000000000001 *2 $1 b ,3.5 *2 $1 c ,inf"},
		{"ZINTER 1 z", "*3 $1 a $1 b $1 c"},
		{"ZDIFF 1 z WITHSCORES", "*3 *2 $1 a ,1.1000000000000001 *2 $1 b ,3.5 *2 $1 c ,inf"},
		{"ZSCAN z 0", "*2 $1 0 *6 $1 a $18 1.1000000000000001 $1 b $3 3.5 $1 c $3 inf"},
		{"ZRANDMEMBER none", "_"},
		{"ZRANDMEMBER none 1", "*0"},
		{"ZPOPMIN z", "*2 $1 a ,1.1000000000000001"},
		{"ZPOPMIN z 1", "*1 *2 $1 b ,3.5"},
		{"ZPOPMIN z 0", "*0"},
		{"ZPOPMAX none", "*0"},
		{"ZPOPMAX none 1", "*0"},
		{"ZMPOP 1 z MAX", "*2 $1 z *1 *2 $1 c ,inf"},
		{"ZMPOP 1 z MAX", "_"},
		{"ZADD z 7 m", ":1"},
		{"ZRANDMEMBER z 1 WITHSCORES", "*1 *2 $1 m ,7"},
		{"ZRANDMEMBER z -2 WITHSCORES", "*2 *2 $1 m ,7 *2 $1 m ,7"},
	})
}

// The bounds of a range of scores are parsed by C's strtod, which accepts more than a score may be.
func TestScoreBoundsThatAreNotScores(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("ZADD z 1 a 2 b")
	for bound, want := range map[string]string{
		" 1": ":2", "\t1": ":2", "( 1": ":1", "(\n1": ":1", "1\x00x": ":2", "": ":2", "(": ":2", "0x1": ":2",
		"(0x1":                            ":1",
		"-0x1" + strings.Repeat("0", 300): ":2", "0x1" + strings.Repeat("0", 300): ":0",
		"1 ": "-ERR min or max is not a float", " (1": "-ERR min or max is not a float", " ": "-ERR min or max is " +
			"not a float",
	} {
		assert.Equal(t, want, c.Send("ZCOUNT", "z", bound, "5"), "%q", bound)
	}
}

// WITHSCORE is from Redis 7.2, and so are these replies. Without it ZRANK is as in 7.0.
func TestRankWithScore(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Check([]resptest.Answer{
		{"ZADD z 1.5 a 2 b", ":2"},
		{"ZRANK z a WITHSCORE", "*2 :0 $3 1.5"},
		{"ZREVRANK z a withscore", "*2 :1 $3 1.5"},
		{"ZRANK z nobody WITHSCORE", "*-1"},
		{"ZRANK none a WITHSCORE", "*-1"},
		{"ZRANK z a WITHSCORE x", "-ERR wrong number of arguments for 'zrank' command"},
		{"ZREVRANK z a WITHSCORES", "-ERR wrong number of arguments for 'zrevrank' command"},
	})
	c.Do("HELLO 3")
	c.Check([]resptest.Answer{
		{"ZRANK z a WITHSCORE", "*2 :0 ,1.5"},
		{"ZRANK z nobody WITHSCORE", "_"},
	})
}

// A large sorted set is scanned in several steps, and MATCH leaves out members that do not match.
func TestZScanOfALargeSortedSet(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	words := []string{"ZADD", "z"}
	for i := range 1000 {
		words = append(words, fmt.Sprint(i), fmt.Sprintf("m%d", i))
	}
	require.Equal(t, ":1000", c.Send(words...))
	for pattern, want := range map[string]int{"*": 1000, "m*": 1000, "m?": 10, "*99": 10, "x": 0} {
		found, calls := make(map[string]string), 0
		for cursor := "0"; cursor != "0" || calls == 0; calls++ {
			fields := strings.Fields(c.Do("ZSCAN z " + cursor + " COUNT 50 MATCH " + pattern))
			cursor = fields[2]
			for i := 4; i < len(fields); i += 4 {
				found[fields[i+1]] = fields[i+3]
			}
		}
		assert.Len(t, found, want, pattern)
		assert.Greater(t, calls, 5)
		for member, score := range found {
			assert.Equal(t, "m"+score, member)
		}
	}
}

func TestRandomMembers(t *testing.T) {
	c := resptest.Start(t, config.Defaults{}).Dial()
	c.Do("ZADD z 1 a 2 b 3 c 4 d")
	for range 20 {
		assert.Regexp(t, `^\$1 [abcd]$`, c.Do("ZRANDMEMBER z"))
		assert.Regexp(t, `^\*5( \$1 [abcd]){5}$`, c.Do("ZRANDMEMBER z -5"))
		assert.Regexp(t, `^\*4( \$1 (a \$1 1|b \$1 2|c \$1 3|d \$1 4)){2}$`, c.Do("ZRANDMEMBER z 2 WITHSCORES"))
		three := strings.Fields(c.Do("ZRANDMEMBER z 3"))
		assert.Len(t, map[string]bool{three[2]: true, three[4]: true, three[6]: true}, 3, "all different")
	}
	assert.Equal(
		t,
		"-ERR value is out of range",
		c.Do("ZRANDMEMBER z -1000001"),
		"Redis would reply until it runs out of memory",
	)
}
