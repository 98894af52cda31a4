package resp

import (
	"math"
	"sync/atomic"
)

// guardLimits are the limits an operator may change while the server runs.
// One value is shared by all connections.
type guardLimits struct {
	maxBulk  atomic.Int64 // bytes in one bulk string: proto-max-bulk-len
	maxQuery atomic.Int64 // bytes in one command as sent: client-query-buffer-limit
	clients  atomic.Int64 // bytes that all clients may hold together; math.MaxInt64: any number
	output   atomic.Pointer[outputLimits]
}

func newGuardLimits() *guardLimits {
	l := new(guardLimits)
	l.maxBulk.Store(defaultMaxBulk)
	l.maxQuery.Store(defaultMaxQuery)
	l.clients.Store(math.MaxInt64)
	l.output.Store(defaultOutputLimits())
	return l
}

const (
	defaultMaxBulk  = 512 << 20 // bytes in one bulk string
	defaultMaxQuery = 1 << 30   // bytes in one command
	leastQuery      = 1 << 20   // the least that this may be set to
)
