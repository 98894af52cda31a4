package mux

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = 10 * time.Second

// newPort returns a port on a free port of the loopback interface; names are addresses.
func newPort(t *testing.T, id ClusterID) *Port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := New(Options{Listener: l, Resolve: func(node string) (string, error) { return node, nil }})
	p.SetCluster(id)
	t.Cleanup(func() { p.Close() })
	return p
}

func echo(l net.Listener, name string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(c, name)
		c.Close()
	}
}

func TestConnectionsGoToTheirChannel(t *testing.T) {
	a, b := newPort(t, ClusterID{1}), newPort(t, ClusterID{1})
	go echo(b.Layer(0), "zero")
	go echo(b.Layer(1), "one")
	for channel, want := range []string{"zero", "one"} {
		c, err := a.Dial(b.Addr().String(), Channel(channel), patience)
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
		c.Close()
	}
}

// As with --bind "* -::*", whose second address is the only one of a network without IPv4.
func TestAPortHasSeveralAddresses(t *testing.T) {
	var listeners []net.Listener
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, l)
	}
	b := New(Options{Listener: listeners[0], More: listeners[1:]})
	b.SetCluster(ClusterID{1})
	t.Cleanup(func() { b.Close() })
	go echo(b.Layer(0), "zero")
	a := newPort(t, ClusterID{1})
	for _, l := range listeners {
		c, err := a.Dial(l.Addr().String(), 0, patience)
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, "zero", string(got))
		c.Close()
	}
	require.NoError(t, b.Close())
	for _, l := range listeners {
		_, err := l.Accept()
		assert.ErrorIs(t, err, net.ErrClosed)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	a, b, other, fresh := newPort(
		t,
		ClusterID{1},
	), newPort(
		t,
		ClusterID{1},
	), newPort(
		t,
		ClusterID{2},
	), newPort(
		t,
		ClusterID{},
	)
	go echo(b.Layer(Control), "control")
	go echo(b.Layer(0), "zero")
	for _, c := range []struct {
		what    string
		from    *Port
		channel Channel
		want    error
	}{
		{"a group that is not there", a, 7, ErrNoChannel},
		{"a group from another cluster", other, 0, ErrOtherCluster},
		{"control from another cluster", other, Control, ErrOtherCluster},
		{"a group from a node of no cluster", fresh, 0, ErrOtherCluster},
		{"control from a node of no cluster", fresh, Control, nil},
		{"a group of the own cluster", a, 0, nil},
	} {
		conn, err := c.from.Dial(b.Addr().String(), c.channel, patience)
		if assert.ErrorIs(t, err, c.want, c.what) && err == nil {
			conn.Close()
		}
	}
}

func TestAClosedChannelCanBeOpenedAgain(t *testing.T) {
	a, b := newPort(t, ClusterID{1}), newPort(t, ClusterID{1})
	l := b.Layer(3)
	l.Close()
	_, err := a.Dial(b.Addr().String(), 3, patience)
	require.ErrorIs(t, err, ErrNoChannel)
	go echo(b.Layer(3), "again")
	c, err := a.Dial(b.Addr().String(), 3, patience)
	require.NoError(t, err)
	c.Close()
}

