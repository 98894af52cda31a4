package limit

import (
	"maps"
	"regexp"
	"sync/atomic"
	"time"
	_ "time/tzdata" // on machines without zone files too
)

// zoneName is what the names of the IANA database look like. Beside them its folders hold the same
// zones under other names, with leap seconds, or as this machine happens to be set up.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}$`)

// zones remembers the time zones that were asked for, in a map that is copied for each new one:
// there are no more of them than IANA names, reading one takes long, and finding one must not.
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
	zones.CompareAndSwap(known, &more) // if somebody was faster, the next call remembers it
	return z, true
}
