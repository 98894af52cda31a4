package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connect opens a client that is closed when the test ends. It has longer timeouts than the
// default, for slow machines, and does not retry: a test that counts sends each command once.
func (s *server) connect(t *testing.T, tune ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{
		Addr:         s.addr,
		MaxRetries:   -1,
		DialTimeout:  patience,
		ReadTimeout:  patience,
		WriteTimeout: patience,
		PoolTimeout:  patience,
	}
	for _, change := range tune {
		change(o)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// words returns the arguments of a command line for go-redis.
func words(line string) (args []any) {
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	return args
}

// inBothProtocols runs a test with a client that speaks RESP2 and with one that speaks RESP3, each
// with a server of its own.
func inBothProtocols(t *testing.T, test func(*testing.T, *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			t.Parallel()
			test(t, startServer(t).connect(t, func(o *redis.Options) { o.Protocol = protocol }))
		})
	}
}

// A client with default options completes its handshake, and CLIENT INFO shows what it sent.
func TestClientWithDefaultSettings(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: startServer(t).addr})
	defer rdb.Close()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	info, err := rdb.ClientInfo(t.Context()).Result()
	require.NoError(t, err)
	assert.Equal(t, 3, info.Resp, "HELLO 3")
	assert.Contains(t, info.LibName, "go-redis", "CLIENT SETINFO")
	assert.NotEmpty(t, info.LibVer)
}

func TestClientHandshake(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, protocol := range []int{2, 3} {
		rdb := s.connect(t, func(o *redis.Options) {
			o.Protocol, o.ClientName, o.DB, o.PoolSize = protocol, fmt.Sprintf("worker-%d", protocol), 7, 1
		})
		info, err := rdb.ClientInfo(t.Context()).Result()
		require.NoError(t, err)
		assert.Equal(t, protocol, info.Resp)
		assert.Equal(t, fmt.Sprintf("worker-%d", protocol), info.Name)
		assert.Equal(t, 7, info.DB)
		hello, err := rdb.Do(t.Context(), "HELLO").Result()
		require.NoError(t, err)
		assert.Contains(t, fmt.Sprint(hello), "redis")
	}
	list, err := s.connect(t).ClientList(t.Context()).Result()
	require.NoError(t, err)
	for _, name := range []string{"name=worker-2 ", "name=worker-3 ", "resp=2", "resp=3", "db=7", "lib-name=go-redis"} {
		assert.Contains(t, list, name)
	}
}

// Twenty connections of one pool serve sixty-four callers.
func TestClientPool(t *testing.T) {
	t.Parallel()
	const size, callers, calls = 20, 64, 50
	rdb := startServer(t).connect(t, func(o *redis.Options) { o.PoolSize = size })
	ids := make(map[int64]bool)
	var held []*redis.Conn
	for range size {
		conn := rdb.Conn()
		held = append(held, conn)
		id, err := conn.ClientID(t.Context()).Result()
		require.NoError(t, err)
		ids[id] = true
	}
	assert.Len(t, ids, size, "each connection has an id of its own")
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}

	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for call := range calls {
				want := fmt.Sprint(caller, " ", call)
				got, err := rdb.Echo(context.Background(), want).Result()
				assert.NoError(t, err)
				assert.Equal(t, want, got)
				assert.NoError(t, rdb.Incr(context.Background(), "calls").Err())
			}
		})
	}
	wg.Wait()
	assert.Equal(t, strconv.Itoa(callers*calls), rdb.Get(t.Context(), "calls").Val())
	assert.LessOrEqual(t, rdb.PoolStats().TotalConns, uint32(size))
}

