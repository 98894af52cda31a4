package resp

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/resp/command/commandtest"
)

// slowJournal is a journal that the test makes durable, or fails.
type slowJournal struct {
	mu       sync.Mutex
	changed  sync.Cond
	appended engine.Position
	synced   engine.Position
	failed   error
}

func newSlowJournal() *slowJournal {
	j := new(slowJournal)
	j.changed.L = &j.mu
	return j
}

func (j *slowJournal) Append(int64, []byte) engine.Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.appended++
	return j.appended
}

func (j *slowJournal) Wait(p engine.Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.synced < p && j.failed == nil {
		j.changed.Wait()
	}
	if j.synced >= p {
		return nil
	}
	return j.failed
}

// sync makes all effects so far durable.
func (j *slowJournal) sync() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.synced = j.appended
	j.changed.Broadcast()
}

func (j *slowJournal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = err
	j.changed.Broadcast()
}

// visibleChanges are cases of three clients: the first prepares, the second changes something, and
// the third sends a call whose reply shows the change. want is the beginning of that reply.
var visibleChanges = []struct{ before, change, ask, want string }{
	{"", "SET k v", "GET k", "$1 v"},
	{"SET k v", "DEL k", "EXISTS k", ":0"},
	{"", "SET k v", "SET k w NX", "$-1"},
	{"", "SET k v", "RL.TOKEN k 1 1 1h", "-WRONGTYPE"},
	{"", "RL.SLIDE k 1 1h", "RL.SLIDE k 1 1h", "*5 :0"},
	{"", "RL.SLIDE k 1 1h", "RL.SLIDE k 1 1h COST 0", "*5 :0"},
	{"", "RL.TOKEN k 1 1 1h", "RL.ALL j TOKEN 1 1 1h k TOKEN 1 1 1h", "*6 :0"},
	{"", "RL.SLIDE k 1 1h", "RL.SLIDE k 1 1h WAIT 1m", "*5 :0"},
	{"", "SET k v", "KEYS *", "*1 $1 k"},
	{"", "SET k v", "SCAN 0 COUNT 1000", "*2 $1 0 *1 $1 k"},
	{"", "SET k v", "DBSIZE", ":1"},
	{"", "SET k v", "RANDOMKEY", "$1 k"},
	{"", "SET k v", "INFO keyspace", "$"},
	{"RL.SLIDE k 1 1h", "RL.SLIDE j 1 1h", "RL.TOP", "*0"},
	{"SET k v", "FLUSHALL", "GET k", "$-1"},
	{"SET k v", "FLUSHALL", "FLUSHALL", "+OK"},
	{"", "RL.POLICY SET p SLIDE 1 1h", "RL.POLICY GET p", "$10 SLIDE 1 1h"},
	{"", "RL.POLICY SET p SLIDE 1 1h", "RL.POLICY LIST", "*1"},
	{"", "RL.POLICY SET p SLIDE 1 1h", "RL.POLICY SET p SLIDE 1 1h", "+OK"},
	{"RL.POLICY SET p SLIDE 1 1h", "RL.POLICY DEL p", "RL.POLICY DEL p", ":0"},
	{"", "RL.POLICY SET p SLIDE 1 1h", "RL.CHECK ann p COST 2", "*6 :0"},
	{"RL.POLICY SET p SLIDE 1 1h", "RL.POLICY DEL p", "RL.CHECK ann p", "-ERR no such policy"},
	{"", "RL.POLICY SET p SLIDE 1 1h", "INFO ratelimit", "$"},
	{"", "SET k v", "MULTI\nGET k\nEXEC", "*1 $1 v"},
	{"", "SET k v", "MULTI\nSCAN 0\nEXEC", "*1 *2"},
	{"", "SET k v", "PING\nGET j\nGET k", "$1 v"},
}

