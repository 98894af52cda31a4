package command

import "rlserver/engine/rule"

// BeginsRule reports whether words begin with a rule, not with an option. The second word of a rule
// is an algorithm, so its key may be COST.
func BeginsRule(words [][]byte) bool { return RuleLength(words) > 0 }

// RuleLength returns how many words the rule at the beginning of words has, or should have; 0 if
// there is no rule.
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

// OptionFollows reports whether words begin with an option of an algorithm, not with a key of that
// name.
func OptionFollows(a *rule.Algorithm, words [][]byte) bool {
	return len(words) > 0 && a.OptionIndex(words[0]) >= 0 && (len(words) < 2 || rule.Find(words[1]) == nil)
}
