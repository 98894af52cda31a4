package rdb

import (
	"hash/maphash"
	"sync"
)

// source is a string of a payload that is read from its beginning: as it is, or inflated piece by
// piece, so that the inflated string need not be held.
type source struct {
	plain []byte    // what is left
	lzf   *inflater // instead of plain; nil: it is not deflated
	own   *inflater // lzf of all strings, until free
	small [20]byte  // holds plain if the string is a number
}

// inflate begins to read a string of size bytes from its deflated form.
func (s *source) inflate(b []byte, size int) {
	if s.own == nil {
		s.own = inflaters.Get().(*inflater)
	}
	s.lzf = s.own
	s.lzf.rest, s.lzf.missing, s.lzf.read, s.lzf.made = b, size, 0, 0
}

// free is called when no more strings are read.
func (s *source) free() {
	if s.own != nil {
		s.own.rest = nil
		inflaters.Put(s.own)
		s.own, s.lzf = nil, nil
	}
}

func (s *source) left() int {
	if s.lzf != nil {
		return s.lzf.left()
	}
	return len(s.plain)
}

// next returns the next n bytes, or nil if there are fewer. If they are inflated, n is at most
// maxPiece, and a later call may overwrite them.
func (s *source) next(n int) []byte {
	if s.lzf != nil {
		return s.lzf.next(n)
	}
	if n < 0 || n > len(s.plain) {
		return nil
	}
	taken := s.plain[:n:n]
	s.plain = s.plain[n:]
	return taken
}

// pass reads n bytes, and reports whether there are as many. It writes them to sum, if it is given.
func (s *source) pass(n int, sum *maphash.Hash) bool {
	for s.lzf != nil && n > maxPiece {
		piece := s.next(maxPiece)
		if piece == nil {
			return false
		}
		if n -= maxPiece; sum != nil {
			sum.Write(piece)
		}
	}
	last := s.next(n)
	if sum != nil {
		sum.Write(last)
	}
	return last != nil
}

// close reports whether the whole string could be inflated, and was read.
func (s *source) close() bool {
	whole := s.left() == 0
	if s.lzf != nil {
		whole = whole && len(s.lzf.rest) == 0
		s.lzf = nil
	}
	return whole
}

const (
	lzfWindow = 1 << 13 // how far back LZF refers
	maxPiece  = 1 << 10 // bytes that an inflater returns at once
)

// inflater decompresses LZF step by step, see inflate.
type inflater struct {
	rest    []byte // what is left to inflate
	missing int    // how many bytes it must make
	// the last bytes that were made, from made-lzfWindow on; those from read on are left
	buffer     [2*lzfWindow + 2*maxPiece]byte
	read, made int
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

func (f *inflater) left() int { return f.missing + f.made - f.read }

func (f *inflater) next(n int) []byte {
	if n < 0 || n > maxPiece || n > f.left() {
		return nil
	}
	for f.made-f.read < n {
		if !f.step() {
			return nil
		}
	}
	f.read += n
	return f.buffer[f.read-n : f.read]
}

// step inflates the next part, and reports whether it is correct.
func (f *inflater) step() bool {
	if f.made > len(f.buffer)-maxPart {
		from := min(f.read, f.made-lzfWindow)
		f.made, f.read = copy(f.buffer[:], f.buffer[from:f.made]), f.read-from
	}
	made, rest := inflatePart(f.buffer[:f.made], f.rest, f.missing)
	if len(made) == f.made {
		return false
	}
	f.missing -= len(made) - f.made
	f.made, f.rest = len(made), rest
	return true
}

// names finds names that occur twice, in memory that depends on the size of the payload and not on
// what it claims or inflates to: it holds the hashes of one class of names, and another round takes
// the next class if there are more names than it has room for.
type names struct {
	seed           maphash.Seed
	table          []uint64 // hashes, placed by their upper half; 0: free
	used           int
	class, classes uint64
	full, twice    bool
}

// start forgets all names, and keeps those of a class from now on.
func (n *names) start(class, classes uint64) {
	clear(n.table)
	n.used, n.class, n.classes, n.full, n.twice = 0, class, classes, false, false
}

func (n *names) add(hash uint64) {
	if hash&(n.classes-1) != n.class || n.full || n.twice {
		return
	}
	hash = max(hash, 1)
	for i := int(hash >> 32 * uint64(len(n.table)) >> 32); ; i++ {
		if i == len(n.table) {
			i = 0
		}
		switch n.table[i] {
		case hash:
			n.twice = true
			return
		case 0:
			n.table[i] = hash
			n.used++
			n.full = n.used*5 > len(n.table)*4
			return
		}
	}
}
