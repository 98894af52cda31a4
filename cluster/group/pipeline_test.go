package group

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
)

// fullPipeline is a pipeline whose answers nobody reads any more.
type fullPipeline struct {
	raft.AppendPipeline
	closed chan struct{}
}

func (p *fullPipeline) AppendEntries(
	*raft.AppendEntriesRequest, *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	<-p.closed
	return nil, raft.ErrPipelineShutdown
}

func (p *fullPipeline) Close() error {
	close(p.closed)
	return nil
}

func TestAPipelineThatIsStuckIsClosed(t *testing.T) {
	p := &boundedPipeline{&fullPipeline{closed: make(chan struct{})}, time.Millisecond}
	_, err := p.AppendEntries(nil, nil)
	assert.ErrorIs(t, err, raft.ErrPipelineShutdown)
}

// A pipeline begins when a replica has nearly all entries.
func TestAPipelineBeginsWhenAReplicaHasCaughtUp(t *testing.T) {
	var s sent
	tr := transport{last: func() uint64 { return 1000 }, sent: &s}
	_, err := tr.AppendEntriesPipeline("a", "a")
	assert.Equal(t, raft.ErrPipelineReplicationNotSupported, err, "nothing was sent yet")
	s.note("a", 1000-mostAppended-1)
	_, err = tr.AppendEntriesPipeline("a", "a")
	assert.Equal(t, raft.ErrPipelineReplicationNotSupported, err)
	assert.True(t, s.behind("a", 1000))
	s.note("a", 1000-mostAppended)
	assert.False(t, s.behind("a", 1000))
	assert.True(t, s.behind("b", 1000))
}
