package rule

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"
)

// AppendRules appends rules as ParseRules reads them: SLIDE 5 1m,SLIDE 100 1d.
func AppendRules(b []byte, rules []Rule) []byte {
	for i := range rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = rules[i].append(b)
	}
	return b
}

// parsed is rules and their text.
type parsed struct {
	text  string
	rules []Rule
}

// recent has what was parsed lately, by the hashes of the texts: keys often have the same rules.
var recent [256]atomic.Pointer[parsed]

// maxRecent is the longest text of recent, in bytes: RESTORE brings texts of any length.
const maxRecent = 1 << 10

var seed = maphash.MakeSeed()

// ParseRules parses one or more rules. The result is not to be changed: others have it too.
func ParseRules(text []byte) ([]Rule, error) {
	place := &recent[maphash.Bytes(seed, text)%uint64(len(recent))]
	if l := place.Load(); l != nil && l.text == string(text) {
		return l.rules, nil
	}
	l := parsed{text: string(text)}
	for one := range bytes.SplitSeq(text, []byte{','}) {
		d, err := ParseStored(nil, bytes.Split(one, []byte{' '}))
		if err != nil {
			return nil, err
		}
		l.rules = append(l.rules, d.Rule)
	}
	if len(text) <= maxRecent {
		place.Store(&l)
	}
	return l.rules, nil
}
