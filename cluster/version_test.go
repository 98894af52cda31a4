package cluster

import (
	"bytes"
	"encoding/gob"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheOthersServeBesideANodeOfAnotherVersion puts something in the place of a node that speaks
// other versions of the protocol.
func TestTheOthersServeBesideANodeOfAnotherVersion(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	l := f.load()
	l.goesOn()
	f.stop(2)
	l.update()
	var other net.Listener
	f.eventually("the address is free", func() (err error) {
		other, err = net.Listen("tcp", f.addresses[2])
		return err
	})
	defer other.Close()
	versions := make(chan byte)
	go func() {
		defer close(versions)
		theirs := byte(7)
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			c.Write([]byte{theirs})
			c.Close()
			theirs = 8 - theirs // 1 and 7 in turn
		}
	}()
	testLogged(f, "that node 7, this one 6. The older one has to be upgraded")
	testLogged(f, "that node 1, this one 6. The older one has to be upgraded")
	l.goesOn()
	for _, theirs := range []byte{1, 7} {
		c, err := net.Dial("tcp", f.addresses[0])
		require.NoError(t, err)
		_, err = c.Write(append([]byte("RLSRVCLU"), theirs))
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, []byte{6}, answer)
		c.Close()
	}
	other.Close()
	<-versions
	require.NoError(t, f.start(2))
	l.update()
	f.stable()
	l.conserved()
}

// TestAMapOfALaterVersionIsNotUsed also shows that a report of a later version can be read.
func TestAMapOfALaterVersionIsNotUsed(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1)
	n := f.nodes[0]
	later := n.Map().next()
	later.Format, later.Version = mapFormat+2, later.Version+100 // whatever n does meanwhile
	const says = "the map of the cluster has format 2, and this server knows 0: it has to be upgraded"
	_, err := decodeMap(later.encode())
	assert.ErrorContains(t, err, says)
	var own Report
	c := &control{n}
	require.NoError(t, c.Exchange(Report{Node: "b", Map: later}, &own))
	testLogged(f, says)
	assert.Equal(t, mapFormat, n.Map().Format)

	var wire bytes.Buffer
	require.NoError(t, gob.NewEncoder(&wire).Encode(struct {
		Node  string
		Leads map[int]uint64
		New   []string // of the later version
	}{"b", map[int]uint64{3: 7}, []string{"x"}}))
	var got Report
	require.NoError(t, gob.NewDecoder(&wire).Decode(&got))
	assert.Equal(t, Report{Node: "b", Leads: map[int]uint64{3: 7}}, got)

	f.stop(0)
	for _, format := range []int{stateFormat + 2, stateFormat - 2} {
		state := saved{Format: format, Node: "a"}
		require.NoError(t, state.save(f.options[0].Dir))
		err := f.start(0)
		assert.ErrorContains(t, err, "and this version knows 2")
		f.options[0].Listener = nil
	}
}