// A pipeline of a thousand commands of all kinds, errors among them, is answered in order.
func TestClientPipeline(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		const rounds = 100
		kinds := []struct {
			command func(round int) string
			want    func(round int) string
		}{
			{func(i int) string { return fmt.Sprintf("SET k%d v%d", i, i) }, func(int) string { return "OK" }},
			{
				func(i int) string { return fmt.Sprintf("GET k%d", i) },
				func(i int) string { return fmt.Sprintf("v%d", i) },
			},
			{func(int) string { return "INCR n" }, func(i int) string { return strconv.Itoa(i + 1) }},
			{func(i int) string { return fmt.Sprintf("ZADD z %d m%d", i, i) }, func(int) string { return "1" }},
			{func(i int) string { return fmt.Sprintf("ZRANK z m%d", i) }, strconv.Itoa},
			{
				func(int) string { return "RL.SLIDE slide 1000 1h" },
				func(i int) string { return fmt.Sprintf("[1 1000 %d 0 ", 999-i) },
			},
			{
				func(int) string { return "NONSENSE a b" },
				func(int) string { return "ERR unknown command 'NONSENSE', with args beginning with: 'a' 'b' " },
			},
			{func(i int) string { return fmt.Sprintf("HGET k%d f", i) }, func(int) string { return "WRONGTYPE " }},
			{func(i int) string { return fmt.Sprintf("HSET h f%d %d", i, i) }, func(int) string { return "1" }},
			{func(i int) string { return fmt.Sprintf("ECHO %d", i) }, strconv.Itoa},
		}
		pipe := rdb.Pipeline()
		for i := range rounds {
			for _, kind := range kinds {
				pipe.Do(t.Context(), words(kind.command(i))...)
			}
		}
		replies, _ := pipe.Exec(t.Context()) // the error is that of the first command that got one
		require.Len(t, replies, rounds*len(kinds))
		for at, reply := range replies {
			got, err := reply.(*redis.Cmd).Result()
			text := fmt.Sprint(got)
			if err != nil {
				text = err.Error()
			}
			kind, i := kinds[at%len(kinds)], at/len(kinds)
			require.True(t, strings.HasPrefix(text, kind.want(i)), "reply %d, to %s: %q", at, kind.command(i), text)
		}
	})
}

func TestClientUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rlserver.sock")
	s := startServer(t, "--unixsocket", path, "--unixsocketperm", "700")
	rdb := s.connect(t, func(o *redis.Options) { o.Network, o.Addr = "unix", path })
	require.NoError(t, rdb.Set(t.Context(), "k", "by socket", 0).Err())
	assert.Equal(t, "by socket", s.connect(t).Get(t.Context(), "k").Val(), "both listeners serve the same keys")
	info, err := rdb.ClientInfo(t.Context()).Result()
	require.NoError(t, err)
	assert.Contains(t, info.Addr, path)
}

func TestClientPassword(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--requirepass", "open sesame")
	for _, protocol := range []int{2, 3} {
		login := func(user, password string) error {
			as := func(o *redis.Options) { o.Protocol, o.Username, o.Password = protocol, user, password }
			return s.connect(t, as).Ping(t.Context()).
				Err()
		}
		assert.NoError(t, login("", "open sesame"))
		assert.NoError(t, login("default", "open sesame"))
		assert.ErrorContains(t, login("", "open barley"), "WRONGPASS")
		assert.ErrorContains(t, login("ali", "open sesame"), "WRONGPASS")
		assert.ErrorContains(t, login("", ""), "NOAUTH")
	}
}

func TestClientDatabases(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	in := func(db int) *redis.Client { return s.connect(t, func(o *redis.Options) { o.DB = db }) }
	first, last := in(0), in(15)
	require.NoError(t, first.Set(t.Context(), "k", "first", 0).Err())
	assert.Equal(t, redis.Nil, last.Get(t.Context(), "k").Err())
	require.NoError(t, last.Set(t.Context(), "k", "last", 0).Err())
	assert.Equal(t, "first", first.Get(t.Context(), "k").Val())
	for _, rdb := range []*redis.Client{first, last} {
		assert.True(t, allows(t, rdb, "RL.SLIDE limit 1 1h"), "a limit holds in its own database")
		assert.False(t, allows(t, rdb, "RL.SLIDE limit 1 1h"))
	}
	require.NoError(t, first.FlushDB(t.Context()).Err())
	assert.Equal(t, int64(2), last.DBSize(t.Context()).Val())
	assert.ErrorContains(t, in(16).Ping(t.Context()).Err(), "ERR DB index is out of range")
}

