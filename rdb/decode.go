package rdb

import (
	"bytes"
	"encoding/binary"
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

// placeSize is how many bytes Decode counts for an element of a list of fields, values or members.
const placeSize = 48

// Decode decodes a payload, and allocates at most limit bytes for it. The texts of the value may
// alias the payload.
func Decode(payload []byte, limit int64) (Value, error) {
	if len(payload) < footerSize {
		return Value{}, ErrChecksum
	}
	body := payload[:len(payload)-footerSize]
	footer := payload[len(body):]
	if binary.LittleEndian.Uint16(footer) > version ||
		binary.LittleEndian.Uint64(footer[2:]) != checksum(payload[:len(payload)-8]) {
		return Value{}, ErrChecksum
	}
	if len(body) == 0 {
		return Value{}, ErrFormat
	}
	d := decoder{rest: body[1:], limit: limit}
	d.spend(int64(len(body)))
	v := d.value(body[0])
	v.Size = d.spent
	if d.err != nil {
		return Value{}, d.err
	}
	return v, nil
}

// decoder is a cursor over a value. It keeps the first error.
type decoder struct {
	rest         []byte
	limit, spent int64 // bytes
	err          error
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

func (d *decoder) value(kind byte) (v Value) {
	switch kind {
	case typeString:
		return Value{Kind: String, Text: d.text()}
	case typeHash:
		return d.hash(d.length())
	case typeZSet, typeZSet2:
		return d.sortedSet(d.length(), kind == typeZSet2)
	case typeHashZipmap:
		return d.pairs(zipmap)
	case typeHashZiplist:
		return d.pairs(ziplist)
	case typeHashListpack:
		return d.pairs(listpack)
	case typeZSetZiplist:
		return d.scored(ziplist)
	case typeZSetListpack:
		return d.scored(listpack)
	}
	if i := int(kind) - typeLimiter; 0 <= i && i < len(limiters) {
		return Value{Kind: Limiter, Type: limiters[i], Numbers: d.numbers()}
	}
	if name, known := foreign[kind]; known {
		d.fail(name)
	}
	d.fail(ErrFormat)
	return v
}

func (d *decoder) numbers() (list Numbers) {
	for i := range list {
		n, size := binary.Varint(d.rest)
		if size <= 0 {
			d.fail(ErrFormat)
			return list
		}
		d.take(uint64(size))
		list[i] = n
	}
	return list
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

// text reads a string. It returns nil only if it fails.
func (d *decoder) text() []byte {
	if len(d.rest) == 0 {
		d.fail(ErrFormat)
		return nil
	}
	switch d.rest[0] {
	case encodedInt8, encodedInt16, encodedInt32:
		head := d.byte()
		return d.number(d.take(1 << (head & 3)))
	case encodedLZF:
		d.byte()
		return d.inflated()
	}
	return d.take(d.length())
}

// number returns the decimal text of a little-endian integer.
func (d *decoder) number(b []byte) []byte {
	if b == nil || !d.spend(20) {
		return nil
	}
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return strconv.AppendInt(nil, int64(n<<shift)>>shift, 10)
}

func (d *decoder) inflated() []byte {
	deflated, size := d.length(), d.length()
	b := d.take(deflated)
	if d.err != nil {
		return nil
	}
	if size == 0 || size > deflated*maxInflation {
		d.fail(ErrFormat)
		return nil
	}
	if !d.spend(int64(size)) {
		return nil
	}
	out := inflate(b, int(size))
	if out == nil {
		d.fail(ErrFormat)
	}
	return out
}

// hash reads count fields and values.
func (d *decoder) hash(count uint64) Value {
	v := Value{Kind: Hash}
	for ; count > 0 && d.err == nil; count-- {
		v.Pairs = d.add(v.Pairs, d.text())
		v.Pairs = d.add(v.Pairs, d.text())
	}
	d.unique(len(v.Pairs)/2, func(i int) []byte { return v.Pairs[2*i] })
	return v
}

func (d *decoder) add(list [][]byte, text []byte) [][]byte {
	if !d.spend(placeSize) {
		return nil
	}
	return append(list, text)
}

// sortedSet reads count members with their scores: as 8 bytes, or as text.
func (d *decoder) sortedSet(count uint64, binaryScores bool) Value {
	v := Value{Kind: SortedSet}
	for ; count > 0 && d.spend(placeSize); count-- {
		m := Member{Name: d.text()}
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
		v.Members = append(v.Members, m)
	}
	d.unique(len(v.Members), func(i int) []byte { return v.Members[i].Name })
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
	score, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		d.fail(ErrFormat)
	}
	return score
}

// pairs reads a hash that is packed in a string.
func (d *decoder) pairs(unpack func(*decoder, []byte) [][]byte) Value {
	v := Value{Kind: Hash, Pairs: unpack(d, d.text())}
	if len(v.Pairs)%2 != 0 {
		d.fail(ErrFormat)
		return v
	}
	d.unique(len(v.Pairs)/2, func(i int) []byte { return v.Pairs[2*i] })
	return v
}

// scored reads a sorted set that is packed in a string.
func (d *decoder) scored(unpack func(*decoder, []byte) [][]byte) Value {
	v := Value{Kind: SortedSet}
	texts := unpack(d, d.text())
	if len(texts)%2 != 0 {
		d.fail(ErrFormat)
	}
	for ; len(texts) > 1 && d.spend(placeSize); texts = texts[2:] {
		m := Member{texts[0], d.score(bytes.TrimSpace(texts[1]))}
		if math.IsNaN(m.Score) {
			d.fail(ErrFormat)
		}
		v.Members = append(v.Members, m)
	}
	d.unique(len(v.Members), func(i int) []byte { return v.Members[i].Name })
	return v
}

// unique fails if there are no names, or a name occurs twice.
func (d *decoder) unique(count int, name func(i int) []byte) {
	if count == 0 {
		d.fail(ErrFormat)
	}
	if !d.spend(int64(count) * placeSize) {
		return
	}
	seen := make(map[string]struct{}, count)
	for i := range count {
		text := name(i)
		seen[unsafe.String(unsafe.SliceData(text), len(text))] = struct{}{}
	}
	if len(seen) < count {
		d.fail(ErrFormat)
	}
}
