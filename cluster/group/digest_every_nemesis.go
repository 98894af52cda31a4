//go:build nemesis

package group

import "time"

// defaultDigestEvery is short, so that make nemesis sees replicas that differ.
const defaultDigestEvery = 3 * time.Second
