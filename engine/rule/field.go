package rule

import (
	"fmt"
	"strings"
	"time"

	"rlserver/engine/limit"
	"rlserver/internal/grammar"
)

// Field is one argument of an algorithm, or an option, which follows a keyword.
type Field struct {
	Name string
	Word string // of an option, in upper case
	form form

	put         func(*Rule, int64)         // of a number or a duration
	windows     func(*Rule) *limit.Windows // of a window or a zone
	least, most int64                      // of a number
}

// Key returns the name of the field in a policy file; for an option, its keyword in lower case.
func (f *Field) Key() string {
	if f.Word != "" {
		return strings.ToLower(f.Word)
	}
	return f.Name
}

// form is the syntax of a field.
type form uint8

const (
	aNumber   form = iota
	aDuration      // in ms
	aWindow        // a duration, or a unit of the calendar
	aZone          // of the calendar window before it
)

func count(name string, put func(*Rule, int64)) Field {
	return number(name, "", 1, limit.MaxCount, put)
}

func number(name, word string, least, most int64, put func(*Rule, int64)) Field {
	return Field{Name: name, Word: word, form: aNumber, put: put, least: least, most: most}
}

func duration(name string, put func(*Rule, int64)) Field {
	return Field{Name: name, form: aDuration, put: put}
}

// Read parses the word of a field and sets the field of a rule. The fields before it have been
// read. Errors are of type Error. Without an error it does not allocate.
func (f *Field) Read(word []byte, r *Rule) (err error) {
	var n int64
	switch f.form {
	case aNumber:
		var ok bool
		if n, ok = grammar.ParseInt(word); !ok || n < f.least || n > f.most {
			_, err = Count(f.label(), word, f.least, f.most)
		}
	case aDuration:
		n, err = Duration(word, "")
	case aWindow:
		return readWindow(word, f.windows(r))
	case aZone:
		return readZone(word, f.windows(r))
	}
	if err == nil {
		f.put(r, n)
	}
	return err
}

// label returns the field's name in errors.
func (f *Field) label() string {
	if f.Word != "" {
		return f.Word
	}
	return f.Name
}

// text returns the canonical form of a word that Read has accepted.
func (f *Field) text(word []byte) string {
	if f.form == aDuration || f.form == aWindow {
		if ms, ok := limit.ParseDuration(word); ok {
			return limit.DurationText(ms)
		}
		unit, _ := limit.ParseCalendar(word)
		return unit.String()
	}
	return string(word)
}

// Count parses an integer in the canonical form, as Redis does.
func Count(name string, word []byte, least, most int64) (int64, error) {
	n, ok := grammar.ParseInt(word)
	switch {
	case !ok:
		return 0, Error(
			fmt.Sprintf("ERR value is not an integer or out of range: %s must be from %d to %d", name, least, most),
		)
	case n < least || n > most:
		return 0, Error(fmt.Sprintf("ERR %s must be from %d to %d", name, least, most))
	}
	return n, nil
}

// Duration parses a duration and returns it in ms. An error text ends with the hint.
func Duration(word []byte, hint string) (ms int64, err error) {
	ms, ok := limit.ParseDuration(word)
	if !ok {
		return 0, Error(
			fmt.Sprintf(
				"ERR invalid duration '%.128s': use seconds, or a number with ms, s, m, h, d or w%s",
				word,
				hint,
			),
		)
	}
	return ms, nil
}

// readWindow parses a duration or a calendar unit, which is in UTC unless readZone sets a zone.
func readWindow(word []byte, w *limit.Windows) error {
	if unit, ok := limit.ParseCalendar(word); ok {
		*w = limit.Calendar(unit, time.UTC)
		return nil
	}
	ms, err := Duration(word, "; or minute, hour, day, week, month or year for a window of the calendar")
	*w = limit.Every(ms)
	return err
}

const errZoneOfDuration = Error("ERR TZ goes with a window of the calendar: minute, hour, day, week, month or year")

func readZone(word []byte, w *limit.Windows) error {
	zone, ok := limit.ParseZone(word)
	switch {
	case w.Unit == 0:
		return errZoneOfDuration
	case !ok:
		return Error(
			fmt.Sprintf("ERR unknown time zone '%.128s': TZ takes an IANA name such as UTC or Europe/Berlin", word),
		)
	}
	w.Zone = zone
	return nil
}