// A reply is sent only when all changes that it may show are durable, whichever client made them.
func TestRepliesWaitForTheChangesTheyShow(t *testing.T) {
	for _, c := range visibleChanges {
		t.Run(c.change+"; "+c.ask, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newSlowJournal()
				b := newBubble(t, j, nil)
				defer b.Shutdown(t.Context())
				defer j.sync()
				b.Calls("before", c.before)
				j.sync()
				b.Replies()
				b.Calls("changing", c.change)
				asking := b.Calls("asking", c.ask)
				assert.Empty(t, b.Replies(), "nothing is durable")
				j.sync()
				assert.Contains(t, strings.Join(b.Replies(), "\n"), "0 asking "+c.want)
				asking.Call("PING")
				assert.Equal(t, []string{"0 asking +PONG"}, b.Replies())
			})
		})
	}
}

// An aborted EXEC shows a change. So does the reply of a waiting call that a change has admitted.
func TestAbortedExecAndAdmittedWaiterAwaitTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newSlowJournal()
		b := newBubble(t, j, nil)
		defer b.Shutdown(t.Context())
		defer j.sync()
		watching := b.Calls("watching", "WATCH k\nMULTI\nPING")
		popping := b.Calls("popping", "BZPOPMIN z 0")
		b.Replies()
		b.Calls("changing", "MSET k v j v")
		watching.Call("EXEC")
		b.Calls("adding", "ZADD z 1 m")
		assert.Empty(t, b.Replies())
		popping.Call("PING")
		assert.Empty(t, b.Replies())
		j.sync()
		assert.ElementsMatch(
			t,
			[]string{
				"0 watching *-1",
				"0 changing +OK",
				"0 adding :1",
				"0 popping *3 $1 z $1 m $1 1",
				"0 popping +PONG",
			},
			b.Replies(),
		)
	})
}

// A reply that shows only durable changes is sent at once, even while other changes are not
// durable.
func TestRepliesDoNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newSlowJournal()
		b := newBubble(t, j, nil)
		defer b.Shutdown(t.Context())
		defer j.sync()
		reader := b.Calls("reader", "SET j v")
		j.sync()
		b.Replies()
		b.Calls("changing", "SET k v")
		tx := b.Engine.NewTx()
		tx.Begin(0, 0, []engine.Key{b.Engine.Key([]byte("j"))}, false)
		require.Less(t, tx.End(), j.appended, "j and k are of different shards")
		reader.Call("GET j\nPING\nECHO x\nCONFIG GET timeout\nINFO server")
		assert.Len(t, b.Replies(), 5)
	})
}

// While the disk fails, durable data can be read; a read of other data gets an error.
func TestReadsWhileTheDiskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, store := newSlowJournal(), new(commandtest.Store)
		b := newBubble(t, j, store)
		defer b.Shutdown(t.Context())
		defer j.sync()
		reader := b.Calls("reader", "SET {old} v")
		j.sync()
		b.Replies()
		b.Calls("lost", "SET k v")
		b.Calls("early", "GET k")
		refusal := "the disk fails"
		store.Why.Store(&refusal)
		j.fail(errors.New(refusal))
		lost := " -MISCONF the changes of this call, or those that it shows, may be lost: the disk fails"
		assert.ElementsMatch(t, []string{"0 lost" + lost, "0 early" + lost}, b.Replies())

		why := "0 reader -MISCONF what this would read is not on the disk: the disk fails"
		reader.Call("GET {old}\nGET k\nECHO x\nKEYS *\nMULTI\nGET k\nEXEC\nGET {old}\nSET k w\nSCAN 0")
		assert.Equal(t, []string{
			"0 reader $1 v", why, "0 reader $1 x", why, "0 reader +OK", "0 reader +QUEUED", why, "0 reader $1 v",
			"0 reader -MISCONF the disk fails", why,
		}, b.Replies())
		reader.Call("INFO persistence")
		assert.Len(t, b.Replies(), 1, "the failure is logged")
		j.sync()
		store.Why.Store(nil)
		reader.Call("GET k")
		assert.Equal(t, []string{"0 reader $1 v"}, b.Replies())
	})
}
