package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPolicyFiles(t *testing.T) {
	for text, want := range map[string][]string{
		"policies: {}": nil,
		"policies:\n  login:\n    slide:\n      limit: 5\n      window: 1m\n":                                     {"login SLIDE 5 1m"},
		"policies:\n  login: {slide: {window: 60, limit: 5}, shadow: true}\n":                                     {"login SLIDE 5 1m SHADOW"},
		"policies: {b: {token: {capacity: 100, refill: 10, period: 0.5}}, a: {lease: {limit: 3, ttl: \"30s\"}}}":  {"b TOKEN 100 10 500ms", "a LEASE 3 30s"},
		"# ours\npolicies: # all\n  q:\n    # so much\n    fixed: {limit: 9, window: month, tz: Europe/Berlin}\n": {"q FIXED 9 month TZ Europe/Berlin"},
		"---\npolicies:\n  q: {fixed: {limit: 9, window: 1d}, shadow: false}\n":                                   {"q FIXED 9 1d"},
		"{\"policies\": {\"json\": {\"slide\": {\"limit\": 5, \"window\": \"1m\"}}}}":                             {"json SLIDE 5 1m"},
		"policies:\r\n  1.5: {slide: {limit: 5, window: 1m}}\r\n  true: {slide: {limit: 5, window: 1h}}\r\n":      {"1.5 SLIDE 5 1m", "true SLIDE 5 1h"},
	} {
		list, err := parsePolicies([]byte(text))
		require.NoError(t, err, text)
		var got []string
		for _, p := range list {
			got = append(got, p.Name()+" "+p.Definition())
		}
		assert.Equal(t, want, got, text)
	}
}

func TestPolicyFilesThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	const three = "policies:\n  login:\n    "
	for text, want := range map[string]string{
		"":                                      "1: the file is empty: it begins with policies:",
		"# nothing\n":                           "1: the file is empty: it begins with policies:",
		"{}":                                    "1: policies: is missing",
		"limits: {}":                            "1: the file has no field limits: there are policies",
		"policies:\n":                           "1: policies must have fields, but is of type null",
		"policies: 5":                           "1: policies must have fields, but is of type int",
		"- policies":                            "1: the file must have fields, but is of type sequence",
		"policies: {}\nmore: 1":                 "2: the file has no field more: there are policies",
		"policies: {}\n---\npolicies: {}\n":     "3: one document is enough",
		"policies:\n  login:\n  api: {}\n":      "2: policy login must have fields, but is of type null",
		three + "slide: {limit: 5, window: 1x}": "3: policy login: invalid duration '1x': use seconds, or a number with ms, s, m, h, d or w",
		three + "slide: {limit: 0, window: 1s}": "3: policy login: limit must be a whole number from 1 to 9007199254740991, not '0'",
		three + "slide: {limit: 5}":             "3: slide lacks window",
		"policies:\n  login:\n    fixed:\n      tz: Mars\n      window: day\n      limit: 0\n": "6: policy login: limit must be a whole number from 1 to 9007199254740991, not '0'",
		"policies:\n  login:\n    fixed:\n      tz: Mars\n      window: day\n      limit: 1\n": "4: policy login: unknown time zone 'Mars': TZ takes an IANA name such as UTC or Europe/Berlin",
		"policies:\n  login:\n    fixed:\n      tz: UTC\n      limit: 1\n      window: 1h\n":   "4: policy login: TZ goes with a window of the calendar: minute, hour, day, week, month or year",
		three + "slide: 5":                                                                      "3: slide must have fields, but is of type int",
		three + "slide: {limit: [5], window: 1s}":                                               "3: limit must be a number or a word",
		three + "slide: {limit: 5 6, window: 1s}":                                               "3: limit must be a number or a word",
		three + "slide: {limit: 0x10, window: 1s}":                                              "3: policy login: limit must be a whole number from 1 to 9007199254740991, not '0x10'",
		three + "slide: {limit: 5, windw: 1s}":                                                  "3: slide has no field windw: there are limit, window",
		three + "slide: {limit: 5, window: 1s}\n    shadw: true":                                "4: policy login has no field shadw: there are slide, token, fixed, lease, shadow",
		three + "slide: {limit: 5, window: 1s}\n    shadow: yes":                                "4: shadow must be true or false",
		three + "slide: {limit: 5, window: 1s}\n    fixed: {limit: 5, window: 1s}":              "4: policy login has two algorithms",
		three + "shadow: true":                                                                  "2: policy login has no algorithm: slide, token, fixed or lease",
		three + "slide: {limit: 5, window: 1s, tz: UTC}":                                        "3: slide has no field tz: there are limit, window",
		three + "fixed: {limit: 5, window: 1d, tz: UTC}":                                        "3: policy login: TZ goes with a window of the calendar: minute, hour, day, week, month or year",
		three + "fixed: {limit: 5, window: day, tz: Mars}":                                      "3: policy login: unknown time zone 'Mars': TZ takes an IANA name such as UTC or Europe/Berlin",
		"policies:\n\n  a b: {slide: {limit: 5, window: 1s}}":                                   "3: policy a b: a policy's name is 1 to 64 letters, digits, dots, underscores and hyphens, not 'a b'",
		"policies:\n  COST: {slide: {limit: 5, window: 1s}}":                                    "2: policy COST: a policy cannot be called 'COST': that is an option of RL.CHECK",
		"policies:\n  a: {slide: {limit: 5, window: 1s}}\n  a: {slide: {limit: 5, window: 2s}}": `3: mapping key "a" already defined at [2:3]`,
		"policies:\n  a: &x {slide: {limit: 5, window: 1s}}\n":                                  "2: policy a must have fields, but is of type anchor",
		"policies:\n  a: {slide: {limit: 5, window: 1s}}\n  b: *a\n":                            "3: policy b must have fields, but is of type alias",
		"policies:\n  a: {slide: {limit: 5, window: 1s}\n":                                      "2: could not find flow mapping end token '}'",
		"policies:\n\ta: 1\n":                                                                   "2: found character '\t' that cannot start any token",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readPolicies(path)
		assert.EqualError(t, err, path+":"+want, "%s", text)
	}
	_, err := readPolicies(path + "x")
	assert.EqualError(t, err, "open "+path+"x: no such file or directory")
}

func FuzzPolicyFile(f *testing.F) {
	f.Add("policies:\n  login: {slide: {limit: 5, window: 1m}, shadow: true}\n")
	f.Add("a: &x [*x, <<: {b: !!int 5}, ? c : |\n d]\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parsePolicies([]byte(text))
		if err != nil {
			require.Greater(t, err.(*lineError).line, 0)
			require.Empty(t, list)
		}
	})
}
