package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/interior"
	"rlserver/resp/lua/number"
)

// redis.* in scripts.
var redisFunctions = map[string]function{
	"call": redisCall, "pcall": redisPcall, "error_reply": redisErrorReply, "status_reply": redisStatusReply,
	"sha1hex": redisSHA1, "log": redisLog, "setresp": redisSetResp, "replicate_commands": returns(glua.LTrue),
	"set_repl": redisSetRepl, "acl_check_cmd": redisACLCheck, "breakpoint": returns(glua.LFalse),
	"debug": func(*State, *glua.LState) int { return 0 },
}

var redisConstants = map[string]glua.LValue{
	"LOG_DEBUG": glua.LNumber(0), "LOG_VERBOSE": glua.LNumber(1), "LOG_NOTICE": glua.LNumber(2),
	"LOG_WARNING": glua.LNumber(3),
	"REPL_NONE":   glua.LNumber(0), "REPL_AOF": glua.LNumber(1), "REPL_SLAVE": glua.LNumber(2),
	"REPL_REPLICA": glua.LNumber(2), "REPL_ALL": glua.LNumber(3),
	"REDIS_VERSION": glua.LString("7.0.15"), "REDIS_VERSION_NUM": glua.LNumber(0x7000f),
}

func (st *State) errorTable(text string) *glua.LTable {
	t := st.L.CreateTable(0, 2)
	t.RawSetString("err", glua.LString(text))
	return t
}

// countedField is the field of the error of a command that has been counted when it failed, as in
// Redis.
const countedField = "ignore_error_stats_update"

func wasCounted(t *glua.LTable) bool { return t.RawGetString(countedField) == glua.LTrue }

// raiseReply raises an error that is a table, as the functions of redis do.
func (st *State) raiseReply(L *glua.LState, text string) int {
	L.Error(st.errorTable(text), 1)
	return 0
}

const (
	errNoWords  = "ERR Please specify at least one argument for this redis lib call"
	errBadWords = "ERR Lua redis lib command arguments must be strings or integers"
)

func redisCall(st *State, L *glua.LState) int  { return st.call(L, true) }
func redisPcall(st *State, L *glua.LState) int { return st.call(L, false) }

// call runs a command. Errors are raised, or returned as a table.
func (st *State) call(L *glua.LState, raises bool) int {
	st.watch.step(8)
	fault, counted := "", false
	switch {
	case L.GetTop() == 0:
		fault = errNoWords
	case !st.takeWords(L):
		fault = errBadWords
	}
	if fault == "" {
		st.watch.endTurn()
		reply := st.host.Do(st.args.words, st.resp3)
		st.watch.raiseIfDead()
		switch {
		case reply[0] == '-':
			fault, counted = strings.TrimSuffix(string(reply[1:]), "\r\n"), true
		case !interior.Wanted(L):
			return 0
		default:
			L.Push(st.value(reply))
			return 1
		}
	}
	t := st.L.CreateTable(0, 2)
	if counted { // before the text, as pairs has them in Redis
		t.RawSetString(countedField, glua.LTrue)
	}
	t.RawSetString("err", glua.LString(fault))
	if raises {
		L.Error(t, 0)
	}
	L.Push(t)
	return 1
}

// takeWords copies the arguments. It reports false if one is neither a string nor a number.
func (st *State) takeWords(L *glua.LState) bool {
	n := L.GetTop()
	a := &st.args
	a.words, a.text = a.words[:0], a.text[:0]
	for i := 1; i <= n; i++ { // first all bytes, which may move
		switch v := L.Get(i).(type) {
		case glua.LString:
			a.text = st.watch.join(a.text, string(v))
		case glua.LNumber:
			a.text = number.Append(a.text, float64(v), 17)
		default:
			return false
		}
		a.words = append(a.words, nil)
		a.ends = append(a.ends[:i-1], len(a.text))
	}
	begin := 0
	for i, end := range a.ends {
		a.words[i] = a.text[begin:end:end]
		begin = end
	}
	return true
}

func redisErrorReply(st *State, L *glua.LState) int {
	if L.GetTop() != 1 || L.Get(1).Type() != glua.LTString {
		L.Push(st.errorTable("ERR wrong number or type of arguments"))
		return 1
	}
	text, _, _ := strings.Cut(string(L.Get(1).(glua.LString)), "\x00")
	text = strings.TrimRight(strings.TrimPrefix(text, "-"), "\r\n")
	if strings.IndexByte(text, ' ') < 0 { // it has no code
		text = "ERR " + text
	}
	L.Push(st.errorTable(text))
	return 1
}

func redisStatusReply(st *State, L *glua.LState) int {
	if L.GetTop() != 1 || L.Get(1).Type() != glua.LTString {
		L.Push(st.errorTable("ERR wrong number or type of arguments"))
		return 1
	}
	t := st.L.CreateTable(0, 1)
	t.RawSetString("ok", L.Get(1))
	L.Push(t)
	return 1
}

func redisSHA1(st *State, L *glua.LState) int {
	if L.GetTop() != 1 {
		return st.raiseReply(L, "ERR wrong number of arguments")
	}
	text, _ := joinable(L.Get(1))
	st.watch.step(len(text) / 16)
	return st.push(L, SHA1(text))
}

// SHA1 returns the name of a script: the SHA-1 of its text, in hexadecimal.
func SHA1(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func redisLog(st *State, L *glua.LState) int {
	level, ok := L.Get(1).(glua.LNumber)
	switch {
	case L.GetTop() < 2:
		return st.raiseReply(L, "ERR redis.log() requires two arguments or more.")
	case !ok:
		return st.raiseReply(L, "ERR First argument must be a number (log level).")
	case level < 0 || level > 3:
		return st.raiseReply(L, "ERR Invalid debug level.")
	}
	var parts []string
	for i := 2; i <= L.GetTop(); i++ {
		text, _ := joinable(L.Get(i))
		parts = append(parts, text)
	}
	text := strings.Join(parts, " ")
	st.watch.step(256)
	st.host.Log(int(level), text[:min(len(text), 1024)])
	return 0
}

func redisSetResp(st *State, L *glua.LState) int {
	if L.GetTop() != 1 {
		return st.raiseReply(L, "ERR redis.setresp() requires one argument.")
	}
	n, _ := asNumber(L.Get(1))
	if n != 2 && n != 3 {
		return st.raiseReply(L, "ERR RESP version must be 2 or 3.")
	}
	st.resp3 = n == 3
	return 0
}

func redisSetRepl(st *State, L *glua.LState) int {
	n, _ := asNumber(L.Get(1))
	switch {
	case L.GetTop() != 1:
		return st.raiseReply(L, "ERR redis.set_repl() requires two arguments.")
	case int(n)&^3 != 0:
		return st.raiseReply(L, "ERR Invalid replication flags. Please use REPL_AOF, REPL_REPLICA, REPL_ALL or "+
			"REPL_NONE.")
	}
	return 0
}

func redisACLCheck(st *State, L *glua.LState) int {
	if L.GetTop() == 0 {
		return st.raiseReply(L, "ERR Please specify at least one argument for this redis.acl_check_cmd() call")
	}
	if !st.takeWords(L) {
		return st.raiseReply(L, "ERR redis.acl_check_cmd() command arguments must be strings or integers")
	}
	ok, err := st.host.Allowed(st.args.words)
	if err != nil {
		return st.raiseReply(L, err.Error())
	}
	L.Push(glua.LBool(ok))
	return 1
}
