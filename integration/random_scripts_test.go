package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTranscriptsOfRandomScripts sends 20,000 random scripts to a real redis-server too, and
// compares the replies, and the digests of all keys after each.
func TestTranscriptsOfRandomScripts(t *testing.T) {
	if os.Getenv("TRANSCRIPT_LIVE") == "" {
		t.Skip("compares with a real redis-server: make live")
	}
	seed := randomSeed(t)
	scripts := &randomScripts{Rand: rand.New(rand.NewPCG(seed, seed))}
	debug := []string{"--enable-debug-command", "yes"}
	redis, ours := newBatches(t, startRedis(t, debug...)), newBatches(t, startServer(t, debug...))
	for range 200 {
		batch := [][]string{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}}
		for range 100 {
			eval := append([]string{"EVAL", scripts.next(), "6"}, scriptWords...)
			batch = append(batch, eval, []string{"DEBUG", "DIGEST"})
		}
		want, got := redis.sendWords(batch), ours.sendWords(batch)
		for i := range want {
			require.True(t, want[i] == got[i] || unnamed(want[i]) == unnamed(got[i]),
				"after %s\nRedis: %.3000s\nours: %.3000s", batch[max(i-1, 0)], want[i], got[i])
		}
	}
}

// unnamed returns a reply whose errors do not name variables: see docs/COMPATIBILITY.md.
func unnamed(reply string) string {
	reply = namedValue.ReplaceAllString(reply, "$1")
	return namedFunction.ReplaceAllString(reply, "argument $1")
}

var (
	namedValue    = regexp.MustCompile(`(?:local|upvalue|global|field|method) '[^']*' \((a \w+ value)\)`)
	namedFunction = regexp.MustCompile(`argument (#\d+) to '[^']*'`)
)

// scriptWords are the keys of scripts, by their types, and their arguments.
var scriptWords = []string{"string", "hash", "zset", "list", "set", "any", "5", "-2.75", "text", "", "0x1F", "10 "}

// randomScripts makes scripts. What is not defined is left out, and what docs/COMPATIBILITY.md
// lists: tables as text and the order of pairs, the sign of zero and of nan, modulo infinity, and
// the words of syntax errors. Therefore n makes 0 of -0, and 7 of nan, where arithmetic may have
// them as results, and show is what makes text of values that may be tables.
type randomScripts struct {
	*rand.Rand
	nested int
}

func (r *randomScripts) one(of ...string) string { return of[r.IntN(len(of))] }

// next returns a script: statements, and the variables as its result.
func (r *randomScripts) next() string {
	r.nested = 0
	lines := []string{
		"local a, b, s, p, l, u = " + r.number() + ", 3, " + r.text() + ", 'pq', {3, 1, 2}",
		"local function show(v) if type(v) == 'table' then return v.err or cjson.encode(v) end return tostring(v) end",
		"local function n(v) if v ~= v then return 7 end return v + 0 end",
	}
	for range 1 + r.IntN(6) {
		lines = append(lines, r.statement())
	}
	return strings.Join(append(lines, "return {show(a), a, show(b), s, p, "+r.value()+", show(u)}"), "\n")
}

// deep reports whether an expression has to be simple.
func (r *randomScripts) deep() bool { return r.nested > 2+r.IntN(2) }

// fill replaces the single letters in a pattern: N is a number, T a text, L a list, B a condition,
// V any value, C the call of a command, P a pattern of Lua, S a statement, @ a small integer.
func (r *randomScripts) fill(pattern string) string {
	r.nested++
	defer func() { r.nested-- }()
	return placeholder.ReplaceAllStringFunc(pattern, func(kind string) string {
		switch kind {
		case "N":
			return r.number()
		case "T":
			return r.text()
		case "L":
			return r.list()
		case "B":
			return r.condition()
		case "V":
			return r.value()
		case "S":
			return r.statement()
		case "C":
			return r.call()
		case "P":
			return r.pattern()
		}
		return fmt.Sprint(r.IntN(12) - 3)
	})
}

var placeholder = regexp.MustCompile(`\b[NTLBVSCP]\b|@`)

