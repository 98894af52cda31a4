package command_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/command"
)

// TestDocumentationRequiresExamples replaces a command by one without an example during the test.
func TestDocumentationRequiresExamples(t *testing.T) {
	others := maps.Clone(command.Table)
	t.Cleanup(func() {
		clear(command.Table)
		maps.Copy(command.Table, others)
	})
	delete(command.Table, "append")
	command.Register("connection", &command.Command{
		Name: "pang", Arity: 1, Since: "1.0.0", Complexity: "O(1)", Summary: "Replies",
		Run: func(*command.Call) error { return nil },
	})

	text, err := command.Documentation()
	assert.EqualError(t, err, "PANG has no example: add it to resp/command/docs_examples.md\n"+
		"resp/command/docs_examples.md has an example for APPEND, which is not a command")
	assert.Empty(t, text)
}
