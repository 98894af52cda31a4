//go:build !broken_wallclock

package broken

const WallClock = false