func (r *randomScripts) number() string {
	if r.deep() {
		return r.one("a", "b", "0", "1", "2", "-1", "0.1", "2.5", "255", "1e15", "-7", "1e100", "3.0", "0x10", "2^53",
			"1/3")
	}
	return r.fill(r.one("a", "b", "@", "@", "n(N + N)", "n(N - N)", "n(N * N)", "(N / 4)", "(@ % 7)", "(@ % 3)",
		"n(- N)", "N", "math.floor(N)", "math.ceil(N)", "math.abs(N)", "math.max(N, N)", "math.min(N, N)",
		"n(math.fmod(N, 5))", "(select(2, math.modf(N)))", "math.sqrt(math.abs(N))", "(tonumber(T) or N)",
		"(tonumber(T, 16) or 1)", "(T):len()", "select('#', V, V)", "(string.byte(T) or 0)", "#L", "bit.band(N, N)",
		"bit.bor(N, @)", "bit.bxor(N, 255)", "bit.lshift(N, 3)", "bit.rshift(N, 1)", "bit.arshift(N, 2)",
		"bit.tobit(N)", "(string.find(T, P) or -1)", "tonumber(ARGV[@])", "n(ARGV[1] * N)", "('2' + N)",
		"table.maxn(L)", "(tonumber((L)[1]) or 0)", "n(N ^ 2)", "(B and N or N)", "struct.size('i4>h')",
		"(struct.unpack('>i4', struct.pack('>i4', N)))", "math.log10(100)", "math.pow(2, @)", "(N < N and 1 or 0)",
		"cjson.decode('[1.5, 2]')[@]", "cmsgpack.unpack(cmsgpack.pack(N))", "(V)", "(next(L))"))
}

func (r *randomScripts) text() string {
	if r.deep() {
		return r.one("s", "p", "'abc'", "''", "'10'", "' 5 '", "'Hello World'", "'a\\0b'", "'0x1f'", "'1e3'",
			"ARGV[3]", "ARGV[2]")
	}
	return r.fill(r.one("s", "p", "(T .. T)", "(T .. N)", "show(N)", "tostring(B)", "('xy'):rep(@)", "(T):sub(@)",
		"(T):sub(@, @)", "(T):upper()", "string.lower(T)", "(T):reverse()", "string.format('%d', @)",
		"string.format('%5.2f', N)", "string.format('%g', N)", "string.format('%x', @)", "string.format('%-6s|', T)",
		"string.format('%q', T)", "string.format('%s %s', T, T)", "string.format('%5d|%05d', @, @)",
		"string.format('%e', N)", "(string.gsub(T, P, '<%0>'))", "(string.gsub(T, P, 'x', @))",
		"(string.gsub(T, '%w', string.upper))", "tostring(string.match(T, P))", "table.concat(L, ',')",
		"table.concat({T, N}, T)", "type(V)", "cjson.encode(V)", "cjson.encode(L)", "cjson.encode({[T] = N})",
		"string.char(65, 66)", "redis.sha1hex(T)", "bit.tohex(N)", "cmsgpack.pack(L)", "struct.pack('>I2s', 77, T)",
		"cjson.encode(cjson.decode(cjson.encode(L)))", "cjson.encode(cmsgpack.unpack(cmsgpack.pack(L)))", "ARGV[@]",
		"KEYS[1]", "show(V)", "show(C)", "string.format('%s', N)", "tostring(next({}))", "string.format('%.3s|', T)",
		"(B and T or T)"))
}

func (r *randomScripts) pattern() string {
	return r.one("'l+'", "'[a-c]'", "'%d+'", "'%s'", "'(.)(.)'", "'^H'", "'o$'", "'.-b'", "'%a*'", "'[^%w]'",
		"'%f[%w]%w+'", "'%('", "'('", "'[a'", "'x?'", "'()b'", "'%b()'", "''", "'%'")
}

func (r *randomScripts) list() string {
	if r.deep() {
		return r.one("{}", "{1}", "{1, 2, 3}", "{'a', 'b'}", "l")
	}
	return r.fill(r.one("{N, N}", "{T, T, N}", "{V, 1}", "l", "{unpack(L)}", "{L, 1}",
		"cjson.decode('[1, \"x\", [true]]')", "{(T):byte(1, 3)}"))
}

func (r *randomScripts) condition() string {
	if r.deep() {
		return r.one("true", "false", "a == b", "s == p")
	}
	return r.fill(r.one("N < N", "N <= N", "N == N", "T < T", "T == T", "not B", "(B and B)", "(B or B)", "V == V",
		"N ~= N", "N > N"))
}

func (r *randomScripts) value() string {
	if r.deep() {
		return r.one("nil", "true", "1", "'v'", "u", "a", "s")
	}
	return r.fill(r.one("N", "T", "B", "N", "T", "L", "C", "nil", "u", "cjson.null", "pcall(error, T)", "undefined",
		"l.x", "l[N]"))
}

