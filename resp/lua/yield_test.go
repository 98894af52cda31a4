package lua

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On one processor, a goroutine that waits for the network runs when a script gives others a turn.
func TestAScriptLetsTheNetworkRunOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	defer to.Close()
	var y yielding
	for range 100 {
		var waits, served atomic.Bool
		go func() {
			waits.Store(true)
			from.Read(make([]byte, 1))
			served.Store(true)
		}()
		for !waits.Load() {
			runtime.Gosched() // it runs until it waits for the byte
		}
		to.Write([]byte{1})
		for range 5 { // the scheduler may take one that yields first, now and then
			y.yield()
		}
		require.True(t, served.Load())
	}
}

// Scripts that yield at the same time all go on.
func TestScriptsYieldTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var y yielding
	done := make(chan struct{})
	for range 20 {
		go func() {
			for range 100 {
				y.yield()
			}
			done <- struct{}{}
		}()
	}
	for range 20 {
		<-done
	}
	assert.NotNil(t, y.from)
}
