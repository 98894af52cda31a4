package command

import "rlserver/engine/rule"

// BeginsRule tells a rule from an option: its second word says what it is, so that its key may be
// called COST.
func BeginsRule(words [][]byte) bool { return RuleLength(words) > 0 }

// RuleLength is how many words the rule has that they begin with, or ought to have; 0 if they begin
// with none.
func RuleLength(words [][]byte) int {
	if len(words) < 2 {
		return 0
	}
	a := rule.Find(words[1])
	if a == nil {
		return 0
	}
	n := 2 + len(a.Fields)
	if a.HasID {
		n++
	}
	for range a.Options {
		if len(words) > n && OptionFollows(a, words[n:]) {
			n += 2
		}
	}
	return n
}

// OptionFollows tells an option of an algorithm from a key of that name.
func OptionFollows(a *rule.Algorithm, words [][]byte) bool {
	return len(words) > 0 && a.OptionIndex(words[0]) >= 0 && (len(words) < 2 || rule.Find(words[1]) == nil)
}
