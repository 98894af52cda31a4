package command

import (
	"rlserver/engine"
	"rlserver/resp/glob"
	"rlserver/resp/wire"
	"slices"
	"strconv"
	"strings"
)

// ScanOptions are those of SCAN, HSCAN and ZSCAN.
type ScanOptions struct {
	Pattern  glob.Pattern
	Count    int
	typeName []byte // nil: any
	noValues bool   // of HSCAN
}

// defaultScanCount is how many elements are looked at without COUNT, more or less.
const defaultScanCount = 10

// ScanOptions takes [MATCH pattern] [COUNT count], and an option for the name of a type if there is a word for it. A hash has NOVALUES too.
func (a *Args) ScanOptions(typeWord string, hash bool) ScanOptions {
	o := ScanOptions{Pattern: glob.New([]byte("*"), false), Count: defaultScanCount}
	for a.More() {
		switch {
		case a.Word("MATCH"):
			o.Pattern.Text = a.Next()
		case a.Word("COUNT"):
			n := a.Integer()
			if n < 1 {
				a.Fail(engine.ErrSyntax)
			}
			o.Count = int(n)
		case typeWord != "" && a.Word(typeWord):
			o.typeName = a.Next()
		case hash && a.Word("NOVALUES"):
			o.noValues = true
		case !hash && a.Word("NOVALUES"):
			a.Fail(errNoValues)
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	return o
}

// Match tells whether a name is asked for. A star alone is no pattern: it takes the empty name in too.
func (o *ScanOptions) Match(name []byte) bool {
	return string(o.Pattern.Text) == "*" || o.Pattern.Match(name)
}

// Err tells why the call should go no further: its pattern takes too long to match, or nobody waits for the reply.
func (o *ScanOptions) Err(c *Call) error {
	if err := o.Pattern.Err(); err != nil {
		return err
	}
	return c.Unwanted()
}

// MostScanned is how many elements of a hash or a sorted set one call visits, whatever COUNT says: they are visited under the lock of their key.
const MostScanned = 4096

// Element is what HSCAN and ZSCAN visit: a field and its value, or a member and its score.
type Element struct {
	Name, Value string
	Score       float64
}

// Elements answers HSCAN and ZSCAN with those elements that match, when the lock of their key is let go.
func (c *Call) Elements(o ScanOptions, next uint64, found []Element, tell func(*wire.Reply, Element)) error {
	c.Postpone(func(c *Call) error {
		mark, n := c.Reply.BeginArray(), 0
		for _, e := range found {
			if o.Match([]byte(e.Name)) {
				c.Reply.BulkString(e.Name)
				n++
				if !o.noValues {
					tell(&c.Reply, e)
					n++
				}
			}
		}
		if err := o.Err(c); err != nil {
			return err
		}
		WriteCloseScan(&c.Reply, mark, next, n)
		return nil
	})
	return nil
}

// Is tells whether a type is asked for. A name that no type has finds nothing.
func (o *ScanOptions) Is(t engine.Type) bool {
	return o.typeName == nil || strings.EqualFold(string(o.typeName), t.String())
}

// Cursor takes a cursor as C's strtoul reads it, which Redis has do it: nothing at all is 0, and a sign is allowed.
func (a *Args) Cursor() uint64 {
	b := a.Next()
	if a.Err != nil || len(b) == 0 {
		return 0
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		a.Fail(errInvalidCursor)
	}
	if negative {
		n = -n
	}
	return n
}

// WriteCloseScan puts in front of the n elements that were written since later gave its mark what SCAN and its like answer:
// where to go on from, and that there are n.
func WriteCloseScan(r *wire.Reply, mark int, next uint64, n int) {
	var digits [20]byte
	cursor := strconv.AppendUint(digits[:0], next, 10)
	var buf [64]byte
	head := wire.AppendHeader(buf[:0], '*', 2)
	head = wire.AppendHeader(head, '$', int64(len(cursor)))
	head = append(head, cursor...)
	head = append(head, '\r', '\n')
	head = wire.AppendHeader(head, '*', int64(n))
	r.B = slices.Insert(r.B, mark, head...)
}

const (
	errInvalidCursor = engine.Error("ERR invalid cursor")
	errNoValues      = engine.Error("ERR NOVALUES option can only be used in HSCAN")
)
