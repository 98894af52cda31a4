package executor_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/clock"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	_ "rlserver/resp/commands/limits"
	_ "rlserver/resp/commands/str"
	"rlserver/resp/config"
	"rlserver/resp/diagnostics"
	"rlserver/resp/executor"
)

// program is an origin of calls that is no connection, such as a script.
type program struct{ name string }

func (p program) MakeRoom(command.Prepared) bool { return true }
func (p program) Describe() string               { return "name=" + p.name }
func (p program) Address() string                { return "" }
func (p program) Name() string                   { return p.name }
func (p program) Source() string                 { return p.name }
func (p program) HoldLines(int)                  {}

// environment returns that of a server with an empty keyspace.
func environment() *command.Env {
	log := slog.New(slog.DiscardHandler)
	settings := config.NewSettings(config.Defaults{"databases": "1", "maxclients": "1"})
	env := &command.Env{
		Cluster: command.Alone{},
		Engine:  engine.New(engine.Options{}), Time: clock.New(clock.System(), log), Log: log, Settings: settings,
		Stats: stats.New(command.Count), Slowlog: new(diagnostics.Slowlog), Latency: new(diagnostics.Latency),
		Users: acl.NewUsers(command.AccessCatalog(), &settings.Access), AccessLog: new(acl.Log),
	}
	return env
}

func newRunner(env *command.Env) *executor.Runner {
	r := &executor.Runner{
		Call: command.Call{
			Env: env, Tx: env.Engine.NewTx(), Account: env.Users.Default(),
		},
		Hasher: command.Hasher{Engine: env.Engine},
	}
	r.Init(env, program{"nightly"})
	return r
}

// prepare resolves the calls of a program, which it may run.
func prepare(x *executor.Executor, r *executor.Runner, lines ...string) (calls []command.Prepared, err error) {
	for _, line := range lines {
		var words [][]byte
		for _, word := range strings.Fields(line) {
			words = append(words, []byte(word))
		}
		var p command.Prepared
		err := p.Resolve(r.Env, words, nil)
		if err == nil {
			err = r.Admit(&p, executor.Script, p.Command.Flags, ^p.Command.Flags)
		}
		if err != nil {
			return nil, err
		}
		calls = append(calls, p)
	}
	return calls, nil
}

// exec runs calls as one transaction.
func exec(r *executor.Runner, calls []command.Prepared) {
	r.Hasher.Reset()
	for i := range calls {
		r.Hasher.Add(&calls[i])
	}
	r.Tx.Begin(r.Env.Clock(), r.DB, r.Hasher.Keys, true)
	r.RunAll(calls, r.Hasher.Keys)
	r.Tx.End()
}

// A program runs a list of calls as one transaction, without a connection.
func Example() {
	env := environment()
	x := executor.New(env)
	r := newRunner(env)
	calls, err := prepare(x, r, "SET k 1", "INCR k", "RL.TOKEN bucket 10 10 1s COST 4", "GET k")
	if err != nil {
		fmt.Println(err)
		return
	}
	exec(r, calls)
	fmt.Println(strings.ReplaceAll(string(r.Reply.B), "\r\n", " "))
	// Output: +OK :2 *5 :1 :10 :6 :0 :400 $1 2
}

func TestCallsThatMayNotRun(t *testing.T) {
	env := environment()
	x := executor.New(env)
	r := newRunner(env)
	for line, want := range map[string]string{
		"NONSENSE a":      "ERR unknown command 'NONSENSE', with args beginning with: 'a' ",
		"GET":             "ERR wrong number of arguments for 'get' command",
		"RL.POLICY MAKE":  "ERR unknown subcommand 'MAKE'. Try RL.POLICY HELP.",
		"COMMAND COUNT 1": "ERR wrong number of arguments for 'command|count' command",
	} {
		_, err := prepare(x, r, line)
		assert.EqualError(t, err, want)
	}

	x.SetLoading(true)
	_, err := prepare(x, r, "GET k")
	assert.EqualError(t, err, command.ErrLoading.Error())
	x.SetLoading(false)

	require.NoError(t, env.Users.Set("default", []string{"-set"}))
	_, err = prepare(x, r, "SET k 1")
	assert.EqualError(t, err, "NOPERM this user has no permissions to run the 'set' command")
	require.Len(t, env.AccessLog.Latest(1), 1)
	assert.Equal(t, "lua", env.AccessLog.Latest(1)[0].Context)
}

// A panic of a handler costs its own call an error. The calls beside it run, and keys are unlocked.
func TestAPanicEndsOneCall(t *testing.T) {
	env := environment()
	x := executor.New(env)
	r := newRunner(env)
	broken := &command.Command{Name: "broken", Flags: command.Write, Run: func(c *command.Call) error {
		c.Reply.Array(2)
		c.Tx.Exists(env.Engine.Key([]byte("not declared")))
		return nil
	}}
	calls, err := prepare(x, r, "SET k 1", "INCR k")
	require.NoError(t, err)
	calls = []command.Prepared{calls[0], {Command: broken, Words: [][]byte{[]byte("broken")}, Name: 1}, calls[1]}
	exec(r, calls)
	assert.Equal(t, "+OK\r\n-ERR internal error\r\n:2\r\n", string(r.Reply.B))
	r.Reply.B = r.Reply.B[:0]
	exec(r, calls[2:])
	assert.Equal(t, ":3\r\n", string(r.Reply.B))
}