func TestClientLargeAndBinary(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		large := strings.Repeat(string(every), 4096) // 1 MB
		keys := []string{string(every), "", "\r\n", "*1\r\n$4\r\nPING\r\n", strings.Repeat("long", 15_000)}
		for _, key := range keys {
			require.NoError(t, rdb.Set(t.Context(), key, large, 0).Err())
			got, err := rdb.Get(t.Context(), key).Result()
			require.NoError(t, err)
			require.True(t, got == large, "the value of %.30q came back", key)
			require.NoError(t, rdb.HSet(t.Context(), "hash", key, key).Err())
			require.NoError(t, rdb.ZAdd(t.Context(), "zset", redis.Z{Score: 1, Member: key}).Err())
			reply, err := rdb.Do(t.Context(), "RL.SLIDE", "limit:"+key, 1, "1h", "ID", "id:"+key).Int64Slice()
			require.NoError(t, err)
			require.Equal(t, int64(1), reply[0])
			require.Equal(t, []string{"id:" + key}, rdb.ZRange(t.Context(), "limit:"+key, 0, -1).Val())
		}
		assert.ElementsMatch(t, keys, rdb.HKeys(t.Context(), "hash").Val())
		assert.ElementsMatch(t, keys, rdb.ZRange(t.Context(), "zset", 0, -1).Val())

		pipe := rdb.Pipeline()
		for range 16 {
			pipe.Append(t.Context(), "log", large)
			pipe.GetRange(t.Context(), "log", -256, -1)
		}
		replies, err := pipe.Exec(t.Context())
		require.NoError(t, err)
		for i := 1; i < len(replies); i += 2 {
			require.Equal(t, string(every), replies[i].(*redis.StringCmd).Val())
		}
		assert.Equal(t, int64(16*len(large)), rdb.StrLen(t.Context(), "log").Val())
	})
}

// Errors have Redis' texts, one for each command, and the connection stays open.
func TestClientErrors(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		conn := rdb.Conn()
		defer conn.Close()
		id := conn.ClientID(t.Context()).Val()
		require.NoError(t, conn.Set(t.Context(), "s", "text", 0).Err())
		for call, want := range map[string]string{
			"GET":                      "ERR wrong number of arguments for 'get' command",
			"INCR s":                   "ERR value is not an integer or out of range",
			"ZADD s 1 m":               "WRONGTYPE Operation against a key holding the wrong kind of value",
			"RL.SLIDE s 1 1s":          "WRONGTYPE Operation against a key holding the wrong kind of value",
			"RL.SLIDE k 1":             "ERR wrong number of arguments for 'rl.slide' command",
			"RL.SLIDE k 1 1s NONSENSE": "ERR syntax error",
			"RL.SLIDE k 1 soon": "ERR invalid duration 'soon': " +
				"use seconds, or a number with ms, s, m, h, d or w",
			"RL.SLIDE k 0 1s": "ERR limit must be from 1 to 9007199254740991",
			"RL.TOKEN k many 1 1s": "ERR value is not an integer or out of range: " +
				"capacity must be from 1 to 9007199254740991",
			"EVAL return": "ERR wrong number of arguments for 'eval' command",
			"FCALL f 0": "ERR this server has no functions: EVAL and EVALSHA run scripts, and RL.SLIDE, RL.TOKEN, " +
				"RL.FIXED, RL.LEASE and RL.ALL limit without one",
			"RL.FIXED k 1 day TZ Utopia": "ERR unknown time zone 'Utopia': " +
				"TZ takes an IANA name such as UTC or Europe/Berlin",
		} {
			assert.EqualError(t, conn.Do(t.Context(), words(call)...).Err(), want, call)
		}
		assert.Equal(t, id, conn.ClientID(t.Context()).Val(), "it is still the same connection")
		assert.Equal(t, int64(0), rdb.Exists(t.Context(), "k").Val(), "a call with an error changes nothing")
	})
}

