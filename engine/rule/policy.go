package rule

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"rlserver/engine/ban"
	"rlserver/engine/limit"
	"rlserver/internal/grammar"
)

// Definition defines a policy: a named rule.
type Definition struct {
	Name string
	// the definition in canonical form: SLIDE 5 1m SHADOW. ParsePolicy parses it
	Text   string
	Rule   Rule
	Shadow bool
	Networks
	Ban ban.Rule
}

// HasOptions reports whether the policy has options that are not those of its algorithm.
func (d *Definition) HasOptions() bool {
	return d.Shadow || d.Networks != Networks{} || d.Ban != ban.Rule{}
}

// ParsePolicy makes a policy of a name and the words of its definition: an algorithm, its fields,
// and in any order its options and those of all policies: BAN, IP4, IP6 and SHADOW. Words are in
// any case. The arguments are not kept. The error is an Error, or a *DefinitionError that wraps
// one.
func ParsePolicy(name []byte, words [][]byte) (Definition, error) {
	if err := checkPolicyName(name); err != nil {
		return Definition{}, err
	}
	return ParseStored(name, words)
}

// ParseStored is ParsePolicy for a policy that was accepted before, whatever its name.
func ParseStored(name []byte, words [][]byte) (Definition, error) {
	d := definition{words: words}
	d.read()
	if d.err != nil {
		return Definition{}, d.err
	}
	return Definition{
		Name: string(name), Text: strings.Join(d.text, " "), Rule: d.rule, Shadow: d.shadow, Networks: d.networks,
		Ban: d.ban,
	}, nil
}

// DefinitionError is an error in a word of a definition.
type DefinitionError struct {
	Word int // its index; the number of words if one is missing
	Err  error
}

func (e *DefinitionError) Error() string { return e.Err.Error() }

// Unwrap returns the error for the client.
func (e *DefinitionError) Unwrap() error { return e.Err }

const longestPolicyName = 64

func checkPolicyName(name []byte) error {
	good := len(name) > 0 && len(name) <= longestPolicyName
	for _, c := range name {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		good = good && (letter || strings.IndexByte("._-/:@", c) >= 0)
	}
	if !good {
		return Error(
			fmt.Sprintf(
				"ERR a policy's name is 1 to %d letters, digits and ._-/:@, not '%.128s'",
				longestPolicyName,
				name,
			),
		)
	}
	if IsCheckOption(name) {
		return Error(fmt.Sprintf("ERR a policy cannot be called '%s': that is an option of RL.CHECK", name))
	}
	return nil
}

// IsCheckOption reports whether a word is an option of RL.CHECK, in any case: no policy can have
// such a name.
func IsCheckOption(word []byte) bool {
	switch len(word) { // RL.CHECK asks for each of its words
	case 2:
		return grammar.EqualFold(word, "ID")
	case 4:
		return grammar.EqualFold(word, "COST") || grammar.EqualFold(word, "HOLD") || grammar.EqualFold(word, "WAIT")
	case 5:
		return grammar.EqualFold(word, "FORCE")
	}
	return false
}

// ReadNumbers parses an algorithm and its numbers in canonical form, as ParsePolicy returns it
// without the options of policies. It does not allocate. ok is false for another algorithm.
func (a *Algorithm) ReadNumbers(text string) (r Rule, ok bool) {
	name, text, _ := strings.Cut(text, " ")
	if name != a.Name {
		return Rule{}, false
	}
	next := func() []byte {
		var word string
		word, text, _ = strings.Cut(text, " ")
		return unsafe.Slice(unsafe.StringData(word), len(word))
	}
	r = a.Empty
	for i := range a.Fields {
		if a.Fields[i].Read(next(), &r) != nil {
			return Rule{}, false
		}
	}
	for text != "" {
		i := a.OptionIndex(next())
		if i < 0 || a.Options[i].Read(next(), &r) != nil {
			return Rule{}, false
		}
	}
	return r, true
}

// definition is a definition that is being parsed. It keeps the first error.
type definition struct {
	words    [][]byte
	taken    int // how many words have been read
	rule     Rule
	shadow   bool
	networks Networks
	ban      ban.Rule
	text     []string
	err      error
}

func (d *definition) read() {
	name := d.next()
	a := Find(name)
	if a == nil {
		d.fail(0, Error(fmt.Sprintf("ERR unknown algorithm '%.128s': a policy is %s", name, Names())))
		return
	}
	d.rule, d.text = a.Empty, append(d.text, a.Name)
	for i := range a.Fields {
		if !d.has(1, a) {
			return
		}
		d.take(&a.Fields[i])
	}
	d.options(a)
}

