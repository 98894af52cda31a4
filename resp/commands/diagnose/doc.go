// Package diagnose has SLOWLOG and LATENCY, which report what packages stats and diagnostics keep.
package diagnose
