package integration

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxPackage is how many lines a package may have, without its tests.
const maxPackage = 5000

// TestPackageSizes fails for packages that are too large to be read in one go.
func TestPackageSizes(t *testing.T) {
	t.Parallel()
	lines := make(map[string]int) // by folder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "..":
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		lines[filepath.Dir(path)] += bytes.Count(source, []byte{'\n'})
		return err
	})
	require.NoError(t, err)
	for folder, n := range lines {
		assert.LessOrEqual(t, n, maxPackage, "lines of %s", folder)
	}
	assert.Greater(t, len(lines), 40)
}
