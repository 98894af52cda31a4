package limit

import (
	"maps"
	"regexp"
	"sync/atomic"
	"time"
	_ "time/tzdata" // on machines without zone files too
)

// zoneName is the form of the names of the IANA database. Its directories also contain the same
// zones under other names, with leap seconds, or as configured on this machine.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}$`)

// zones caches the time zones that were parsed, in a map that is copied for each new one. There are
// at most as many as IANA names. Loading a zone is slow, and finding it must be fast.
var zones atomic.Pointer[map[string]*time.Location]

// ParseZone finds a time zone by its IANA name, UTC or Europe/Berlin.
func ParseZone(name []byte) (*time.Location, bool) {
	known := zones.Load()
	if known != nil {
		if z := (*known)[string(name)]; z != nil {
			return z, true
		}
	}
	if !zoneName.Match(name) || string(name) == "Local" {
		return nil, false
	}
	z, err := time.LoadLocation(string(name))
	if err != nil {
		return nil, false
	}
	more := map[string]*time.Location{string(name): z}
	if known != nil {
		maps.Copy(more, *known)
	}
	zones.CompareAndSwap(known, &more) // if another goroutine was faster, the next call adds it
	return z, true
}
