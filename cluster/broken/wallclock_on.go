//go:build broken_wallclock

package broken

const WallClock = true
