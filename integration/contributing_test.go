package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
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
