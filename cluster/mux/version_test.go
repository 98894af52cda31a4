package mux

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNodesOfOtherVersionsAreNamed has nodes two versions later and earlier dial this one, and be
// dialled by it.
func TestNodesOfOtherVersionsAreNamed(t *testing.T) {
	p := newPort(t, ClusterID{1})
	go echo(p.Layer(Control), "control")
	for _, theirs := range []byte{version + 2, version - 2} {
		for _, more := range []int{0, 1, headerSize + nonceSize, 1000} { // what follows the version
			c, err := net.Dial("tcp", p.Addr().String())
			require.NoError(t, err)
			_, err = c.Write(append(append([]byte(magic), theirs), make([]byte, more)...))
			require.NoError(t, err)
			require.NoError(t, c.(*net.TCPConn).CloseWrite())
			answer, err := io.ReadAll(c)
			require.NoError(t, err)
			assert.Equal(t, []byte{version}, answer)
			c.Close()
		}

		other, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go echo(other, string(rune(theirs)))
		_, err = p.Dial(other.Addr().String(), Control, patience)
		other.Close()
		require.ErrorIs(t, err, ErrOtherVersion)
		assert.ErrorContains(t, err, fmt.Sprintf("that node %d, this one %d", theirs, version))
	}
	c, err := newPort(t, ClusterID{1}).Dial(p.Addr().String(), Control, patience)
	require.NoError(t, err, "others are still served")
	c.Close()
}
