package importer

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Report counts what became of keys.
type Report struct {
	Copied  map[string]int64 // keys by type
	Bytes   int64            // of the payloads of copied keys
	Existed int64            // keys that the target had
	Gone    int64            // keys that expired or were deleted before they were read
	LeftOut []LeftOut
}

// LeftOut counts the keys of a type that were left out for a reason.
type LeftOut struct {
	Type, Reason string
	Keys         int64
	Example      []byte // one of the keys
}

const (
	maxReasons = 100 // kinds of LeftOut; the others are counted together
	maxText    = 300 // bytes of a reason, a type or an example
)

// leaveOut counts a key that is left out.
func (r *Report) leaveOut(v *value, reason string) {
	kind, reason := cut(v.kind), cut(reason)
	at := slices.IndexFunc(r.LeftOut, func(l LeftOut) bool { return l.Type == kind && l.Reason == reason })
	switch {
	case at >= 0:
	case len(r.LeftOut) < maxReasons:
		at = len(r.LeftOut)
		r.LeftOut = append(r.LeftOut, LeftOut{kind, reason, 0, []byte(cut(v.key))})
	default:
		at = maxReasons - 1
		r.LeftOut[at].Type, r.LeftOut[at].Reason = "any", "other reasons"
	}
	r.LeftOut[at].Keys++
}

func cut(text string) string { return text[:min(len(text), maxText)] }

// leftOut returns how many keys were left out.
func (r *Report) leftOut() (keys int64) {
	for _, l := range r.LeftOut {
		keys += l.Keys
	}
	return keys
}

// copied returns how many keys were copied.
func (r *Report) copied() (keys int64) {
	for _, n := range r.Copied {
		keys += n
	}
	return keys
}

// write prints the report.
func (r *Report) write(out io.Writer, again int64) error {
	var b strings.Builder
	fmt.Fprintf(&b, "copied %s, %.1f MB", count(r.copied()), float64(r.Bytes)/1e6)
	separator := ": "
	for _, kind := range slices.Sorted(maps.Keys(r.Copied)) {
		fmt.Fprintf(&b, "%s%d %s", separator, r.Copied[kind], kind)
		separator = ", "
	}
	b.WriteByte('\n')
	if r.Existed > 0 {
		fmt.Fprintf(&b, "skipped %s that the target has: --replace overwrites them\n", count(r.Existed))
	}
	if r.Gone > 0 {
		fmt.Fprintf(&b, "%s expired or were deleted before they were read\n", count(r.Gone))
	}
	if again > 0 {
		fmt.Fprintf(&b, "refused %s for lack of memory: raise maxmemory of the target\n", count(again))
	}
	if keys := r.leftOut(); keys > 0 {
		fmt.Fprintf(&b, "left out %s:\n", count(keys))
		slices.SortStableFunc(r.LeftOut, func(a, b LeftOut) int { return cmp.Compare(b.Keys, a.Keys) })
		for _, l := range r.LeftOut {
			fmt.Fprintf(&b, "  %d of type %s, as %s: %s\n", l.Keys, l.Type, strconv.Quote(string(l.Example)), l.Reason)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func count(keys int64) string {
	if keys == 1 {
		return "1 key"
	}
	return fmt.Sprint(keys, " keys")
}
