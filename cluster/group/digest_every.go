//go:build !nemesis

package group

import "time"

// defaultDigestEvery is the time between two comparisons of the replicas' state.
const defaultDigestEvery = time.Minute
