package command

import (
	"slices"
	"strconv"
	"strings"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/glob"
	"rlserver/resp/wire"
)

// ScanOptions holds the options of SCAN, HSCAN and ZSCAN.
type ScanOptions struct {
	Pattern  glob.Pattern
	Count    int
	typeName []byte // nil: any
	noValues bool   // of HSCAN
}

// DefaultScanCount is the approximate number of elements that are visited without COUNT.
const DefaultScanCount = 10

// ScanOptions takes [MATCH pattern] [COUNT count], an option typeWord for the name of a type unless
// that is empty, and NOVALUES for a hash.
func (a *Args) ScanOptions(typeWord string, hash bool) ScanOptions {
	o := ScanOptions{Pattern: glob.New([]byte("*"), false), Count: DefaultScanCount}
	for a.More() {
		switch {
		case a.Word("MATCH"):
			o.Pattern.Text = a.Next()
		case a.Word("COUNT"):
			if o.Count = int(a.Integer()); o.Count < 1 {
				a.Fail(engine.ErrSyntax)
			}
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

// Match reports whether a name matches. A star alone matches the empty name too.
func (o *ScanOptions) Match(name []byte) bool {
	return string(o.Pattern.Text) == "*" || o.Pattern.Match(name)
}

// Err returns an error if the call should stop: its pattern takes too long to match, or its client
// has gone.
func (o *ScanOptions) Err(c *Call) error {
	if err := o.Pattern.Err(); err != nil {
		return err
	}
	return c.Unwanted()
}

// maxScanCount is the maximum number of elements of a key that one call visits, as it holds the
// lock of the key.
const maxScanCount = 4096

// Element is a field with its value, or a member with its score.
type Element struct {
	Name, Value string
	Score       float64
}

// Scan visits about count elements of a key from a cursor on. It returns the next cursor, 0 at the
// end, or an error if it would visit too many elements.
type Scan func(cursor uint64, count int, visit func(Element)) (next uint64, err error)

// ScanElements handles HSCAN, SSCAN and ZSCAN, the first with hash set. open returns how many
// elements the key has, and what visits them. write writes what follows the name of an element;
// nil: nothing. As in Redis, the options are not checked for a missing key. The reply is written
// after the lock of the key is released.
func (c *Call) ScanElements(
	hash bool, open func(engine.Key) (n int, scan Scan, err error), write func(*wire.Reply, Element),
) error {
	k, cursor := c.Args.Key(), c.Args.Cursor()
	if c.Args.Err != nil {
		return c.Args.Err
	}
	n, scan, err := open(k)
	if err != nil {
		return err
	}
	if n == 0 {
		WriteScanHeader(&c.Reply, c.Reply.BeginArray(), 0, 0)
		return nil
	}
	o := c.Args.ScanOptions("", hash)
	if err := c.Args.End(); err != nil {
		return err
	}

	var found []Element
	next, err := scan(cursor, min(o.Count, maxScanCount), func(e Element) { found = append(found, e) })
	if err != nil {
		return err
	}
	if o.noValues {
		write = nil
	}
	c.Postpone(func(c *Call) error { return c.writeScan(&o, next, found, write) })
	return nil
}

// writeScan replies with the elements that match.
func (c *Call) writeScan(o *ScanOptions, next uint64, found []Element, write func(*wire.Reply, Element)) error {
	mark, n := c.Reply.BeginArray(), 0
	for _, e := range found {
		if !o.Match([]byte(e.Name)) {
			continue
		}
		c.Reply.BulkString(e.Name)
		n++
		if write != nil {
			write(&c.Reply, e)
			n++
		}
	}
	if err := o.Err(c); err != nil {
		return err
	}
	WriteScanHeader(&c.Reply, mark, next, n)
	return nil
}

// Length handles the commands that reply with how many elements a key has.
func Length[V interface{ Len() int }](view func(*engine.Tx, engine.Key) (V, error)) func(*Call) error {
	return func(c *Call) error {
		v, err := view(c.Tx, c.Args.Key())
		return c.ReplyCount(v.Len(), err)
	}
}

// Is reports whether a type matches. An unknown type name matches none.
func (o *ScanOptions) Is(t object.Type) bool {
	return o.typeName == nil || strings.EqualFold(string(o.typeName), t.String())
}

// Cursor takes a cursor as C's strtoul, which Redis uses, parses it: an empty one is 0, and a sign
// is allowed.
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

// WriteScanHeader inserts the next cursor and the header of an array before n elements that were
// written since mark, which Reply.Later returned.
func WriteScanHeader(r *wire.Reply, mark int, next uint64, n int) {
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
