package persistence

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"rlserver/engine/effect"
)

// Dump writes the records of a data directory to out, one line for each effect, in the order in
// which a start reads them; with asJSON each line is a JSON object. Text that is not UTF-8 is
// quoted as in Go; in JSON it is in base64, and its name ends in _base64. Nothing is changed. Dump
// stops with an error at the first damage. A torn tail is not an error: the last line reports it.
func Dump(dir string, out io.Writer, asJSON bool, progress Progress) error {
	fs := readOnly{directory(dir)}
	f, err := listFiles(fs)
	if err != nil {
		return err
	}
	segments, missing := f.from(f.newest())
	f.segments = segments
	f.snapshots = f.snapshots[max(0, len(f.snapshots)-1):]
	buffered := bufio.NewWriterSize(out, 1<<16)
	defer buffered.Flush()
	p := printer{out: buffered, json: asJSON, read: progress.Add}
	progress.Begin("reading", sizeOf(fs, f))
	defer progress.End()
	for kind, list := range f.inOrder() {
		for i, n := range list {
			last := kind == logFile && i == len(list)-1 && missing == nil
			if err := p.file(fs, kind, n, last); err != nil {
				return err
			}
		}
	}
	return cmp.Or(missing, buffered.Flush())
}

// newest returns the number of the newest snapshot, 0 if there is none.
func (f *files) newest() uint64 {
	if len(f.snapshots) == 0 {
		return 0
	}
	return f.snapshots[len(f.snapshots)-1]
}

// printer writes effects as lines.
type printer struct {
	out  *bufio.Writer
	json bool
	read func(n int) // called with the number of bytes of each read
	line []byte
	sep  bool // the line is not empty
}

// file writes the lines of a file. last is true of the last segment of the log, which may end with
// a torn tail.
func (p *printer) file(fs fileSystem, kind fileKind, n uint64, last bool) error {
	d, err := openData(fs, kind, n, p.read)
	broken := (*damage)(nil)
	if errors.As(err, &broken) && last {
		return p.torn(fs, broken, 0)
	}
	if err != nil {
		return err
	}
	defer d.close()
	for {
		offset := d.offset
		rec, err := d.next()
		if err == io.EOF {
			return nil
		}
		if errors.As(err, &broken) && last {
			return p.torn(fs, broken, d.header.salt)
		}
		if err != nil {
			return err
		}
		for i := range rec.effects {
			p.begin(d.name, offset)
			p.time("at", rec.at)
			p.effect(&rec.effects[i])
			if err := p.end(); err != nil {
				return err
			}
		}
	}
}

// torn writes the last line: what a start would cut off.
func (p *printer) torn(fs fileSystem, broken *damage, salt int64) error {
	t, err := tornFrom(fs, broken, salt)
	if err != nil {
		return err
	}
	p.begin(t.Segment, t.Offset)
	p.number("torn", t.Bytes)
	return p.end()
}

// begin begins a line with the place of the record.
func (p *printer) begin(file string, offset int64) {
	p.line, p.sep = p.line[:0], false
	if p.json {
		p.line = append(p.line, '{')
	}
	p.text("file", []byte(file))
	p.number("offset", offset)
}

// end writes the line.
func (p *printer) end() error {
	if p.json {
		p.line = append(p.line, '}')
	}
	_, err := p.out.Write(append(p.line, '\n'))
	return err
}

