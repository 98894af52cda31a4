package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rlserver/engine/limit"
)

// algorithms are what a policy may be, by LimitKind.
var algorithms = [...]struct {
	name, form string // form is how the definition is written
	read       func(*definition, *Limit)
}{
	LimitSlide: {"SLIDE", "SLIDE limit window [SHADOW]", func(d *definition, l *Limit) {
		l.Slide = limit.Rule{Limit: d.amount("limit"), Window: d.duration()}
	}},
	LimitToken: {"TOKEN", "TOKEN capacity refill period [SHADOW]", func(d *definition, l *Limit) {
		l.Token = limit.Bucket{Capacity: d.amount("capacity"), Refill: d.amount("refill"), Period: d.duration()}
	}},
	LimitFixed: {"FIXED", "FIXED limit window [TZ zone] [SHADOW]", func(d *definition, l *Limit) {
		l.Fixed = limit.Fixed{Limit: d.amount("limit"), Window: d.window()}
	}},
	LimitLease: {"LEASE", "LEASE limit ttl [SHADOW]", func(d *definition, l *Limit) {
		l.Lease = limit.Lease{Limit: d.amount("limit"), TTL: d.duration()}
	}},
}

// ParsePolicy makes a policy of a name and the words of its definition: an algorithm, its arguments, and options in any order. Words are in any case:
//
//	SLIDE limit window
//	TOKEN capacity refill period
//	FIXED limit window [TZ zone]
//	LEASE limit ttl              and each with [SHADOW]
//
// Nothing of what is given is kept. The error is an Error for the client, or a *DefinitionError that wraps one.
func ParsePolicy(name []byte, words [][]byte) (*Policy, error) {
	if err := checkPolicyName(name); err != nil {
		return nil, err
	}
	d := definition{words: words, total: len(words)}
	p := &Policy{name: string(name)}
	d.read(p)
	if d.err != nil {
		return nil, d.err
	}
	p.text = string(d.text)
	return p, nil
}

// DefinitionError says which word of a definition is wrong.
type DefinitionError struct {
	Word int // its index; that after the last if something is missing
	Err  Error
}

func (e *DefinitionError) Error() string { return e.Err.Error() }

// Unwrap gives what the client is told.
func (e *DefinitionError) Unwrap() error { return e.Err }

const longestPolicyName = 64

func checkPolicyName(name []byte) error {
	good := len(name) > 0 && len(name) <= longestPolicyName
	for _, c := range name {
		good = good && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !good {
		return Error(fmt.Sprintf("ERR a policy's name is 1 to %d letters, digits, dots, underscores and hyphens, not '%.128s'", longestPolicyName, name))
	}
	for _, option := range []string{"COST", "ID", "WAIT"} {
		if strings.EqualFold(string(name), option) {
			return Error(fmt.Sprintf("ERR a policy cannot be called '%s': that is an option of RL.CHECK", name))
		}
	}
	return nil
}

// definition is a cursor over the words of one. The first thing that is wrong sticks. What is right is written down in text as it goes.
type definition struct {
	words [][]byte // what is left of them
	total int
	form  string
	text  []byte
	err   error
}

func (d *definition) read(p *Policy) {
	name := d.next()
	kind := -1
	for i := range algorithms {
		if bytes.EqualFold(name, []byte(algorithms[i].name)) {
			kind = i
		}
	}
	if kind < 0 {
		d.fail("ERR unknown algorithm '%.128s': a policy is SLIDE, TOKEN, FIXED or LEASE", name)
		return
	}
	a := &algorithms[kind]
	p.limit.Kind, d.form = LimitKind(kind), a.form
	d.write(a.name)
	a.read(d, &p.limit)
	p.shadow = d.shadow()
}

// shadow takes what is left: SHADOW, or nothing.
func (d *definition) shadow() bool {
	switch {
	case d.err != nil || len(d.words) == 0:
		return false
	case len(d.words) == 1 && bytes.EqualFold(d.words[0], []byte("SHADOW")):
		d.write("SHADOW")
		return true
	}
	d.failAt(0, "ERR '%.128s' has no place there: a policy is %s", d.words[0], d.form) // or is there twice
	return false
}

// fail is for the word that was taken last.
func (d *definition) fail(format string, args ...any) { d.failAt(-1, format, args...) }

// failAt is for that word of those that are left.
func (d *definition) failAt(i int, format string, args ...any) {
	if d.err == nil {
		d.err = &DefinitionError{max(0, d.total-len(d.words)+i), Error(fmt.Sprintf(format, args...))}
	}
}

func (d *definition) write(word string) {
	if len(d.text) > 0 {
		d.text = append(d.text, ' ')
	}
	d.text = append(d.text, word...)
}

func (d *definition) next() []byte {
	if len(d.words) == 0 {
		if d.form != "" {
			d.failAt(0, "ERR something is missing: a policy is %s", d.form)
		}
		return nil
	}
	word := d.words[0]
	d.words = d.words[1:]
	return word
}

// amount takes a count of at least 1.
func (d *definition) amount(name string) int64 {
	word := d.next()
	n, err := strconv.ParseInt(string(word), 10, 64)
	text := strconv.FormatInt(n, 10)
	if err != nil || n < 1 || n > limit.MaxCount || text != string(word) {
		d.fail("ERR %s must be a whole number from 1 to %d, not '%.128s'", name, limit.MaxCount, word)
	}
	d.write(text)
	return n
}

// duration takes a length of time, in ms.
func (d *definition) duration() int64 {
	word := d.next()
	ms, ok := limit.ParseDuration(word)
	if !ok {
		d.fail("ERR invalid duration '%.128s': use seconds, or a number with ms, s, m, h, d or w", word)
	}
	d.write(limit.DurationText(ms))
	return ms
}

// window takes a length of time or a unit of the calendar, and the zone, which comes before or after SHADOW.
func (d *definition) window() limit.Window {
	if len(d.words) == 0 {
		d.next()
		return limit.Window{}
	}
	unit, ok := limit.ParseCalendar(d.words[0])
	if !ok {
		window := limit.Every(d.duration())
		if zone := d.zone(); zone != nil {
			d.fail("ERR TZ goes with a window of the calendar: minute, hour, day, week, month or year")
		}
		return window
	}
	d.next()
	d.write(unit.String())
	return limit.Calendar(unit, d.zone())
}

// zone takes TZ and a zone, wherever among the options it stands; nil if it is not there.
func (d *definition) zone() *time.Location {
	at := 0
	if len(d.words) > 1 && bytes.EqualFold(d.words[0], []byte("SHADOW")) {
		at = 1
	}
	if len(d.words) <= at || !bytes.EqualFold(d.words[at], []byte("TZ")) {
		return nil
	}
	if len(d.words) == at+1 {
		d.words = nil
		d.next()
		return nil
	}
	name := d.words[at+1]
	zone, ok := limit.ParseZone(name)
	if !ok {
		d.failAt(at+1, "ERR unknown time zone '%.128s': TZ takes an IANA name such as UTC or Europe/Berlin", name)
		return nil
	}
	d.words = append(d.words[:at:at], d.words[at+2:]...)
	d.write("TZ")
	d.write(string(name))
	return zone
}