func TestStrangersAreClosedAndDoNotCount(t *testing.T) {
	b := newPort(t, ClusterID{1})
	c, err := net.Dial("tcp", b.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a-host-name-that-is-long-enough\r\n\r\n")
	c.SetDeadline(time.Now().Add(patience))
	got, _ := io.ReadAll(c)
	assert.Empty(t, got)
	assert.Empty(t, b.open)
}

func TestIdleHandshakesDoNotLockNodesOut(t *testing.T) {
	a, b := newPort(t, ClusterID{1}), newPort(t, ClusterID{1})
	go echo(b.Layer(Control), "control")
	var idle []net.Conn
	for range maxHandshakes + 10 {
		c, err := net.Dial("tcp", b.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		idle = append(idle, c)
	}
	c, err := a.Dial(b.Addr().String(), Control, patience)
	require.NoError(t, err)
	c.Close()
	idle[0].SetDeadline(time.Now().Add(patience))
	_, err = idle[0].Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the oldest is closed")
}

func TestNodesProveThatTheyKnowTheSecret(t *testing.T) {
	port := func(secret string) *Port {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p := New(
			Options{
				Listener: l,
				Secret:   []byte(secret),
				Resolve:  func(node string) (string, error) { return node, nil },
			},
		)
		t.Cleanup(func() { p.Close() })
		go echo(p.Layer(Control), "control")
		return p
	}
	one, same, other, none := port("open sesame"), port("open sesame"), port("close sesame"), port("")
	for _, pair := range [][2]*Port{{one, same}, {none, port("")}} {
		c, err := pair[0].Dial(pair[1].Addr().String(), Control, patience)
		require.NoError(t, err)
		c.Close()
	}
	for _, pair := range [][2]*Port{{one, other}, {other, one}, {one, none}, {none, one}} {
		_, err := pair[0].Dial(pair[1].Addr().String(), Control, patience)
		assert.ErrorIs(t, err, ErrOtherSecret)
	}
}

// TestAStrangerGetsNoProof dials, and is dialled, without the secret.
func TestAStrangerGetsNoProof(t *testing.T) {
	var log bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := New(Options{
		Listener: l, Secret: []byte("open sesame"), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Resolve: func(node string) (string, error) { return node, nil },
	})
	p.Layer(Control)
	header := append([]byte(magic), version, 0xff, 0xff)
	header = append(header, make([]byte, headerSize-len(header))...)
	// of what the node has sent: its nonce, and the proof of a node that it has dialled itself
	var dialled [proofSize]byte
	for range 2 {
		c, err := net.Dial("tcp", p.Addr().String())
		require.NoError(t, err)
		c.Write(append(header, make([]byte, nonceSize)...))
		reply := make([]byte, 1+nonceSize)
		_, err = io.ReadFull(c, reply)
		require.NoError(t, err)
		c.Write(dialled[:])
		rest, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, []byte{refusedSecret}, rest, "and nothing else")
		c.Close()

		other, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			c, _ := other.Accept()
			defer c.Close()
			sent := make([]byte, headerSize+nonceSize)
			io.ReadFull(c, sent)
			c.Write(reply) // the nonce of the node itself
			io.ReadFull(c, dialled[:])
			c.Write(append([]byte{accepted}, dialled[:]...)) // and its own proof
		}()
		_, err = p.Dial(other.Addr().String(), Control, patience)
		require.ErrorIs(t, err, ErrOtherSecret, "it is not taken for a node")
		other.Close()
	}
	p.Close()
	text := log.String()
	assert.Equal(t, 1, strings.Count(text, "was refused for its secret"), text)
	assert.Equal(t, 1, strings.Count(text, "a node cannot be reached: secrets or certificates do not match"), text)
}

// A node that has proved itself cannot be made to believe in another answer.
func TestTheAnswerIsProvedAsWell(t *testing.T) {
	a, b := newPort(t, ClusterID{1}), newPort(t, ClusterID{2})
	a.options.Secret, b.options.Secret = []byte("open sesame"), []byte("open sesame")
	between, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer between.Close()
	go func() {
		c, _ := between.Accept()
		to, _ := net.Dial("tcp", b.Addr().String())
		go io.Copy(to, c)
		io.CopyN(c, to, 1+nonceSize)
		answer := make([]byte, 1+proofSize)
		io.ReadFull(to, answer)
		answer[0] = accepted
		c.Write(answer)
		to.Close()
	}()
	_, err = a.Dial(between.Addr().String(), Control, patience)
	assert.ErrorIs(t, err, ErrOtherSecret)
	_, err = a.Dial(b.Addr().String(), Control, patience)
	assert.ErrorIs(t, err, ErrOtherCluster)
}
