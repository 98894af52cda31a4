package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const contributing = "../CONTRIBUTING.md"

// TestContributingNamesWhatExists checks that every file, function and make target that
// CONTRIBUTING.md names exists. A function, such as `Tx.Begin()`, is declared in the last Go file
// that is named before it.
func TestContributingNamesWhatExists(t *testing.T) {
	t.Parallel()
	makefile := documentText(t, "../Makefile")
	file, functions := "", 0
	for _, match := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(documentText(t, contributing), -1) {
		name := match[1]
		switch target, isMake := strings.CutPrefix(name, "make "); {
		case isMake:
			assert.Regexp(t, `(?m)^`+regexp.QuoteMeta(target)+`:`, makefile)
		case strings.HasSuffix(name, "()"):
			functions++
			assert.Contains(t, functionsIn(t, file), strings.TrimSuffix(name, "()"), file)
		case isPath(name):
			found, err := filepath.Glob(filepath.Join("..", name))
			require.NoError(t, err)
			assert.NotEmpty(t, found, "no file is named %s", name)
			if strings.HasSuffix(name, ".go") {
				file = filepath.Join("..", name)
			}
		}
	}
	assert.Greater(t, functions, 20)
}

// TestContributingListsThePackages checks that the list of packages is complete, has none twice,
// and that imports lead down in it.
func TestContributingListsThePackages(t *testing.T) {
	t.Parallel()
	_, list, found := strings.Cut(documentText(t, contributing), "## The packages\n")
	require.True(t, found)
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^ {4,}([a-z][a-z/]*) {2,}\S`).FindAllStringSubmatch(list, -1) {
		listed = append(listed, "rlserver/"+match[1])
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "rlserver/...").Output()
	require.NoError(t, err)
	var packages []string
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		packages = append(packages, imports[0])
		for _, name := range imports[1:] {
			if strings.HasPrefix(name, "rlserver/") {
				assert.Less(t, slices.Index(listed, imports[0]), slices.Index(listed, name),
					"%s imports %s, which stands above it", imports[0], name)
			}
		}
	}
	assert.ElementsMatch(t, packages, listed)
}

// isPath reports whether a name in the text is a file or a directory, and not a command.
func isPath(name string) bool {
	return !strings.Contains(name, " ") && strings.Contains(name, "/") && !strings.HasPrefix(name, "testing/")
}

// functionsIn returns the functions and methods that a Go file declares: decide, Tx.Begin.
func functionsIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if !assert.NoError(t, err) {
		return nil
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := function.Name.Name
		if function.Recv != nil {
			name = receiver(function.Recv.List[0].Type) + "." + name
		}
		names = append(names, name)
	}
	return names
}

// receiver returns the name of a receiver's type.
func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
