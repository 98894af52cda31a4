package effect

import (
	"iter"
	"strconv"
	"strings"
)

// HitNames yields the names of the hits of a call with an id. Each is a new slice, which an effect
// may keep.
func HitNames(id []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for n := int64(1); yield(AppendHitName(nil, id, n)); n++ {
		}
	}
}

// AppendHitName appends the name of the n-th hit, from 1 on, of a call that has an id: id, id:2,
// id:3, … The first is id:1 if the id itself could be the name of another hit. So hits of two calls
// never have the same name, unless the calls have the same id.
func AppendHitName(dst, id []byte, n int64) []byte {
	dst = append(dst, id...)
	if n == 1 && !IsHitName(id) {
		return dst
	}
	return strconv.AppendInt(append(dst, ':'), n, 10)
}

// IsHitName reports whether an id has the form of a hit's name: …:<n>, or <ms>-<seq>.
func IsHitName(id []byte) bool {
	i := len(id)
	for i > 0 && isDigit(id[i-1]) {
		i--
	}
	if i == 0 || i == len(id) {
		return false
	}
	return id[i-1] == ':' || id[i-1] == '-' && AreDigits(id[:i-1])
}

// ParseHitName returns the number in the name of a hit at a time; ok is false for other names.
func ParseHitName(name string, at int64) (seq uint64, ok bool) {
	prefix, number, found := strings.Cut(name, "-")
	if !found || prefix != strconv.FormatInt(at, 10) {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 63)
	return seq, err == nil && strconv.FormatUint(seq, 10) == number
}

// AreDigits reports whether b consists of one or more digits.
func AreDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
