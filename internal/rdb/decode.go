package rdb

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"strconv"
	"unsafe"
)

// The first bytes of lengths and strings other than short lengths.
const (
	length32     = 0x80
	length64     = 0x81
	encodedInt8  = 0xc0
	encodedInt16 = 0xc1
	encodedInt32 = 0xc2
	encodedLZF   = 0xc3
)

// placeSize is how many bytes Check counts for an element of a list of elements or members.
const placeSize = 48

// maxScore is the length from which on Redis does not read a score that is text.
const maxScore = 128

// Payload is a payload that has been checked, and whose value can be made.
type Payload struct {
	Size     int64 // about how many bytes the value and the payload it refers to take
	Elements int   // fields, members or elements
	decoder  decoder
	bytes    []byte
}

// Check reads a payload without making its value, whose size must be at most limit bytes: first its
// form, then whether names occur twice. A payload that is refused has cost at most four times its
// size.
func Check(payload []byte, limit int64) (*Payload, error) {
	if len(payload) < footerSize {
		return nil, ErrChecksum
	}
	body := payload[:len(payload)-footerSize]
	if sum := payload[len(payload)-8:]; binary.LittleEndian.Uint64(sum) != checksum(payload[:len(payload)-8]) {
		return nil, ErrChecksum
	}
	if len(body) == 0 {
		return nil, ErrFormat
	}
	p := &Payload{bytes: payload, decoder: decoder{limit: limit, checking: true}}
	d := &p.decoder
	defer d.src.free()
	if v := d.run(payload); d.err == nil && v.Kind != List && d.count > 1 && d.repeats(payload) {
		d.fail(ErrFormat)
	}
	d.seen = nil
	p.Size, p.Elements = d.spent, d.count
	return p, d.err
}

// Value returns the value of a payload. Its texts may alias the payload.
func (p *Payload) Value() (Value, error) {
	d := &p.decoder
	defer d.src.free()
	d.checking = false
	v := d.run(p.bytes)
	v.Size = p.Size
	return v, d.err
}

// repeats reports whether a name occurs twice. It does not trust one hash for that.
func (d *decoder) repeats(payload []byte) bool {
	// the number of hashes depends on the payload's size: it may inflate to any number of names
	d.seen = &names{table: make([]uint64, min(d.count+d.count/4+1, 3*len(payload)/8))}
	for range 2 {
		d.seen.seed = maphash.MakeSeed()
		if !d.repeatsInAnyClass(payload) {
			return false
		}
	}
	return true
}

func (d *decoder) repeatsInAnyClass(payload []byte) bool {
	for class, classes := uint64(0), uint64(1); class < classes; {
		d.seen.start(class, classes)
		d.run(payload)
		switch {
		case d.seen.twice:
			return true
		case d.seen.full:
			classes *= 2
		default:
			class++
		}
	}
	return false
}

// run reads the value of a payload.
func (d *decoder) run(payload []byte) Value {
	body := payload[:len(payload)-footerSize]
	d.rest, d.spent, d.expected, d.count = body[1:], int64(len(body)), d.count, 0
	if d.spent > d.limit {
		d.fail(ErrTooLarge)
	}
	v := d.value(body[0])
	d.src.close()
	return v
}

// decoder is a cursor over a value. It keeps the first error.
type decoder struct {
	rest         []byte
	limit, spent int64 // bytes
	err          error
	checking     bool   // the value is not made
	seen         *names // nil: names are only counted
	// the number of names, now and at the end of the run before
	count, expected int
	src             source // the string that is being checked
	digits          [numberSize]byte
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.rest = nil
}

// spend counts memory before it is allocated, and fails if it is too much.
func (d *decoder) spend(n int64) bool {
	if d.spent += n; d.spent > d.limit {
		d.fail(ErrTooLarge)
	}
	return d.err == nil
}

// take returns the next n bytes, or fails.
func (d *decoder) take(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.rest)) {
		d.fail(ErrFormat)
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) length() uint64 {
	first := d.byte()
	switch {
	case first>>6 == 0:
		return uint64(first)
	case first>>6 == 1:
		return uint64(first&0x3f)<<8 | uint64(d.byte())
	case first == length32:
		if b := d.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b))
		}
	case first == length64:
		if b := d.take(8); b != nil {
			return binary.BigEndian.Uint64(b)
		}
	default:
		d.fail(ErrFormat)
	}
	return 0
}

// text reads a string. It returns nil if it fails, or if it only checks.
func (d *decoder) text() []byte {
	if !d.checking {
		return d.make()
	}
	if d.open(); !d.src.pass(d.src.left(), nil) || !d.src.close() {
		d.fail(ErrFormat)
	}
	return nil
}

// name reads a string that must not occur twice.
func (d *decoder) name() []byte {
	if !d.checking {
		d.count++
		return d.make()
	}
	d.open()
	if d.checkName(d.src.left()); !d.src.close() {
		d.fail(ErrFormat)
	}
	return nil
}

// checkName reads a name of n bytes from the string that is being checked.
func (d *decoder) checkName(n int) {
	if d.src.lzf != nil && n > maxPiece {
		d.checkLongName(n)
		return
	}
	name := d.src.next(n)
	if name == nil {
		d.fail(ErrFormat)
		return
	}
	d.addName(name)
}

// addName takes a name whose payload is being checked.
func (d *decoder) addName(name []byte) {
	if d.count++; d.seen != nil {
		d.seen.add(maphash.Bytes(d.seen.seed, name))
	}
}

