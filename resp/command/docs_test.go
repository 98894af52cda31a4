package command

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocumentationRequiresExamples registers a command without an example, the only one in the
// table during the test.
func TestDocumentationRequiresExamples(t *testing.T) {
	c := &Command{
		Name: "ping", Arity: 1, Since: "1.0.0", Complexity: "O(1)", Summary: "Replies",
		Run: func(*Call) error { return nil },
	}
	others := maps.Clone(Table)
	clear(Table)
	t.Cleanup(func() {
		clear(Table)
		maps.Copy(Table, others)
	})
	Register("connection", c)

	err := checkExamples(nil)
	assert.EqualError(t, err, "PING has no example: add it to resp/command/docs_examples.md")
	require.NoError(t, checkExamples(map[string]string{"PING": "> PING\nPONG"}))
	err = checkExamples(map[string]string{"PING": "> PING\nPONG", "PONG": "> PONG\n"})
	assert.EqualError(t, err, "resp/command/docs_examples.md has an example for PONG, which is not a command")

	text, err := Documentation()
	assert.ErrorContains(t, err, "an example for APPEND, which is not a command")
	assert.Empty(t, text)
}
