package rule

import "bytes"

// AppendRules appends rules as ParseRules reads them: SLIDE 5 1m,SLIDE 100 1d.
func AppendRules(b []byte, rules []Rule) []byte {
	for i := range rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, rules[i].String()...)
	}
	return b
}

// ParseRules parses one or more rules.
func ParseRules(text []byte) ([]Rule, error) {
	var rules []Rule
	for one := range bytes.SplitSeq(text, []byte{','}) {
		d, err := ParseStored(nil, bytes.Split(one, []byte{' '}))
		if err != nil {
			return nil, err
		}
		rules = append(rules, d.Rule)
	}
	return rules, nil
}
