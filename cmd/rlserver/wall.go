//go:build !nemesis

package main

import "rlserver/internal/clock"

// machineClock returns the clocks of the machine.
func machineClock() clock.Source { return clock.System() }
