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

// tooLarge has the packages that are to be divided, and how many lines each may have until then.
var tooLarge = map[string]int{"../engine": 5600} // the limiters are to leave the keyspace

// TestPackageSizes fails for packages that are too large to be read in one go.
func TestPackageSizes(t *testing.T) {
	t.Parallel()
	lines := make(map[string]int) // by folder
	eachGoFile(t, func(path string, source []byte) {
		if !strings.HasSuffix(path, "_test.go") {
			lines[filepath.Dir(path)] += bytes.Count(source, []byte{'\n'})
		}
	})
	for folder, n := range lines {
		assert.LessOrEqual(t, n, max(maxPackage, tooLarge[folder]), "lines of %s", folder)
	}
	assert.Greater(t, len(lines), 40)
}

// eachGoFile visits the Go files of all packages and modules.
func eachGoFile(t *testing.T, visit func(path string, source []byte)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "..":
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		source, err := os.ReadFile(path)
		visit(path, source)
		return err
	})
	require.NoError(t, err)
}
