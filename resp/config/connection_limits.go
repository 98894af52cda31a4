package config

import (
	"math"
	"sync/atomic"
)

// guardLimits are the limits an operator may change while the server runs.
// One value is shared by all connections.
type ConnectionLimits struct {
	MaxBulk  atomic.Int64 // bytes in one bulk string: proto-max-bulk-len
	MaxQuery atomic.Int64 // bytes in one command as sent: client-query-buffer-limit
	Clients  atomic.Int64 // bytes that all clients may hold together; math.MaxInt64: any number
	Output   atomic.Pointer[outputLimits]
}

func NewConnectionLimits() *ConnectionLimits {
	l := new(ConnectionLimits)
	l.MaxBulk.Store(defaultMaxBulk)
	l.MaxQuery.Store(DefaultMaxQuery)
	l.Clients.Store(math.MaxInt64)
	l.Output.Store(defaultOutputLimits())
	return l
}

const (
	defaultMaxBulk  = 512 << 20 // bytes in one bulk string
	DefaultMaxQuery = 1 << 30   // bytes in one command
	MinQuery        = 1 << 20   // the least that this may be set to
)

const (
	defaultMaxKey = 64 << 10 // bytes of a limiter's key
	largestMaxKey = 512 << 20
)
