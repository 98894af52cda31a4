package effect

import (
	"strconv"
	"strings"
)

// ParseHitName returns the number in the name of a hit at a time; ok is false for other names.
func ParseHitName(name string, at int64) (seq uint64, ok bool) {
	prefix, number, found := strings.Cut(name, "-")
	if !found || prefix != strconv.FormatInt(at, 10) {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 63)
	return seq, err == nil && strconv.FormatUint(seq, 10) == number
}
