package config

import (
	"math"
	"sync/atomic"
)

// ConnectionLimits are the limits of connections that CONFIG SET can change. All connections share
// one value.
type ConnectionLimits struct {
	MaxBulk  atomic.Int64                 // bytes in one bulk string: proto-max-bulk-len
	MaxQuery atomic.Int64                 // bytes in one command as sent: client-query-buffer-limit
	Clients  atomic.Int64                 // bytes that all clients hold; math.MaxInt64: no limit
	Output   atomic.Pointer[outputLimits] // by ClientClass; replaced as a whole
}

// NewConnectionLimits returns the default limits.
func NewConnectionLimits() *ConnectionLimits {
	l := new(ConnectionLimits)
	l.MaxBulk.Store(512 << 20)
	l.MaxQuery.Store(DefaultMaxQuery)
	l.Clients.Store(math.MaxInt64)
	l.Output.Store(defaultOutputLimits())
	return l
}

// Limits on the input of a client.
const (
	DefaultMaxQuery = 1 << 30 // bytes in one command
	MinQuery        = 1 << 20 // minimum of client-query-buffer-limit
)

const largestMaxKey = 512 << 20 // bytes of a limiter's key