// call returns a call of a command.
func (r *randomScripts) call() string {
	return "redis." + r.one("call", "call", "pcall") + "(" + r.fill(r.one("'GET', KEYS[1]", "'SET', KEYS[1], T",
		"'SET', KEYS[1], N", "'INCRBY', KEYS[1], @", "'INCRBYFLOAT', KEYS[1], N", "'APPEND', KEYS[1], T",
		"'STRLEN', KEYS[1]", "'GETRANGE', KEYS[1], @, @", "'HSET', KEYS[2], T, V", "'HSET', KEYS[2], 'f', N",
		"'HGET', KEYS[2], 'f'", "'HMGET', KEYS[2], 'f', 'g', T", "'HINCRBY', KEYS[2], 'n', @", "'HLEN', KEYS[2]",
		"'HDEL', KEYS[2], T", "'HEXISTS', KEYS[2], T", "'HINCRBYFLOAT', KEYS[2], 'x', N", "'ZADD', KEYS[3], N, T",
		"'ZADD', KEYS[3], @, 'm'", "'ZRANGE', KEYS[3], 0, -1", "'ZRANGE', KEYS[3], @, @, 'WITHSCORES'",
		"'ZSCORE', KEYS[3], T", "'ZINCRBY', KEYS[3], N, 'm'", "'ZCARD', KEYS[3]",
		"'ZREMRANGEBYSCORE', KEYS[3], '-inf', N", "'ZCOUNT', KEYS[3], '(1', '+inf'", "'ZRANK', KEYS[3], 'm'",
		"'RPUSH', KEYS[4], T, N", "'LPUSH', KEYS[4], V", "'LRANGE', KEYS[4], @, @", "'LLEN', KEYS[4]",
		"'LPOP', KEYS[4]", "'RPOP', KEYS[4], @", "'LINDEX', KEYS[4], @", "'LTRIM', KEYS[4], @, 5",
		"'LSET', KEYS[4], @, T", "'SADD', KEYS[5], T, N", "'SISMEMBER', KEYS[5], T", "'SCARD', KEYS[5]",
		"'SREM', KEYS[5], T", "'SMISMEMBER', KEYS[5], T, N", "'DEL', KEYS[6], KEYS[1]", "'EXISTS', KEYS[1], KEYS[2]",
		"'TYPE', KEYS[6]", "'SET', KEYS[6], T, 'EX', 100", "'PERSIST', KEYS[6]", "'RENAME', KEYS[1], KEYS[6]",
		"'GET', KEYS[2]", "'INCR', KEYS[4]", "'NOSUCH', 1", "'GET'", "'SUBSCRIBE', 'x'", "'MGET', KEYS[1], KEYS[6]",
		"'ECHO', T", "'DEL', KEYS[3]", "'SET', KEYS[1], T, 'NX'", "'GETSET', KEYS[1], T", "unpack({'GET', KEYS[1]})",
		"")) + ")"
}

// statement returns one or more statements.
func (r *randomScripts) statement() string {
	if r.deep() {
		return r.fill(r.one("a = N", "s = T", "l[#l + 1] = N"))
	}
	return r.fill(r.one("a = N", "b = N", "s = T", "p = T", "u = V", "u = C", "u = C", "C", "C",
		"if B then S else S end", "for i = 1, 3 do S end", "for i, v in ipairs(L) do u = v end",
		"while #s > 20 do s = s:sub(2, -5) end", "l = L", "l[#l + 1] = V", "table.insert(l, V)",
		"table.insert(l, 1, N)", "u = table.remove(l)", "u = table.remove(l, 1)", "table.sort(l)",
		"table.sort(l, function(x, y) return x > y end)", "u = {pcall(function() S return V end)}",
		"u = select(2, pcall(function() error(T) end))",
		"u = select(2, pcall(function() local x = V; return x + 1 end))",
		"u = select(2, pcall(function() local x = V; return x.y end))",
		"u = select(2, pcall(function() local x = V; return x .. 'z' end))",
		"u = select(2, pcall(function() local x = V; return x() end))",
		"u = select(2, pcall(function() local x, y = V, V; return x < y end))",
		"local function f(x, ...) if x > 3 then return ... end return f(x + 1, V, ...) end u = {f(1)}",
		"repeat a = N until true", "for w in (T):gmatch('%a+') do s = w end", "for k, v in pairs(L) do u = v end",
		"u = (T):find(P)", "u = {(T):match(P)}", "u = redis.error_reply(T)", "u = redis.status_reply(T)", "error(T)",
		"do local a = N; s = s .. a end", "a, b = b, a", "u = {pcall(redis.call, 'GET', KEYS[@])}",
		"local x = setmetatable({}, {__index = function(t, k) return k .. 'i' end}) u = x[T]",
		"u = xpcall(function() S end, function(e) s = e return e end)", "u = loadstring('return ' .. show(N))()",
		"u = {math.modf(N)}", "assert(B, T)", "u = {cjson.decode(T)}", "u = {pcall(cjson.decode, T)}",
		"u = redis.call('SET', KEYS[1], T).ok", "u = rawequal(V, V)", "u = tostring(tonumber(T))",
		"if B then return V end", "u = {struct.unpack('>I2', T .. 'ab')}", "u = {pcall(cmsgpack.unpack, T)}"))
}
