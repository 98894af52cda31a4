package forward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/wire"
)

// fakes are other nodes whose replies a function returns.
type fakes struct {
	mu     sync.Mutex
	leader string // of all groups; "": none
	lost   atomic.Bool
	epoch  atomic.Int64
	// the nodes know that the previous epochs have ended; silent: they do not learn it
	acknowledged atomic.Bool
	silent       bool
	// answer returns the reply of a node to a call; "": the node closes the connection; "hang": it
	// does not reply
	answer func(node string, words []string) string
	calls  []string // received calls, after the name of the node
	dialed int
}

var errNone = errors.New("none")

func (f *fakes) Leader(context.Context, int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leader == "" {
		return "", errNone
	}
	return f.leader, nil
}

func (f *fakes) setLeader(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = node
}

func (f *fakes) Epoch(string) string { return "e" + strconv.Itoa(int(f.epoch.Load())) }

func (f *fakes) Reachable(string) bool { return !f.lost.Load() }

func (f *fakes) Over(_, epoch string) bool {
	return f.lost.Load() || epoch != f.Epoch("") && f.acknowledged.Load()
}

func (f *fakes) End(_, epoch string) {
	if epoch == f.Epoch("") {
		f.acknowledged.Store(!f.silent)
		f.epoch.Add(1)
	}
}

func (f *fakes) DialNode(node string) (net.Conn, error) {
	if node == "" || node == "gone" {
		return nil, errNone
	}
	f.mu.Lock()
	f.dialed++
	f.mu.Unlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	own, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	theirs, err := l.Accept()
	if err == nil {
		go f.serve(node, theirs)
	}
	return own, err
}

func (f *fakes) serve(node string, conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := readCall(in)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.calls = append(f.calls, node+" "+strings.Join(words, " "))
		f.mu.Unlock()
		if words[0] == Control {
			continue
		}
		switch reply := f.answer(node, words); reply {
		case "":
			return
		case "hang":
		default:
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	}
}

func readCall(in *bufio.Reader) (words []string, err error) {
	var r wire.Reply
	if err := wire.CopyReply(&r, in); err != nil {
		return nil, err
	}
	lines := strings.Split(string(r.B), "\r\n")
	for i := 2; i < len(lines); i += 2 {
		words = append(words, lines[i])
	}
	return words, nil
}

