package str

import (
	"math"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("string",
		&command.Command{Name: "lcs", Arity: -3, Flags: command.Readonly,
			Keys: []command.KeySpec{{Access: "RO access", Begin: 1, Last: 1, Step: 1}}, Run: lcs},
	)
}

const (
	errLCSTypes   = engine.Error("ERR The specified keys must contain string values")
	errLCSOptions = engine.Error("ERR If you want both the length and indexes, please just use IDX.")
	ErrLCSTooLong = engine.Error("ERR String too long for LCS")
	ErrLCSBound   = engine.Error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	ErrLCSMemory  = engine.Error("ERR Insufficient memory, failed allocating transient memory for LCS")
)

// lcsRequest holds the arguments of LCS.
type lcsRequest struct {
	length, indexes bool
	withLength      bool
	shortest        int64 // the shortest match in the reply, in bytes
}

func lcs(c *command.Call) error {
	a, _, errA := c.Tx.Share(c.Args.Key())
	b, _, errB := c.Tx.Share(c.Args.Key())
	if errA != nil || errB != nil {
		return errLCSTypes
	}
	want := parseLcsOptions(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}
	if want.length && want.indexes {
		return errLCSOptions
	}
	if err := LCSFits(int64(len(a)), int64(len(b)), c.Env.Settings.Limits.MaxBulk.Load()); err != nil {
		return err
	}
	c.Postpone(func(c *command.Call) error {
		t, ok := FillLCS(a, b, !want.length, c.Conn.Gone)
		if !ok {
			return command.ErrGone
		}
		writeLcs(&c.Reply, t, want)
		return nil
	})
	return nil
}

func parseLcsOptions(a *command.Args) (want lcsRequest) {
	for a.More() {
		switch {
		case a.Word("IDX"):
			want.indexes = true
		case a.Word("LEN"):
			want.length = true
		case a.Word("WITHMATCHLEN"):
			want.withLength = true
		case a.Left() > 1 && a.Word("MINMATCHLEN"):
			want.shortest = a.Integer()
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	return want
}

// maxCells is the maximum number of pairs of bytes that are compared, whatever the limit on bulk
// strings. One bit of each pair is kept.
const maxCells = 1 << 32

// LCSFits returns an error if two strings of these lengths, in bytes, are too long. The limits are
// those of Redis, which keeps 4 bytes for each pair.
func LCSFits(a, b, maxBulk int64) error {
	switch cells := uint64(a+1) * uint64(b+1); {
	case a >= math.MaxUint32-1 || b >= math.MaxUint32-1:
		return ErrLCSTooLong
	case cells > uint64(maxBulk)/4:
		return ErrLCSBound
	case cells > maxCells:
		return ErrLCSMemory
	}
	return nil
}

// lcsTable holds the longest common subsequences of the prefixes of two strings. Of their lengths
// only the last row is kept, along the shorter string. One bit for each pair of bytes is kept for
// the way back from the end: if the bytes differ, it says whether to skip the byte of a or that of
// b.
type lcsTable struct {
	a, b   []byte
	length uint32
	moves  []uint64 // bit outer * len(inner) + inner
	inner  int
	byA    bool // a is the outer string
}

// FillLCS fills the table, and its moves if wanted. It calls stop now and then, ends if that
// returns true, and reports whether it has finished.
func FillLCS(a, b []byte, moves bool, stop func() bool) (t lcsTable, ok bool) {
	const stretch = 1 << 22 // pairs between two calls of stop: about 10 ms
	t = lcsTable{a: a, b: b, byA: len(b) <= len(a)}
	outer, inner := b, a
	if t.byA {
		outer, inner = a, b
	}
	t.inner = len(inner)
	if moves {
		t.moves = make([]uint64, len(outer)*len(inner)/64+1)
	}
	row := make([]uint32, len(inner))
	done := 0
	for o, c := range outer {
		t.length = t.fillRow(row, inner, c, o)
		if done += len(inner); done >= stretch {
			if done = 0; stop() {
				return t, false
			}
		}
	}
	return t, true
}

// fillRow updates the row of lengths for the next byte c of the outer string, and returns the last
// length.
func (t *lcsTable) fillRow(row []uint32, inner []byte, c byte, outer int) (last uint32) {
	var diagonal uint32
	var word uint64 // of the moves
	at := outer * len(inner)
	for i, above := range row {
		next := max(last, above)
		if inner[i] == c {
			next = diagonal + 1
		}
		place := at + i
		if above != last && above > last == t.byA {
			word |= 1 << (place & 63)
		}
		row[i], diagonal, last = next, above, next
		if place&63 == 63 {
			t.keep(place, word)
			word = 0
		}
	}
	t.keep(at+len(row)-1, word)
	return last
}

// keep sets bits of the moves, in the word of a position.
func (t *lcsTable) keep(place int, word uint64) {
	if t.moves != nil && word != 0 {
		t.moves[place>>6] |= word
	}
}

// leavesA reports whether the way back from a pair of different bytes skips that of a.
func (t *lcsTable) leavesA(i, j int) bool {
	at := j*t.inner + i
	if t.byA {
		at = i*t.inner + j
	}
	return t.moves[at>>6]>>(at&63)&1 != 0
}

// match is a common substring of two strings: the first and the last position in each.
type match struct{ aFrom, aTo, bFrom, bTo int }

// matches goes back through the table, as Redis does, and calls found with each common substring,
// the last first.
func (t *lcsTable) matches(found func(match)) {
	var m match
	open := false
	for i, j := len(t.a), len(t.b); i > 0 && j > 0; {
		switch {
		case t.a[i-1] != t.b[j-1]:
			if open {
				found(m)
				open = false
			}
			if t.leavesA(i-1, j-1) {
				i--
			} else {
				j--
			}
			continue
		case open && m.aFrom == i && m.bFrom == j:
			m.aFrom, m.bFrom = i-1, j-1
		default:
			m, open = match{i - 1, i - 1, j - 1, j - 1}, true
		}
		i, j = i-1, j-1
	}
	if open {
		found(m)
	}
}

// writeLcs replies with the parts of a table that the request wants.
func writeLcs(r *wire.Reply, t lcsTable, want lcsRequest) {
	switch {
	case want.indexes:
		writeLcsIndexes(r, t, want)
	case want.length:
		r.Integer(int64(t.length))
	default:
		common := make([]byte, t.length)
		end := len(common)
		t.matches(func(m match) { end -= copy(common[end-(m.aTo+1-m.aFrom):end], t.a[m.aFrom:m.aTo+1]) })
		r.Bulk(common)
	}
}

func writeLcsIndexes(r *wire.Reply, t lcsTable, want lcsRequest) {
	r.Mapping(2)
	r.BulkString("matches")
	mark, n := r.BeginArray(), 0
	t.matches(func(m match) {
		length := m.aTo - m.aFrom + 1
		if int64(length) < want.shortest {
			return
		}
		n++
		if want.withLength {
			r.Array(3)
		} else {
			r.Array(2)
		}
		for _, place := range [][2]int{{m.aFrom, m.aTo}, {m.bFrom, m.bTo}} {
			r.Array(2)
			r.Count(place[0])
			r.Count(place[1])
		}
		if want.withLength {
			r.Count(length)
		}
	})
	r.EndArray(mark, n)
	r.BulkString("len")
	r.Integer(int64(t.length))
}