// options parses the remaining words, and appends the options to the text in the order of the
// table.
func (d *definition) options(a *Algorithm) {
	values := make([][]byte, len(a.Options))
	for d.err == nil && d.taken < len(d.words) {
		word := d.next()
		i := a.OptionIndex(word)
		if i >= 0 && values[i] != nil {
			i = -1
		}
		switch {
		case i >= 0 && d.has(1, a):
			values[i] = d.words[d.taken]
			d.take(&a.Options[i])
			d.text = d.text[:len(d.text)-1]
		case i >= 0: // its value is missing
		case bytes.EqualFold(word, []byte("SHADOW")) && !d.shadow:
			d.shadow = true
		case bytes.EqualFold(word, []byte("IP4")) && d.networks.IP4 == 0:
			d.networks.IP4 = d.prefixLength("IP4", longestIP4, a)
		case bytes.EqualFold(word, []byte("IP6")) && d.networks.IP6 == 0:
			d.networks.IP6 = d.prefixLength("IP6", longestIP6, a)
		case bytes.EqualFold(word, []byte("BAN")) && d.ban.After == 0:
			d.takeBan(a)
		default: // unknown, or given twice
			d.fail(
				d.taken-1,
				Error(fmt.Sprintf("ERR '%.128s' has no place there: a policy is %s", word, a.definition())),
			)
		}
	}
	for i, value := range values {
		if value != nil {
			d.text = append(d.text, a.Options[i].Word, a.Options[i].text(value))
		}
	}
	d.text = append(append(d.text, d.ban.Words()...), d.networks.words()...)
	if d.shadow {
		d.text = append(d.text, "SHADOW")
	}
}

// PolicyOptions is the syntax of the options that the policies of all algorithms have.
const PolicyOptions = "[BAN denials for [max]] [IP4 bits] [IP6 bits] [SHADOW]"

// definition returns the syntax of a policy's definition.
func (a *Algorithm) definition() string { return a.Name + " " + a.Syntax() + " " + PolicyOptions }

// takeBan takes the values of BAN.
func (d *definition) takeBan(a *Algorithm) {
	if !d.has(2, a) {
		return
	}
	r, n, err := ReadBan(d.words[d.taken:])
	if d.taken += n; err != nil {
		d.fail(d.taken, err)
	}
	d.ban = r
}

// ReadBan parses the values of BAN at the beginning of words: the number of denials, a duration,
// and perhaps a longer one. It returns how many words it has taken; with an error, those before the
// bad one.
func ReadBan(words [][]byte) (r ban.Rule, taken int, err error) {
	if len(words) < 2 {
		return r, 0, Error("ERR something is missing: BAN takes denials for [max], such as BAN 3 15m 1d")
	}
	if r.After, err = Count("BAN", words[0], 1, ban.MostDenials); err != nil {
		return r, 0, err
	}
	if r.For, err = Duration(words[1], ""); err != nil {
		return r, 1, err
	}
	if r.Max = r.For; len(words) == 2 {
		return r, 2, nil
	}
	longest, ok := limit.ParseDuration(words[2])
	switch {
	case !ok:
		return r, 2, nil
	case longest < r.For:
		return r, 2, Error("ERR BAN takes a longest ban that is not shorter than the first one")
	}
	r.Max = longest
	return r, 3, nil
}

// prefixLength takes the value of IP4 or IP6.
func (d *definition) prefixLength(option string, longest int64, a *Algorithm) PrefixLength {
	if !d.has(1, a) {
		return 0
	}
	bits, err := Count(option, d.next(), 0, longest)
	if err != nil {
		d.fail(d.taken-1, err)
	}
	return PrefixLength(bits + 1)
}

// has reports whether n words are left and there is no error; it sets the error if words are
// missing.
func (d *definition) has(n int, a *Algorithm) bool {
	if len(d.words)-d.taken < n {
		d.fail(len(d.words), Error("ERR something is missing: a policy is "+a.definition()))
	}
	return d.err == nil
}

func (d *definition) take(f *Field) {
	word := d.next()
	if err := f.Read(word, &d.rule); err != nil {
		d.fail(d.taken-1, err)
	}
	d.text = append(d.text, f.text(word))
}

func (d *definition) next() []byte {
	if d.taken == len(d.words) {
		return nil
	}
	d.taken++
	return d.words[d.taken-1]
}

func (d *definition) fail(word int, err error) {
	if d.err == nil {
		d.err = &DefinitionError{word, err}
	}
}