func (f *fakes) sent(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

func (f *fakes) client(most int, hold time.Duration) *Client {
	pool := NewPool(Options{Nodes: f, Hold: hold, MostLinks: most})
	return &Client{Pool: pool, Gone: func() error { return nil }}
}

func words(text string) (list [][]byte) {
	for word := range strings.FieldsSeq(text) {
		list = append(list, []byte(word))
	}
	return list
}

func echo(node string, words []string) string { return fmt.Sprintf("+%s %s\r\n", node, words[1]) }

const long = time.Minute

// TestRepliesComeInOrder sends a batch to two nodes.
func TestRepliesComeInOrder(t *testing.T) {
	f := &fakes{answer: echo}
	c := f.client(2, long)
	defer c.Close()
	for range 3 {
		for n := range 20 {
			c.Add(Call{Node: fmt.Sprint("n", n%3), Group: n}, words(fmt.Sprint("GET ", n)))
		}
		as := Caller{User: "ann", RESP3: true}
		c.Send(as)
		var r wire.Reply
		for n := range 20 {
			require.Equal(t, Answered, c.Collect(n, as, &r))
		}
		c.Done()
		for n, line := range strings.Split(strings.TrimSpace(string(r.B)), "\r\n") {
			assert.Equal(t, fmt.Sprintf("+n%d %d", n%3, n), line)
		}
	}
	assert.Equal(t, 3, f.dialed, "links are reused")
	assert.Equal(t, 3, f.sent("n0 "+Control+" ann 3 0 ")+f.sent("n1 "+Control)+f.sent("n2 "+Control))
}

// TestRefusedCallsAreSentToTheNextLeader uses a node that refuses all calls from the second one on.
func TestRefusedCallsAreSentToTheNextLeader(t *testing.T) {
	f := &fakes{leader: "gone"}
	f.answer = func(node string, words []string) string {
		if node == "old" && words[1] != "0" {
			f.setLeader("new")
			return "-CLUSTERDOWN this node does not lead the slot now\r\n"
		}
		return echo(node, words)
	}
	c := f.client(2, long)
	defer c.Close()
	var r wire.Reply
	for n := range 4 {
		c.Add(Call{Node: "old", Group: 1}, words(fmt.Sprint("GET ", n)))
	}
	assert.Equal(t, "old", c.Node(1))
	assert.Empty(t, c.Node(2))
	c.Send(Caller{})
	for n := range 4 {
		require.Equal(t, Answered, c.Collect(n, Caller{}, &r))
	}
	c.Done()
	assert.Equal(t, "+old 0\r\n+new 1\r\n+new 2\r\n+new 3\r\n", string(r.B))
	// Control confirms the refusals before the next call
	before := f.sent("old " + Control)
	require.Equal(t, Answered, c.Do(Call{Node: "old"}, AppendCall(nil, words("GET 0")), Caller{}, &r, nil))
	assert.Equal(t, before+1, f.sent("old "+Control))
}

func TestCallWithoutALeaderIsHeld(t *testing.T) {
	f := &fakes{answer: echo}
	c := f.client(2, 100*time.Millisecond)
	refusals := 0
	c.Pool.options.Held = func(group int) func(bool) {
		return func(refused bool) {
			if refused {
				refusals++
			}
		}
	}
	var r wire.Reply
	assert.Equal(t, NoLeader, c.Do(Call{Node: "gone"}, AppendCall(nil, words("GET 0")), Caller{}, &r, nil))
	assert.Empty(t, r.B)
	assert.Equal(t, int64(1), c.Pool.Failed.Load())
	assert.Equal(t, 1, refusals)

	c = f.client(2, long)
	time.AfterFunc(20*time.Millisecond, func() { f.setLeader("n1") })
	assert.Equal(t, Answered, c.Do(Call{Node: "gone"}, AppendCall(nil, words("GET 0")), Caller{}, &r, nil))
	assert.Equal(t, "+n1 0\r\n", string(r.B))
}

// TestOutcomeIsUnknownAfterANodeIsLost uses a node that closes the connection, or hangs.
func TestOutcomeIsUnknownAfterANodeIsLost(t *testing.T) {
	for _, end := range []string{"", "hang"} {
		f := &fakes{answer: func(node string, words []string) string {
			if words[1] == "0" {
				return echo(node, words)
			}
			return end
		}}
		c := f.client(2, 200*time.Millisecond)
		for n := range 3 {
			c.Add(Call{Node: "n1", Group: 1}, words(fmt.Sprint("SET ", n)))
		}
		c.Send(Caller{})
		var r wire.Reply
		require.Equal(t, Answered, c.Collect(0, Caller{}, &r))
		f.lost.Store(true)
		assert.Equal(t, Unknown, c.Collect(1, Caller{}, &r))
		assert.Equal(t, Unknown, c.Collect(2, Caller{}, &r))
		c.Done()
		assert.Equal(t, "+n1 0\r\n", string(r.B))
		assert.LessOrEqual(t, f.sent("n1 SET 1"), 1, "the call is not sent again")
		assert.Zero(t, c.Pool.open.Load(), "the link is closed")
	}
}

// A call whose link breaks is answered when its node knows that the call is given up, has ended, or
// was not heard for long. Later calls are of another epoch, on new links.
func TestBrokenLinkEndsItsEpoch(t *testing.T) {
	for _, silent := range []bool{false, true} {
		f := &fakes{silent: silent, answer: func(_ string, words []string) string {
			if words[1] == "2" {
				return ""
			}
			return ":1\r\n"
		}}
		c := f.client(1, long)
		other := Client{Pool: c.Pool, Gone: c.Gone}
		var r wire.Reply
		kept := Call{Node: "n1", Keeps: true}
		require.Equal(t, Answered, other.Do(kept, AppendCall(nil, words("GET 1")), Caller{}, &r, nil))
		done := make(chan Outcome, 1)
		go func() {
			var r wire.Reply
			done <- c.Do(Call{Node: "n1"}, AppendCall(nil, words("GET 2")), Caller{}, &r, nil)
		}()
		if silent {
			for f.epoch.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			assert.Empty(t, done, "the call may begin yet")
			f.lost.Store(true)
		}
		assert.Equal(t, Unknown, <-done)
		f.lost.Store(false)
		assert.EqualValues(t, 1, f.epoch.Load())
		dialed := f.dialed
		require.Equal(t, Answered, other.Do(kept, AppendCall(nil, words("GET 1")), Caller{}, &r, nil))
		assert.Equal(t, dialed+1, f.dialed, "the idle link is of an epoch that has ended")
	}
}

// A broken link ends the epoch of all links to the node. Calls that wait on other ones are
// answered, or refused by the node and sent again.
func TestBrokenLinkLeavesCallsOnOtherLinks(t *testing.T) {
	release := make(chan struct{})
	var refused atomic.Bool
	f := &fakes{leader: "n1", answer: func(_ string, words []string) string {
		switch {
		case words[1] == "broken":
			return ""
		case words[1] == "refused" && refused.CompareAndSwap(false, true):
			<-release
			return "-CLUSTERDOWN this node does not lead the slot now\r\n"
		}
		<-release
		return ":1\r\n"
	}}
	c := f.client(4, 160*time.Millisecond)
	done := make(chan Outcome, 2)
	for _, key := range []string{"answered", "refused"} {
		waiting := Client{Pool: c.Pool, Gone: c.Gone}
		go func() {
			var r wire.Reply
			request := AppendCall(nil, words("BZPOPMIN "+key))
			done <- waiting.Do(Call{Node: "n1", Keeps: true}, request, Caller{}, &r, nil)
		}()
	}
	for f.sent("n1 BZPOPMIN") < 2 {
		time.Sleep(time.Millisecond)
	}
	var r wire.Reply
	assert.Equal(t, Unknown, c.Do(Call{Node: "n1"}, AppendCall(nil, words("GET broken")), Caller{}, &r, nil))
	time.Sleep(3 * 20 * time.Millisecond) // the links are checked meanwhile
	assert.Empty(t, done)
	close(release)
	assert.Equal(t, Answered, <-done)
	assert.Equal(t, Answered, <-done)
	assert.Equal(t, 3, f.sent("n1 BZPOPMIN"))
}

// TestLinksAreLimited sends calls that wait for the only link, and others that are refused because
// they would keep one.
func TestLinksAreLimited(t *testing.T) {
	release := make(chan struct{})
	f := &fakes{answer: func(node string, words []string) string {
		if words[1] == "slow" {
			<-release
		}
		return echo(node, words)
	}}
	c := f.client(1, long)
	other := &Client{Pool: c.Pool, Gone: c.Gone}
	c.Add(Call{Node: "n1"}, words("GET slow"))
	c.Send(Caller{})
	done := make(chan Outcome)
	go func() {
		var r wire.Reply
		done <- other.Do(Call{Node: "n1"}, AppendCall(nil, words("GET 1")), Caller{}, &r, nil)
	}()
	for c.Pool.Busy.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	var r wire.Reply
	require.Equal(t, Answered, c.Collect(0, Caller{}, &r))
	c.Done()
	assert.Equal(t, Answered, <-done)

	require.Equal(t, Answered, c.Watch(Call{Node: "n1"}, AppendCall(nil, words("WATCH k")), Caller{}, &r))
	assert.Equal(t, TooMany, other.Watch(Call{Node: "n1"}, AppendCall(nil, words("WATCH k")), Caller{}, &r))
	assert.Equal(
		t,
		TooMany,
		other.Do(Call{Node: "n1", Keeps: true}, AppendCall(nil, words("BZPOPMIN k")), Caller{}, &r, nil),
	)
	c.Unwatch()
	assert.Equal(t, Answered, other.Watch(Call{Node: "n1"}, AppendCall(nil, words("WATCH k")), Caller{}, &r))
	other.Close()
}

// TestDisconnectedClientEndsTheWait disconnects the client of a call that hangs.
func TestDisconnectedClientEndsTheWait(t *testing.T) {
	f := &fakes{answer: func(string, []string) string { return "hang" }}
	c := f.client(1, 200*time.Millisecond)
	c.Gone = func() error { return ErrLeft }
	var r wire.Reply
	assert.Equal(t, Left, c.Do(Call{Node: "n1"}, AppendCall(nil, words("GET 1")), Caller{}, &r, nil))
	disconnects := func(arrives func()) error {
		go arrives()
		return ErrLeft
	}
	assert.Equal(t, Left, c.Do(Call{Node: "n1"}, AppendCall(nil, words("BZPOPMIN k")), Caller{}, &r, disconnects))
	assert.Zero(t, c.Pool.open.Load())
}

func TestClosedIdleLinkIsNotUsed(t *testing.T) {
	f := &fakes{answer: func(node string, words []string) string {
		if words[1] == "last" {
			return ""
		}
		return echo(node, words)
	}}
	c := f.client(1, long)
	var r wire.Reply
	require.Equal(t, Answered, c.Do(Call{Node: "n1"}, AppendCall(nil, words("GET 1")), Caller{}, &r, nil))
	at := c.Pool.peer("n1")
	require.Len(t, at.idle, 1)
	at.idle[0].conn.Write(AppendCall(nil, words("GET last")))
	for at.idle[0].alive() {
		time.Sleep(time.Millisecond)
	}
	assert.Equal(t, Answered, c.Do(Call{Node: "n1"}, AppendCall(nil, words("GET 2")), Caller{}, &r, nil))
	assert.Equal(t, 2, f.dialed)
}

// CLIENT UNBLOCK may be sent when the call has ended, and another client waits on the same link: it
// does not end that call.
func TestUnblockDoesNotReachTheNextCallOnTheLink(t *testing.T) {
	f := &fakes{}
	waiting := "" // name of the link of the last waiting call
	f.answer = func(node string, words []string) string {
		if words[0] != Unblock {
			return "+done\r\n"
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if words[1] == waiting {
			return ":1\r\n"
		}
		return ":0\r\n"
	}
	first := f.client(10, long)
	second := &Client{Pool: first.Pool, Gone: first.Gone}
	var late *waitingCall
	call := func(c *Client, during func()) {
		var r wire.Reply
		wait := func(arrives func()) error {
			f.mu.Lock()
			waiting = c.waits.Load().link
			f.mu.Unlock()
			during()
			arrives()
			return nil
		}
		request := AppendCall(nil, words("BZPOPMIN q 0"))
		assert.Equal(t, Answered, c.Do(Call{Node: "a", Keeps: true}, request, Caller{User: "u"}, &r, wait))
	}
	call(first, func() {
		assert.True(t, first.Unblock("ERROR", Caller{User: "u"}))
		late = first.waits.Load()
	})
	before := f.dialed
	call(second, func() {
		first.waits.Store(late)
		assert.False(t, first.Unblock("ERROR", Caller{User: "u"}))
		assert.True(t, second.Unblock("ERROR", Caller{User: "u"}))
	})
	assert.Equal(t, before, f.dialed, "both used the same link")
}

func TestAnErrorOfAScriptIsNoRefusal(t *testing.T) {
	for _, reply := range []string{"-CLUSTERDOWN says the script\r\n", "-MOVED 1 there:1\r\n"} {
		f := &fakes{leader: "n"}
		f.answer = func(string, []string) string { return reply }
		c := f.client(2, 300*time.Millisecond)
		var r wire.Reply
		assert.Equal(t, Answered, c.Do(Call{Node: "n"}, AppendCall(nil, words("EVAL x 1 k")), Caller{}, &r, nil))
		assert.Equal(t, 1, f.sent("n EVAL"))
		c.Close()
	}
}
