package local_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/local"
	"rlserver/resp/resptest"
	"rlserver/resp/wire"
)

func serve(t *testing.T) (*resptest.Server, *local.Listener) {
	s := resptest.Start(t, nil)
	l := local.Listen()
	go s.ServeProxy(l, nil)
	return s, l
}

func words(line string) (list [][]byte) {
	for _, word := range strings.Fields(line) {
		list = append(list, []byte(word))
	}
	return list
}

// do makes calls, and returns the first lines of their replies.
func do(t *testing.T, l *local.Listener, as local.User, lines ...string) (replies []string) {
	t.Helper()
	c, err := l.Connect(t.Context(), as)
	require.NoError(t, err)
	defer c.Close()
	var calls [][][]byte
	for _, line := range lines {
		calls = append(calls, words(line))
	}
	values, err := c.Do(calls...)
	require.NoError(t, err)
	for _, v := range values {
		replies = append(replies, string(v.Kind)+string(v.Text))
	}
	return replies
}

// Calls have the permissions of their user, and count like those of any client.
func TestCallsAreThoseOfAUser(t *testing.T) {
	s, l := serve(t)
	admin := s.Dial()
	admin.Do("ACL SETUSER ann on >secret +get ~a*")
	assert.Equal(t, []string{"+OK", "$1"}, do(t, l, local.User{Address: "192.0.2.1:5"}, "SET a 1", "GET a"))
	ann := local.User{Name: "ann", Password: "secret", Address: "192.0.2.1:5"}
	replies := do(t, l, ann, "GET a", "GET b", "SET a 2")
	assert.Equal(t, "$1", replies[0])
	assert.Contains(t, replies[1], "-NOPERM")
	assert.Contains(t, replies[2], "-NOPERM")
	assert.Contains(t, admin.Do("ACL LOG"), "addr=192.0.2.1:5")
	ann.Password = "wrong"
	_, err := l.Connect(t.Context(), ann)
	assert.EqualError(t, err, "the login is not valid any more")
	assert.Equal(t, "+OK", admin.Do("CONFIG SET requirepass x"))
	assert.Contains(t, do(t, l, local.User{}, "GET a")[0], "-NOAUTH")
}

// A pipeline may be longer than any buffer, in both directions.
func TestLongPipelines(t *testing.T) {
	_, l := serve(t)
	c, err := l.Connect(t.Context(), local.User{})
	require.NoError(t, err)
	defer c.Close()
	var calls [][][]byte
	for i := range 300 {
		calls = append(calls, [][]byte{[]byte("ECHO"), fmt.Append(nil, i, strings.Repeat("x", 30<<10))})
	}
	replies, err := c.Do(calls...)
	require.NoError(t, err)
	for i, reply := range replies {
		assert.True(t, strings.HasPrefix(string(reply.Text), fmt.Sprint(i, "x")))
	}
	_, err = c.Do(append(calls, append(append(calls, calls...), calls...)...)...)
	assert.EqualError(t, err, "the reply is larger than 32 MB")
}

// A call ends with its context, also while it waits, and with the server.
func TestCallsEnd(t *testing.T) {
	s, l := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := l.Connect(ctx, local.User{})
	require.NoError(t, err)
	defer c.Close()
	ended := make(chan error)
	go func() {
		_, err := c.Do(words("BLPOP list 0"))
		ended <- err
	}()
	s.AwaitWaiting(1)
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
	s.AwaitWaiting(0)
	_, err = l.Connect(ctx, local.User{})
	assert.ErrorIs(t, err, context.Canceled)

	last, err := l.Connect(t.Context(), local.User{})
	require.NoError(t, err)
	defer last.Close()
	var reply []wire.Value
	reply, err = last.Do(words("PING"))
	require.NoError(t, err)
	assert.Equal(t, "PONG", string(reply[0].Text))
	s.Shutdown(t.Context())
	_, err = last.Do(words("PING"))
	assert.EqualError(t, err, "the server is stopping")
	_, err = l.Connect(t.Context(), local.User{})
	assert.EqualError(t, err, "the server is stopping")
}
