package cluster

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node that cannot store the map of a new cluster does not have the others store it: they would
// wait for it for good.
func TestTheFounderStoresTheMapFirst(t *testing.T) {
	n := &Node{self: Member{Name: "a"}, options: Options{Dir: filepath.Join(t.TempDir(), "missing"), Expect: 1}}
	require.ErrorIs(t, n.tryToFound(nil), fs.ErrNotExist)
	require.Nil(t, n.known())
}
