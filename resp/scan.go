package resp

import (
	"rlserver/engine"
	"slices"
	"strconv"
	"strings"
)

// scanOptions are those of SCAN, HSCAN and ZSCAN.
type scanOptions struct {
	pattern  glob
	count    int
	typeName []byte // nil: any
	noValues bool   // of HSCAN
}

// defaultScanCount is how many elements are looked at without COUNT, more or less.
const defaultScanCount = 10

// scanOptions takes [MATCH pattern] [COUNT count], and an option for the name of a type if there is a word for it. A hash has NOVALUES too.
func (a *args) scanOptions(typeWord string, hash bool) scanOptions {
	o := scanOptions{pattern: newGlob([]byte("*"), false), count: defaultScanCount}
	for a.more() {
		switch {
		case a.word("MATCH"):
			o.pattern.pattern = a.next()
		case a.word("COUNT"):
			n := a.integer()
			if n < 1 {
				a.fail(engine.ErrSyntax)
			}
			o.count = int(n)
		case typeWord != "" && a.word(typeWord):
			o.typeName = a.next()
		case hash && a.word("NOVALUES"):
			o.noValues = true
		case !hash && a.word("NOVALUES"):
			a.fail(errNoValues)
		default:
			a.fail(engine.ErrSyntax)
		}
	}
	return o
}

// match tells whether a name is asked for. A star alone is no pattern: it takes the empty name in too.
func (o *scanOptions) match(name []byte) bool {
	return string(o.pattern.pattern) == "*" || o.pattern.match(name)
}

// err tells why the call should go no further: its pattern takes too long to match, or nobody waits for the reply.
func (o *scanOptions) err(c *call) error {
	if err := o.pattern.err(); err != nil {
		return err
	}
	return c.unwanted()
}

// mostScanned is how many elements of a hash or a sorted set one call visits, whatever COUNT says: they are visited under the lock of their key.
const mostScanned = 4096

// element is what HSCAN and ZSCAN visit: a field and its value, or a member and its score.
type element struct {
	name, value string
	score       float64
}

// elements answers HSCAN and ZSCAN with those elements that match, when the lock of their key is let go.
func (c *call) elements(o scanOptions, next uint64, found []element, tell func(*reply, element)) error {
	c.postpone(func(c *call) error {
		mark, n := c.reply.later(), 0
		for _, e := range found {
			if o.match([]byte(e.name)) {
				c.reply.bulkString(e.name)
				n++
				if !o.noValues {
					tell(&c.reply, e)
					n++
				}
			}
		}
		if err := o.err(c); err != nil {
			return err
		}
		c.reply.closeScan(mark, next, n)
		return nil
	})
	return nil
}

// is tells whether a type is asked for. A name that no type has finds nothing.
func (o *scanOptions) is(t engine.Type) bool {
	return o.typeName == nil || strings.EqualFold(string(o.typeName), t.String())
}

// cursor takes a cursor as C's strtoul reads it, which Redis has do it: nothing at all is 0, and a sign is allowed.
func (a *args) cursor() uint64 {
	b := a.next()
	if a.err != nil || len(b) == 0 {
		return 0
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		a.fail(errInvalidCursor)
	}
	if negative {
		n = -n
	}
	return n
}

// closeScan puts in front of the n elements that were written since later gave its mark what SCAN and its like answer:
// where to go on from, and that there are n.
func (r *reply) closeScan(mark int, next uint64, n int) {
	var digits [20]byte
	cursor := strconv.AppendUint(digits[:0], next, 10)
	var buf [64]byte
	head := appendHeader(buf[:0], '*', 2)
	head = appendHeader(head, '$', int64(len(cursor)))
	head = append(head, cursor...)
	head = append(head, '\r', '\n')
	head = appendHeader(head, '*', int64(n))
	r.b = slices.Insert(r.b, mark, head...)
}

const (
	errInvalidCursor = engine.Error("ERR invalid cursor")
	errNoValues      = engine.Error("ERR NOVALUES option can only be used in HSCAN")
)
