package command

import (
	"runtime/metrics"
	"time"

	"rlserver/resp/tracking"
)

// Figures are counts and measurements of the server. INFO, MEMORY and the metrics show them.
// Counters are since the start or CONFIG RESETSTAT; memory is in bytes.
type Figures struct {
	Uptime            time.Duration
	LoadingSince      int64 // Unix ms; 0: the data is loaded
	Loading, Stopping bool
	Calls, Errors     int64

	Clients      int64
	WaitingCalls int64 // in queues
	TimedCalls   int64 // of these, with a timeout
	PausedCalls  int64 // that CLIENT PAUSE holds back
	Monitors     int   // clients that have sent MONITOR
	Tracking     tracking.Sizes
	Unnotified   int64 // changes of nobody's calls that no message has told of

	Received, Rejected        int64 // connections
	BytesIn, BytesOut         int64
	CallRate, InRate, OutRate float64 // calls and bytes per second, over the last seconds
	FailedLogins              int64
	RefusedLogins             int64 // that were not checked, as too many have failed
	LoginSources              int64 // addresses whose failed or successful logins are remembered
	LoginTimeouts             int64
	HandshakeFailures         int64 // of TLS
	CertificateExpiry         int64 // Unix seconds; 0: there is no TLS
	EvictedClients            int64
	OutputLimit               int64 // clients closed because of client-output-buffer-limit

	LargestInput, LargestOutput int64 // recent largest buffers of a client
	Memory                      int64 // of keys, clients and overhead
	PeakMemory, StartMemory     int64
	ClientMemory                int64
	UnauthenticatedMemory       int64 // of clients that have not logged in
	Overhead                    int64
	OutOfMemory                 int64 // calls refused with OOM
}

// HTTPFigures are the numbers of connections of the HTTP port.
type HTTPFigures struct {
	Open    int64
	Busy    int64 // of these, with a request that is answered
	Refused int64 // connections, or requests, above the limits
	Cut     int64 // closed without a complete request, for new ones
}

// RuntimeBytes returns a metric of the Go runtime.
func RuntimeBytes(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