func (d *decoder) checkLongName(n int) {
	var sum maphash.Hash
	if d.seen != nil {
		sum.SetSeed(d.seen.seed)
	}
	if d.count++; !d.src.pass(n, &sum) {
		d.fail(ErrFormat)
	} else if d.seen != nil {
		d.seen.add(sum.Sum64())
	}
}

// open begins to read a string piece by piece.
func (d *decoder) open() {
	d.src.lzf, d.src.plain = nil, nil
	switch kind := d.kind(); kind {
	case encodedInt8, encodedInt16, encodedInt32:
		d.src.plain = strconv.AppendInt(d.src.small[:0], d.integer(kind), 10)
	case encodedLZF:
		if b, size := d.deflated(); d.err == nil {
			d.src.inflate(b, size)
		}
	default:
		d.src.plain = d.take(d.length())
	}
}

// make reads a string. It returns nil only if it fails.
func (d *decoder) make() []byte {
	switch kind := d.kind(); kind {
	case encodedInt8, encodedInt16, encodedInt32:
		return strconv.AppendInt(nil, d.integer(kind), 10)
	case encodedLZF:
		b, size := d.deflated()
		if d.err != nil {
			return nil
		}
		return inflate(b, size)
	}
	return d.take(d.length())
}

// kind returns the first byte of a string, and removes it unless it is a length.
func (d *decoder) kind() byte {
	if len(d.rest) == 0 {
		d.fail(ErrFormat)
		return 0
	}
	kind := d.rest[0]
	if kind >= encodedInt8 && kind <= encodedLZF {
		d.byte()
	}
	return kind
}

// numberSize is how many bytes Check counts for the text of an integer.
const numberSize = 20

func (d *decoder) integer(kind byte) int64 {
	d.spend(numberSize)
	return signed(d.take(1 << (kind & 3)))
}

// signed returns a little-endian integer.
func signed(b []byte) int64 {
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(n<<shift) >> shift
}

// deflated returns a string that is deflated, and its size when it is inflated.
func (d *decoder) deflated() (b []byte, size int) {
	length, inflated := d.length(), d.length()
	b = d.take(length)
	switch {
	case d.err != nil:
		return nil, 0
	case inflated == 0 || inflated > length*maxInflation:
		d.fail(ErrFormat)
	default:
		d.spend(int64(inflated))
	}
	return b, int(inflated)
}

// hash reads count fields and values.
func (d *decoder) hash(count uint64) Value {
	v := Value{Kind: Hash}
	if !d.checking {
		v.Elements = make([][]byte, 0, 2*d.expected)
	}
	for ; count > 0 && d.spend(2*placeSize); count-- {
		if name, value := d.name(), d.text(); !d.checking {
			v.Elements = append(v.Elements, name, value)
		}
	}
	d.end()
	return v
}

// elements reads count elements of a list, or members of a set.
func (d *decoder) elements(kind Kind, count uint64) Value {
	v := Value{Kind: kind}
	if !d.checking {
		v.Elements = make([][]byte, 0, d.expected)
	}
	for ; count > 0 && d.spend(placeSize); count-- {
		if e := d.name(); !d.checking {
			v.Elements = append(v.Elements, e)
		}
	}
	d.end()
	return v
}

// The kinds of runs of a list.
const (
	runPlain  = 1 // an element
	runPacked = 2 // a listpack
)

// runs reads a list of count runs: listpacks and single elements, or ziplists.
func (d *decoder) runs(count uint64, listpacks bool) Value {
	v := Value{Kind: List}
	if !d.checking {
		v.Elements = make([][]byte, 0, d.expected)
	}
	for ; count > 0 && d.spend(placeSize); count-- {
		unpack := (*packed).ziplist
		if listpacks {
			switch d.length() {
			case runPlain:
				if e := d.name(); !d.checking {
					v.Elements = append(v.Elements, e)
				}
				continue
			case runPacked:
				unpack = (*packed).listpack
			default:
				d.fail(ErrFormat)
			}
		}
		d.unpack(&v, unpack)
	}
	d.end()
	return v
}

// end fails if there are no names. It counts the memory of their index.
func (d *decoder) end() {
	if d.count == 0 {
		d.fail(ErrFormat)
	}
	d.spend(int64(d.count) * placeSize)
}

// sortedSet reads count members with their scores: as 8 bytes, or as text.
func (d *decoder) sortedSet(count uint64, binaryScores bool) Value {
	v := Value{Kind: SortedSet}
	if !d.checking {
		v.Members = make([]Member, 0, d.expected)
	}
	for ; count > 0 && d.spend(placeSize); count-- {
		m := Member{Name: d.name()}
		if binaryScores {
			if b := d.take(8); b != nil {
				m.Score = math.Float64frombits(binary.LittleEndian.Uint64(b))
			}
		} else {
			m.Score = d.oldScore()
		}
		if math.IsNaN(m.Score) {
			d.fail(ErrFormat)
		}
		if !d.checking {
			v.Members = append(v.Members, m)
		}
	}
	d.end()
	return v
}

// oldScore reads a score as text, after its length.
func (d *decoder) oldScore() float64 {
	switch length := d.byte(); length {
	case 255:
		return math.Inf(-1)
	case 254:
		return math.Inf(1)
	case 253:
		return math.NaN()
	default:
		return d.score(d.take(uint64(length)))
	}
}

func (d *decoder) score(text []byte) float64 {
	score, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	if err != nil || math.IsNaN(score) {
		d.fail(ErrFormat)
	}
	return score
}
