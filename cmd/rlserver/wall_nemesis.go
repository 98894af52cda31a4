//go:build nemesis

package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"rlserver/internal/clock"
)

// machineClock returns the clocks of the machine; the system clock is off by what the file
// $NEMESIS_CLOCK says, in ms. The file is read each time, so that a test can step the clock.
func machineClock() clock.Source {
	source, path := clock.System(), os.Getenv("NEMESIS_CLOCK")
	return clock.Source{
		Elapsed: source.Elapsed,
		Read: func() (int64, time.Duration) {
			wall, elapsed := source.Read()
			text, _ := os.ReadFile(path)
			off, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			return wall + off*1000, elapsed
		},
	}
}
