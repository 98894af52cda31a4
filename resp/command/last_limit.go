package command

import (
	"rlserver/engine"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
)

// LastLimit is the limit of the last call with one limit, and the words of its rule: most clients
// send the same rule with each call, and it is not parsed again. The zero value has none.
type LastLimit struct {
	engine.Limit

	of    *rule.Algorithm // nil: the words of the rule are not kept
	words [keptWords]struct {
		size uint8
		text [keptSize]byte
	}
}

const (
	keptWords = 3
	keptSize  = 20
)

// Has reports whether the limit has the rule of an algorithm that these words are, and nothing else
// is asked of it. repeats: they are the words of the last call.
func (l *LastLimit) Has(a *rule.Algorithm, words [][]byte, repeats bool) bool {
	if l.of == a && repeats {
		return true
	}
	if l.of != a || len(words) != len(a.Fields) {
		return false
	}
	for i, word := range words {
		if kept := &l.words[i]; string(word) != string(kept.text[:kept.size]) {
			return false
		}
	}
	return true
}

// Keep records the words of which the rule of the limit was parsed, unless more follow its fields,
// or there are many or long ones.
func (l *LastLimit) Keep(a *rule.Algorithm, words [][]byte) {
	if len(words) > keptWords || len(words) != len(a.Fields) {
		return
	}
	for i, word := range words {
		if len(word) > keptSize {
			return
		}
		l.words[i].size = uint8(copy(l.words[i].text[:], word))
	}
	l.of = a
}

// OneLimit returns the last limit, of which nothing is asked, and forgets the words of its rule:
// the caller sets its key and its rule.
func (c *Call) OneLimit() *LastLimit {
	l := c.Last()
	l.of, l.ID, l.Hold, l.Ban = nil, nil, reserve.Request{}, nil
	return l
}

// Last returns the last limit.
func (c *Call) Last() *LastLimit {
	if c.last == nil {
		c.last = new(LastLimit)
	}
	return c.last
}