// effect appends the kind of an effect and its fields.
func (p *printer) effect(f *effect.Effect) {
	has := f.Kind.Fields()
	p.text("effect", []byte(f.Kind.String()))
	p.number("db", int64(f.DB))
	if len(f.Key.Name) > 0 || f.Kind != effect.Flush && f.Kind != effect.Swap {
		p.text("key", f.Key.Name)
	}
	if has&effect.HasToDB != 0 {
		p.number("to_db", int64(f.ToDB))
	}
	if has&effect.HasTo != 0 {
		p.text("to", f.To.Name)
	}
	if has&effect.HasField != 0 {
		p.text("field", f.Field)
	}
	if has&effect.HasValue != 0 {
		p.text("value", f.Value)
	}
	if has&effect.HasRuns != 0 {
		p.text("hits", appendRuns(nil, f.Value))
	}
	if has&effect.HasScore != 0 {
		p.text("score", appendScore(nil, f.Score))
	}
	if has&effect.HasLo != 0 {
		p.number("from", int64(f.Lo))
	}
	if has&effect.HasHi != 0 {
		p.number("until", int64(f.Hi))
	}
	if has&effect.HasForgets != 0 {
		p.number("forgets", int64(f.Lo))
	}
	if has&effect.HasForm != 0 {
		p.number("form", int64(f.Hi))
	}
	if has&effect.HasHits != 0 {
		p.number("hit_at", f.Hits.At)
		p.number("first", int64(f.Hits.Seq))
		p.number("hits", f.Hits.N)
	}
	if has&effect.HasTokens != 0 {
		p.number("missing", f.Tokens.Missing)
		p.number("earned", f.Tokens.Earned)
		p.number("since", f.Tokens.Since)
	}
	if has&effect.HasCount != 0 {
		p.number("window", f.Count.Start)
		p.number("used", f.Count.Used)
	}
	if has&effect.HasBucket != 0 {
		p.number("missing", f.Tokens.Missing)
		p.fraction("fraction", f.Tokens.Fraction)
		p.number("since", f.Tokens.Since)
	}
	if has&effect.HasWindow != 0 {
		p.number("window", f.Count.Start)
		p.number("length", f.Count.Length)
		p.number("used", f.Count.Used)
	}
	if has&effect.HasCounter != 0 {
		p.number("window", f.Counts.Start)
		p.number("length", f.Counts.Length)
		p.number("current", f.Counts.Current)
		p.number("previous", f.Counts.Previous)
	}
	if has&effect.HasHold != 0 {
		p.number("amount", f.Hold.Amount)
		p.time("lapses", f.Hold.Until)
	}
	if has&effect.HasExpireAt != 0 && f.ExpireAt != 0 {
		p.time("expires", f.ExpireAt)
	}
}

// appendRuns writes the names of hits: `<ms>-<seq>`, or of several in a row
// `<ms>-<first>+<others>`.
func appendRuns(dst, value []byte) []byte {
	for h := range effect.EachRun(value) {
		if len(dst) > 0 {
			dst = append(dst, ' ')
		}
		if dst = h.Member(dst, 0); h.N > 1 {
			dst = strconv.AppendInt(append(dst, '+'), h.N-1, 10)
		}
	}
	return dst
}

// appendScore writes whole numbers, such as times, without an exponent. Scores are text in JSON
// too, because JSON has no infinity.
func appendScore(dst []byte, score float64) []byte {
	if score == math.Trunc(score) && math.Abs(score) < 1e17 {
		return strconv.AppendFloat(dst, score, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, score, 'g', -1, 64)
}

func (p *printer) name(name string) {
	switch {
	case p.json && p.sep:
		p.line = append(p.line, ',')
	case p.sep:
		p.line = append(p.line, ' ')
	}
	p.sep = true
	if p.json {
		p.line = append(strconv.AppendQuote(p.line, name), ':')
	} else {
		p.line = append(append(p.line, name...), '=')
	}
}

func (p *printer) number(name string, n int64) {
	p.name(name)
	p.line = strconv.AppendInt(p.line, n, 10)
}

// fraction appends a numerator of 2^64 as text, because JSON parsers may not represent it exactly.
func (p *printer) fraction(name string, n uint64) {
	p.text(name, strconv.AppendUint(nil, n, 10))
}

// time appends a time in Unix ms: as a number in JSON, as text otherwise.
func (p *printer) time(name string, ms int64) {
	if p.json {
		p.number(name, ms)
		return
	}
	p.name(name)
	p.line = append(p.line, timeText(ms)...)
}

func (p *printer) text(name string, b []byte) {
	switch {
	case !p.json:
		p.name(name)
		if plain(b) {
			p.line = append(p.line, b...)
		} else {
			p.line = strconv.AppendQuote(p.line, string(b))
		}
	case utf8.Valid(b):
		p.name(name)
		quoted, _ := json.Marshal(string(b)) // never fails for a string
		p.line = append(p.line, quoted...)
	default:
		p.name(name + "_base64")
		quoted, _ := json.Marshal(b)
		p.line = append(p.line, quoted...)
	}
}

// plain reports whether text needs no quotes.
func plain(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '=' {
			return false
		}
	}
	return len(b) > 0
}
