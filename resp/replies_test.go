package resp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/resp/pubsub"
)

// The reply of a forwarded call has no length before it arrives, so that the next one begins at the
// same place: what becomes of that one does not concern it.
func TestMarksOfForwardedCallsAreKept(t *testing.T) {
	begin := func() *session {
		s := newBenchSession(func() int64 { return testStart })
		s.Reply.B = append(s.Reply.B, "+before\r\n"...)
		s.marks = append(s.marks, mark{start: 9, end: 9, passed: 1})
		s.beginReply()
		s.Reply.B = append(s.Reply.B, "+reply\r\n"...)
		s.marks = append(s.marks, mark{start: 9, end: 17, changed: true})
		return s
	}

	s := begin()
	s.dropReply()
	assert.Equal(t, []mark{{start: 9, end: 9, passed: 1}}, s.marks)
	assert.Equal(t, "+before\r\n", string(s.Reply.B))

	s = begin()
	s.insertMessages([]byte("+event\r\n"), []pubsub.Span{{Start: 0, End: 8}})
	assert.Equal(t, []mark{
		{start: 9, end: 9, passed: 1}, {start: 9, end: 17, event: true}, {start: 17, end: 25, changed: true},
	}, s.marks)
	assert.Equal(t, "+before\r\n+event\r\n+reply\r\n", string(s.Reply.B))
}
