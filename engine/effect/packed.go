package effect

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"rlserver/engine/limit"
)

// pack appends the effect of a decision in the packed form: the kind and the key as Append writes
// them, and four numbers without a branch for each byte, which takes half the time of varints.
//
//	| sizes: 4 bits for each number | numbers, little-endian |
//	| 2 bytes                       | 0 to 8 bytes each      |
//
// The sizes begin with the lowest bits. The numbers of a Bucket are Missing, Since, Fraction and
// ExpireAt; of a Window Start, Length, Used and ExpireAt; of an AddHits At, Seq, N and ExpireAt,
// and Lo follows as a varint. ExpireAt is less Since, Start or At. Signed ones are as in varints.
func (f *Effect) pack(dst []byte) []byte {
	dst = append(dst, byte(f.Kind)|packed)
	dst = binary.AppendUvarint(dst, uint64(f.DB))
	dst = appendBytes(dst, f.Key.Name)
	switch f.Kind {
	case Bucket:
		t := &f.Tokens
		return appendFour(dst, zigzag(t.Missing), zigzag(t.Since), t.Fraction, zigzag(f.ExpireAt-t.Since))
	case Window:
		c := &f.Count
		return appendFour(dst, zigzag(c.Start), zigzag(c.Length), zigzag(c.Used), zigzag(f.ExpireAt-c.Start))
	}
	h := &f.Hits
	dst = appendFour(dst, zigzag(h.At), h.Seq, zigzag(h.N), zigzag(f.ExpireAt-h.At))
	return binary.AppendVarint(dst, int64(f.Lo))
}

// unpack reads what follows the key in the packed form.
func (r *Reader) unpack(f *Effect) {
	a, b, c, d := r.four()
	first := unzigzag(a)
	switch f.Kind {
	case Bucket:
		f.Tokens = limit.Tokens{Missing: first, Since: unzigzag(b), Fraction: c}
		f.ExpireAt = f.Tokens.Since + unzigzag(d)
	case Window:
		f.Count = limit.Count{Start: first, Length: unzigzag(b), Used: unzigzag(c)}
		f.ExpireAt = first + unzigzag(d)
	default:
		f.Hits = Hits{At: first, Seq: b, N: unzigzag(c)}
		f.ExpireAt, f.Lo = first+unzigzag(d), int(r.Varint())
	}
}

func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// fourSize is how many bytes four numbers take at most.
const fourSize = 2 + 4*8

func appendFour(dst []byte, a, b, c, d uint64) []byte {
	dst = slices.Grow(dst, fourSize)
	p := dst[len(dst) : len(dst)+fourSize]
	i, j, k, l := size(a), size(b), size(c), size(d)
	binary.LittleEndian.PutUint16(p, uint16(i|j<<4|k<<8|l<<12))
	binary.LittleEndian.PutUint64(p[2:], a)
	binary.LittleEndian.PutUint64(p[2+i:], b)
	binary.LittleEndian.PutUint64(p[2+i+j:], c)
	binary.LittleEndian.PutUint64(p[2+i+j+k:], d)
	return dst[:len(dst)+2+int(i+j+k+l)]
}

// size returns how many bytes a number takes.
func size(n uint64) uint { return uint(bits.Len64(n)+7) / 8 }

// four reads the numbers that appendFour has written.
func (r *Reader) four() (a, b, c, d uint64) {
	sizes := binary.LittleEndian.Uint16(r.take(2))
	return r.number(sizes), r.number(sizes >> 4), r.number(sizes >> 8), r.number(sizes >> 12)
}

var errWide = errors.New("a number has more than 8 bytes")

// number reads a number of as many bytes as the low 4 bits of size say.
func (r *Reader) number(size uint16) uint64 {
	n := int(size & 15)
	if n > 8 {
		r.Fail(errWide)
		n = 0
	}
	var full [8]byte
	copy(full[:], r.take(n))
	return binary.LittleEndian.Uint64(full[:])
}
