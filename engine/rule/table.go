package rule

import (
	"strings"

	"rlserver/engine/limit"
	"rlserver/internal/grammar"
)

// Algorithm is the syntax of one algorithm's rules: its name, its fields in order, and its options.
type Algorithm struct {
	Name    string // in upper case
	Fields  []Field
	Options []Field
	HasID   bool // in calls, an id follows the fields
	Empty   Rule // a rule before its fields are read
}

// algorithms is the table of algorithms, by Kind.
var algorithms = [...]Algorithm{
	Slide: {Name: "SLIDE",
		Fields: []Field{
			count("limit", func(r *Rule, n int64) { r.Slide.Limit = n }),
			duration("window", func(r *Rule, ms int64) { r.Slide.Length = ms })}},
	Token: {Name: "TOKEN",
		Fields: []Field{
			count("capacity", func(r *Rule, n int64) { r.Token.Capacity = n }),
			count("refill", func(r *Rule, n int64) { r.Token.Refill = n }),
			duration("period", func(r *Rule, ms int64) { r.Token.Period = ms })}},
	Fixed: {Name: "FIXED",
		Fields: []Field{
			count("limit", func(r *Rule, n int64) { r.Fixed.Limit = n }),
			{Name: "window", form: aWindow, windows: func(r *Rule) *limit.Windows { return &r.Fixed.Window }}},
		Options: []Field{
			{Name: "zone", Word: "TZ", form: aZone, windows: func(r *Rule) *limit.Windows { return &r.Fixed.Window }},
		}},
	Lease: {Name: "LEASE", HasID: true,
		Fields: []Field{
			count("limit", func(r *Rule, n int64) { r.Lease.Limit = n }),
			duration("ttl", func(r *Rule, ms int64) { r.Lease.TTL = ms })}},
	Leaky: {Name: "LEAKY", Empty: Rule{Token: limit.Bucket{Capacity: 1}},
		Fields: []Field{
			count("rate", func(r *Rule, n int64) { r.Token.Refill = n }),
			duration("period", func(r *Rule, ms int64) { r.Token.Period = ms })},
		Options: []Field{
			number("queue", "QUEUE", 0, limit.MaxCount-1, func(r *Rule, n int64) { r.Token.Capacity = n + 1 }),
		}},
	Counter: {Name: "COUNTER",
		Fields: []Field{
			count("limit", func(r *Rule, n int64) { r.Counter.Limit = n }),
			duration("window", func(r *Rule, ms int64) { r.Counter.Window = ms })}},
}

func init() {
	for kind := range algorithms {
		algorithms[kind].Empty.Kind = Kind(kind)
	}
}

// Algorithms returns all algorithms.
func Algorithms() []Algorithm { return algorithms[:] }

// Algorithm returns the syntax of rules of this kind.
func (k Kind) Algorithm() *Algorithm { return &algorithms[k] }

// Find returns the algorithm with a name, in any case; nil if there is none.
func Find(name []byte) *Algorithm {
	for i := range algorithms {
		if grammar.EqualFold(name, algorithms[i].Name) {
			return &algorithms[i]
		}
	}
	return nil
}

// OptionIndex returns the index of an option by its keyword, in any case; -1 if there is no such
// option.
func (a *Algorithm) OptionIndex(word []byte) int {
	for i := range a.Options {
		if grammar.EqualFold(word, a.Options[i].Word) {
			return i
		}
	}
	return -1
}

// Syntax returns the syntax of the arguments, as redis-cli shows it: limit window [TZ zone].
func (a *Algorithm) Syntax() string {
	words := make([]string, 0, len(a.Fields)+len(a.Options)+1)
	for _, f := range a.Fields {
		words = append(words, f.Name)
	}
	for _, f := range a.Options {
		words = append(words, "["+f.Word+" "+f.Name+"]")
	}
	return strings.Join(words, " ")
}

// Names returns the names of all algorithms for a sentence: SLIDE, TOKEN or FIXED.
func Names() string {
	return list(", ", " or ", func(a *Algorithm) string { return a.Name })
}

// Forms returns the syntax of the rules of all algorithms: in calls, where some have an id, or in
// definitions.
func Forms(between, last string, inCalls bool) string {
	return list(between, last, func(a *Algorithm) string {
		form := a.Name + " " + a.Syntax()
		if inCalls && a.HasID {
			form += " id"
		}
		return form
	})
}

func list(between, last string, word func(*Algorithm) string) (text string) {
	for i := range algorithms {
		switch i {
		case 0:
		case len(algorithms) - 1:
			text += last
		default:
			text += between
		}
		text += word(&algorithms[i])
	}
	return text
}
