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
