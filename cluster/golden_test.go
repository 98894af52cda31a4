package cluster

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/slot"
	"rlserver/engine"
)

// unpack writes the files of a directory that an earlier version has made.
func unpack(t *testing.T, name, to string) {
	f, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	require.NoError(t, err)
	for files := tar.NewReader(compressed); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(to, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		content, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}

// The directory of a node alone in its cluster, whose groups have the policies among their keys: in
// the snapshots, and in the logs after them.
func TestPoliciesOfGroupsMoveToTheMap(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(_ int, o *Options) { o.Groups = 2 })
	unpack(t, "policies-in-groups.tar.gz", f.options[0].Dir)
	require.NoError(t, f.start(0))
	f.stable()
	moved := func() error {
		if f.nodes[0].Map().PoliciesVersion == 0 {
			return errors.New("the map has no policies")
		}
		return nil
	}
	f.eventually("the map has the policies", moved)
	for range 2 {
		n := f.nodes[0]
		assert.Equal(t, map[string]string{
			"login": "SLIDE 2 3650d", "burst": "TOKEN 3 1 3650d", "later": "FIXED 9 1d",
		}, n.Map().Policies)
		// ann has used 2 of 2 with login
		for id, admits := range map[string]bool{"ann": false, "bob": true} {
			number := n.GroupOf(slot.Of([]byte(id)))
			p, err := n.Group(number).Await(t.Context())
			require.NoError(t, err)
			tx, names := p.Engine.NewTx(), [][]byte{[]byte("login"), []byte("burst")}
			keys := []engine.Key{p.Engine.Key([]byte("login:{" + id + "}")), p.Engine.Key([]byte("burst:{" + id + "}"))}
			tx.Begin(p.Clock.Now(), 0, keys, true)
			d, err := tx.Check(names, keys, 0, nil)
			require.NoError(t, err)
			assert.Equal(t, admits, d.Allowed, id)
			tx.End()
		}
		f.stop(0)
		require.NoError(t, f.start(0))
		f.stable()
	}
}
