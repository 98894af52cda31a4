package hitlog

import (
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// MaxSeq is the greatest number of a hit within its millisecond.
const MaxSeq = 1<<53 - 1

// maxDigits is how many decimal digits MaxSeq has.
const maxDigits = 16

// powers are the powers of ten.
var powers = func() (p [maxDigits + 1]uint64) {
	p[0] = 1
	for i := 1; i <= maxDigits; i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// digits returns how many decimal digits a number has.
func digits(x uint64) int {
	n := max(1, bits.Len64(x)*1233>>12)
	if n <= maxDigits && x >= powers[n] {
		n++
	}
	return n
}

// least returns the least number of so many digits.
func least(digits int) uint64 {
	if digits == 1 {
		return 0
	}
	return powers[digits-1]
}

// cut is a position in the byte order of decimal texts: before it are, of the numbers of n digits,
// those less than its n-th number. Numbers of equally many digits are in numeric order.
type cut [maxDigits + 1]uint64

// every is after all numbers; the zero cut is before them.
var every = cut(powers)

// below returns the cut after the numbers whose text is less than some text.
func below(text []byte) (c cut) {
	prefix, n := uint64(0), 0 // the digits that the text begins with
	for n < min(len(text), maxDigits) && text[n]-'0' <= 9 {
		c[n] = prefix + 1 // a number of fewer digits is less if it is not greater than they are
		prefix = prefix*10 + uint64(text[n]-'0')
		n++
	}
	if n < len(text) {
		if n > 0 {
			c[n] = prefix + 1
		}
		if text[n] > '9' {
			prefix++
		}
		n++
		prefix *= 10
	}
	for ; n <= maxDigits; n++ {
		c[n] = prefix
		prefix *= 10
	}
	for n := 1; n <= maxDigits; n++ {
		c[n] = min(max(c[n], least(n)), powers[n])
	}
	return c
}

// before returns the cut before a number, and through the one after it.
func before(x uint64) cut {
	var buf [maxDigits + 1]byte
	return below(strconv.AppendUint(buf[:0], x, 10))
}

func through(x uint64) cut {
	var buf [maxDigits + 2]byte
	return below(append(strconv.AppendUint(buf[:0], x, 10), 0))
}

// has reports whether a number is before the cut.
func (c *cut) has(x uint64) bool { return x < c[digits(x)] }

// span is the numbers from lo up to but not including hi; there is at least one.
type span struct{ lo, hi uint64 }

// spans are ascending, and numbers lie between any two.
type spans []span

// count returns how many numbers there are.
func (s spans) count() (n uint64) {
	for _, x := range s {
		n += x.hi - x.lo
	}
	return n
}

// has reports whether a number is in the spans.
func (s spans) has(x uint64) bool {
	i, _ := slices.BinarySearchFunc(s, x, func(s span, x uint64) int {
		if s.hi <= x {
			return -1
		}
		return 1
	})
	return i < len(s) && s[i].lo <= x
}

// before returns how many numbers are before a cut.
func (s spans) before(c *cut) (n uint64) {
	for _, x := range s {
		for d := digits(x.lo); d <= maxDigits && least(d) < x.hi; d++ {
			if lo, hi := max(x.lo, least(d)), min(x.hi, c[d]); lo < hi {
				n += hi - lo
			}
		}
	}
	return n
}

// with appends a span that begins at the end of the last or later.
func (s spans) with(lo, hi uint64) spans {
	switch {
	case lo >= hi:
		return s
	case len(s) > 0 && s[len(s)-1].hi == lo:
		s[len(s)-1].hi = hi
		return s
	}
	return append(s, span{lo, hi})
}

// without returns the numbers before the first cut and after the second, which is not before it.
func (s spans) without(from, to *cut) (rest spans) {
	for _, x := range s {
		for d := digits(x.lo); d <= maxDigits && least(d) < x.hi; d++ {
			lo, hi := max(x.lo, least(d)), min(x.hi, powers[d])
			rest = rest.with(lo, min(hi, max(lo, from[d])))
			rest = rest.with(max(lo, min(hi, to[d])), hi)
		}
	}
	return rest
}

// union returns the numbers of both.
func (s spans) union(other spans) (all spans) {
	for len(s) > 0 || len(other) > 0 {
		if len(s) == 0 || len(other) > 0 && other[0].lo < s[0].lo {
			s, other = other, s
		}
		if n := len(all); n > 0 && s[0].lo <= all[n-1].hi {
			all[n-1].hi = max(all[n-1].hi, s[0].hi)
		} else {
			all = append(all, s[0])
		}
		s = s[1:]
	}
	return all
}

// under returns how many of the numbers begin with the digits of prefix, how many lengths they
// have, and the range of all numbers of the last of these lengths that begin so.
func (s spans) under(prefix uint64) (n uint64, lengths int, lo, hi uint64) {
	if prefix == 0 {
		if s.has(0) {
			return 1, 1, 0, 1
		}
		return 0, 0, 0, 0
	}
	end := s[len(s)-1].hi
	for from, to := prefix, prefix+1; from < end; from, to = from*10, to*10 {
		before := n
		for _, x := range s {
			if a, b := max(from, x.lo), min(to, x.hi); a < b {
				n += b - a
			}
		}
		if n > before {
			lengths++
			lo, hi = from, to
		}
	}
	return n, lengths, lo, hi
}

// first returns the first number in byte order: it is the least of some length.
func (s spans) first() (x uint64) {
	if x = s[0].lo; x == 0 {
		return 0
	}
	for d := digits(x) + 1; d <= maxDigits && least(d) < s[len(s)-1].hi; d++ {
		i := sort.Search(len(s), func(i int) bool { return s[i].hi > least(d) })
		if y := max(s[i].lo, least(d)); leads(y, x) {
			x = y
		}
	}
	return x
}

// leads reports whether the text of a number is less than that of one with fewer digits.
func leads(x, shorter uint64) bool { return x < shorter*powers[digits(x)-digits(shorter)] }

// nth returns the number of an index, below count, in byte order.
func (s spans) nth(i uint64) (x uint64) {
	if len(s) == 1 && digits(s[0].lo) == digits(s[0].hi-1) {
		return s[0].lo + i
	}
	s.ascend(i, func(found uint64) bool {
		x = found
		return false
	})
	return x
}

// ascend yields the numbers from an index on in byte order. It returns false if yield has.
func (s spans) ascend(skip uint64, yield func(uint64) bool) bool {
	w := walk{s, skip, yield}
	for digit := range uint64(10) {
		if !w.ascend(digit) {
			return false
		}
	}
	return true
}

// descend yields the numbers in the opposite order, without the last skip.
func (s spans) descend(skip uint64, yield func(uint64) bool) bool {
	w := walk{s, skip, yield}
	for digit := range uint64(10) {
		if !w.descend(9 - digit) {
			return false
		}
	}
	return true
}

// walk is a walk through numbers as if they were the nodes of a tree, whose children have one digit
// more.
type walk struct {
	spans
	skip  uint64
	yield func(uint64) bool
}

func (w *walk) ascend(prefix uint64) bool {
	n, lengths, lo, hi := w.under(prefix)
	switch {
	case w.skip >= n:
		w.skip -= n
		return true
	case lengths == 1:
		return w.ascendRange(lo, hi)
	}
	if w.has(prefix) && !w.visit(prefix) {
		return false
	}
	for digit := range uint64(10) {
		if !w.ascend(prefix*10 + digit) {
			return false
		}
	}
	return true
}

func (w *walk) descend(prefix uint64) bool {
	n, lengths, lo, hi := w.under(prefix)
	switch {
	case w.skip >= n:
		w.skip -= n
		return true
	case lengths == 1:
		return w.descendRange(lo, hi)
	}
	for digit := range uint64(10) {
		if !w.descend(prefix*10 + 9 - digit) {
			return false
		}
	}
	return !w.has(prefix) || w.visit(prefix)
}

func (w *walk) visit(x uint64) bool {
	if w.skip > 0 {
		w.skip--
		return true
	}
	return w.yield(x)
}

// ascendRange visits numbers of one length.
func (w *walk) ascendRange(lo, hi uint64) bool {
	for _, s := range w.spans {
		from, to := max(lo, s.lo), min(hi, s.hi)
		if from >= to {
			continue
		}
		skipped := min(w.skip, to-from)
		w.skip -= skipped
		for x := from + skipped; x < to; x++ {
			if !w.yield(x) {
				return false
			}
		}
	}
	return true
}

func (w *walk) descendRange(lo, hi uint64) bool {
	for _, s := range slices.Backward(w.spans) {
		from, to := max(lo, s.lo), min(hi, s.hi)
		if from >= to {
			continue
		}
		skipped := min(w.skip, to-from)
		w.skip -= skipped
		for x := to - skipped; x > from; x-- {
			if !w.yield(x - 1) {
				return false
			}
		}
	}
	return true
}

// middle returns a cut with about half of two or more spans on either side.
func (s spans) middle() cut {
	starts := make([]string, len(s))
	for i, x := range s {
		starts[i] = strconv.FormatUint(x.lo, 10)
	}
	slices.SortFunc(starts, strings.Compare)
	return below([]byte(starts[len(starts)/2]))
}