func TestClientStrings(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		require.NoError(t, rdb.MSet(ctx, "a", "1", "b", "2").Err())
		assert.Equal(t, []any{"1", "2", nil}, rdb.MGet(ctx, "a", "b", "c").Val())
		assert.Equal(t, int64(42), rdb.IncrBy(ctx, "a", 41).Val())
		assert.Equal(t, 2.5, rdb.IncrByFloat(ctx, "b", 0.5).Val())
		assert.True(t, rdb.SetNX(ctx, "c", "new", patience).Val())
		assert.False(t, rdb.SetNX(ctx, "c", "newer", patience).Val())
		assert.LessOrEqual(t, rdb.PTTL(ctx, "c").Val(), patience)
		assert.Equal(t, "new", rdb.SetArgs(ctx, "c", "last", redis.SetArgs{Get: true, KeepTTL: true}).Val())
		assert.Positive(t, rdb.TTL(ctx, "c").Val())
		assert.Equal(t, "last", rdb.GetEx(ctx, "c", patience).Val())
		assert.True(t, rdb.Persist(ctx, "c").Val())
		assert.Equal(t, "last", rdb.GetDel(ctx, "c").Val())
		assert.Equal(t, redis.Nil, rdb.Get(ctx, "c").Err())
		increment := redis.IncrEXIntArgs{By: 2, HasBy: true, UBound: 3, HasUBound: true}
		assert.Equal(t, redis.IncrEXIntResult{Value: 2, AppliedIncrement: 2}, rdb.IncrEXInt(ctx, "d", increment).Val())
		assert.Equal(t, redis.IncrEXIntResult{Value: 2}, rdb.IncrEXInt(ctx, "d", increment).Val(), "beyond its bound")
		assert.Equal(t, int64(3), rdb.Del(ctx, "a", "b", "c", "d").Val())
	})
}

func TestClientHashes(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		type permit struct {
			Left int     `redis:"left"`
			Rate float64 `redis:"rate"`
		}
		require.NoError(t, rdb.HSet(ctx, "h", permit{7, 0.5}).Err())
		var read permit
		require.NoError(t, rdb.HGetAll(ctx, "h").Scan(&read))
		assert.Equal(t, permit{7, 0.5}, read)
		assert.Equal(t, map[string]string{"left": "7", "rate": "0.5"}, rdb.HGetAll(ctx, "h").Val())
		assert.Equal(t, []any{"7", nil}, rdb.HMGet(ctx, "h", "left", "right").Val())
		assert.Equal(t, int64(6), rdb.HIncrBy(ctx, "h", "left", -1).Val())
		assert.Equal(t, 0.75, rdb.HIncrByFloat(ctx, "h", "rate", 0.25).Val())
		assert.False(t, rdb.HSetNX(ctx, "h", "left", 0).Val())
		assert.ElementsMatch(t, []redis.KeyValue{{Key: "left", Value: "6"}, {Key: "rate", Value: "0.75"}},
			rdb.HRandFieldWithValues(ctx, "h", 2).Val())
		assert.Equal(t, int64(2), rdb.HDel(ctx, "h", "left", "rate").Val())
		assert.Equal(t, int64(0), rdb.Exists(ctx, "h").Val())
	})
}

