package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAShortSecretOfTheNodesIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for length, ok := range map[int]bool{0: false, 5: false, 16: false, 31: false, 32: true, 64: true} {
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", length)+"\n"), 0o600))
		secret, err := readNodeSecret(path)
		if ok {
			assert.NoError(t, err)
			assert.Len(t, secret, length)
		} else {
			assert.EqualError(t, err, "--cluster-secret-file "+path+": its first line must have at least 32 "+
				"characters. This makes one, for all nodes: openssl rand -hex 32 > "+path)
		}
	}
	secret, err := readNodeSecret("")
	assert.NoError(t, err)
	assert.Empty(t, secret)
	_, err = readNodeSecret(filepath.Join(path, "none"))
	assert.ErrorContains(t, err, "--cluster-secret-file cannot be read")
}
