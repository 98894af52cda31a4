package command

import "rlserver/engine/rule"

// BeginsRule reports whether words begin with a rule, not with an option. The second word of a rule
// is an algorithm, so its key may be COST.
func BeginsRule(words [][]byte) bool { return RuleLength(words) > 0 }

// RuleLength is Rule without the algorithm.
func RuleLength(words [][]byte) int {
	_, n := Rule(words)
	return n
}

// Rule returns the algorithm of the rule at the beginning of words, and how many words the rule
// has, or should have; nil and 0 if there is no rule.
func Rule(words [][]byte) (a *rule.Algorithm, n int) {
	if len(words) < 2 {
		return nil, 0
	}
	if a = rule.Find(words[1]); a == nil {
		return nil, 0
	}
	n = 2 + len(a.Fields)
	if a.HasID {
		n++
	}
	for range a.Options {
		if len(words) > n && OptionFollows(a, words[n:]) {
			n += 2
		}
	}
	return a, n
}

// OptionFollows reports whether words begin with an option of an algorithm, not with a key of that
// name.
func OptionFollows(a *rule.Algorithm, words [][]byte) bool {
	return len(words) > 0 && a.OptionIndex(words[0]) >= 0 && (len(words) < 2 || rule.Find(words[1]) == nil)
}