func TestClientSortedSets(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		one, two, three := redis.Z{
			Score:  1,
			Member: "one",
		}, redis.Z{
			Score:  2.5,
			Member: "two",
		}, redis.Z{
			Score:  3,
			Member: "three",
		}
		require.Equal(t, int64(3), rdb.ZAdd(ctx, "z", three, one, two).Val())
		assert.Equal(t, []redis.Z{one, two, three}, rdb.ZRangeWithScores(ctx, "z", 0, -1).Val())
		assert.Equal(t, []redis.Z{three, two}, rdb.ZRangeArgsWithScores(ctx,
			redis.ZRangeArgs{Key: "z", Start: "+inf", Stop: "(1", ByScore: true, Rev: true, Count: 10}).Val())
		assert.Equal(t, int64(2), rdb.ZCount(ctx, "z", "2", "3").Val())
		assert.Equal(t, []float64{1, 0, 3}, rdb.ZMScore(ctx, "z", "one", "none", "three").Val())
		assert.Equal(t, int64(2), rdb.ZRank(ctx, "z", "three").Val())
		assert.Equal(t, redis.Nil, rdb.ZRank(ctx, "z", "none").Err())
		assert.Equal(t, 4.0, rdb.ZIncrBy(ctx, "z", 3, "one").Val())
		assert.Equal(t, int64(0), rdb.ZAddGT(ctx, "z", redis.Z{Score: 1, Member: "one"}).Val())
		require.NoError(t, rdb.ZAdd(ctx, "other", redis.Z{Score: 10, Member: "two"}).Err())
		assert.Equal(t, []redis.Z{{Score: 12.5, Member: "two"}},
			rdb.ZInterWithScores(ctx, &redis.ZStore{Keys: []string{"z", "other"}}).Val())
		assert.Equal(t, int64(3),
			rdb.ZUnionStore(ctx, "union", &redis.ZStore{Keys: []string{"z", "other"}, Weights: []float64{1, 0}}).Val())
		key, popped, err := rdb.ZMPop(ctx, "min", 2, "missing", "z").Result()
		require.NoError(t, err)
		assert.Equal(t, "z", key)
		assert.Equal(t, []redis.Z{two, three}, popped)
		assert.Equal(t, []redis.Z{{Score: 4, Member: "one"}}, rdb.ZPopMax(ctx, "z", 5).Val())
		assert.Equal(t, int64(1), rdb.ZRemRangeByScore(ctx, "union", "-inf", "2.5").Val())
	})
}

// The iterators of go-redis walk the keyspace, a hash and a sorted set by cursor, and return each
// element once.
func TestClientScanIterators(t *testing.T) {
	t.Parallel()
	inBothProtocols(t, func(t *testing.T, rdb *redis.Client) {
		const n = 1000
		var keys, pairs []string
		pipe := rdb.Pipeline()
		for i := range n {
			key := fmt.Sprintf("key:%04d", i)
			keys, pairs = append(keys, key), append(pairs, key, strconv.Itoa(i))
			pipe.Set(t.Context(), key, i, 0)
			pipe.HSet(t.Context(), "hash", key, i)
			pipe.ZAdd(t.Context(), "zset", redis.Z{Score: float64(i), Member: key})
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)

		assert.Equal(t, keys, walk(t, rdb.Scan(t.Context(), 0, "key:*", 100), 1))
		assert.Equal(t, []string{"zset"}, walk(t, rdb.ScanType(t.Context(), 0, "", 0, "zset"), 1))
		assert.Equal(t, pairs, walk(t, rdb.HScan(t.Context(), "hash", 0, "", 100), 2))
		assert.Equal(t, pairs, walk(t, rdb.ZScan(t.Context(), "zset", 0, "key:*", 100), 2))
	})
}

// walk collects the elements of a scan, in groups of one or two, and sorts the groups.
func walk(t *testing.T, scan *redis.ScanCmd, group int) []string {
	t.Helper()
	var all []string
	it := scan.Iterator()
	for it.Next(t.Context()) {
		all = append(all, it.Val())
	}
	require.NoError(t, it.Err())
	groups := slices.Collect(slices.Chunk(all, group))
	slices.SortFunc(groups, slices.Compare)
	return slices.Concat(groups...)
}
