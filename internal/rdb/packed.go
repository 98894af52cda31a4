package rdb

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

const packedEnd = 0xff

// packed is a cursor over a collection that is packed in a string.
type packed struct {
	*decoder
	src     *source
	v       *Value
	entries int
	endless bool // the form has no packedEnd
}

// packed reads a collection that is packed in a string.
func (d *decoder) packed(kind Kind, unpack func(*packed)) Value {
	v := Value{Kind: kind}
	switch {
	case d.checking:
	case kind == SortedSet:
		v.Members = make([]Member, 0, d.expected)
	case kind == Hash:
		v.Elements = make([][]byte, 0, 2*d.expected)
	default:
		v.Elements = make([][]byte, 0, d.expected)
	}
	d.unpack(&v, unpack)
	d.end()
	return v
}

// unpack adds the content of a string to a value.
func (d *decoder) unpack(v *Value, unpack func(*packed)) {
	p := packed{decoder: d, src: &d.src, v: v}
	if d.checking {
		d.open()
	} else {
		p.src = &source{plain: d.make()}
	}
	unpack(&p)
	if !p.endless {
		if last := p.src.next(1); last == nil || last[0] != packedEnd {
			d.fail(ErrFormat)
		}
	}
	if p.paired() && p.entries%2 != 0 || !p.src.close() {
		d.fail(ErrFormat)
	}
}

// paired reports whether names and other entries alternate.
func (p *packed) paired() bool { return p.v.Kind == Hash || p.v.Kind == SortedSet }

// isName reports whether the next entry is counted: a name, or an element.
func (p *packed) isName() bool { return !p.paired() || p.entries%2 == 0 }

// more reports whether another entry follows.
func (p *packed) more() bool { return p.err == nil && p.src.left() > 1 }

// next returns the next n bytes, at most maxPiece. They are valid until it is called again.
func (p *packed) next(n int) []byte {
	if p.err != nil || n < 0 || n >= p.src.left() {
		p.fail(ErrFormat)
		return nil
	}
	b := p.src.next(n)
	if b == nil {
		p.fail(ErrFormat)
	}
	return b
}

func (p *packed) one() int {
	if b := p.next(1); b != nil {
		return int(b[0])
	}
	return 0
}

// text reads an entry of n bytes.
func (p *packed) text(n int) {
	switch isName := p.isName(); {
	case p.err != nil || n < 0 || n >= p.src.left():
		p.fail(ErrFormat)
	case isName && p.checking:
		p.entries++
		p.spend(placeSize)
		p.checkName(n)
	case p.src.lzf == nil || n <= maxPiece:
		p.entry(p.next(n))
	case p.v.Kind == SortedSet || !p.src.pass(n, nil):
		p.fail(ErrFormat)
	default:
		p.entries++
		p.spend(placeSize)
	}
}

// number takes an entry that is an integer.
func (p *packed) number(n int64) {
	switch {
	case !p.spend(numberSize):
	case !p.checking:
		p.entry(strconv.AppendInt(nil, n, 10))
	default:
		p.entry(strconv.AppendInt(p.digits[:0], n, 10))
	}
}

// entry takes an entry: an element, or a name, or after it its value or score.
func (p *packed) entry(text []byte) {
	isName := p.isName()
	p.entries++
	switch {
	case !p.spend(placeSize):
	case isName && p.checking:
		p.addName(text)
	case isName && p.v.Kind == SortedSet:
		p.count++
		p.v.Members = append(p.v.Members, Member{Name: text})
	case isName:
		p.count++
		p.v.Elements = append(p.v.Elements, text)
	case p.v.Kind == Hash && !p.checking:
		p.v.Elements = append(p.v.Elements, text)
	case p.v.Kind == SortedSet:
		p.scored(text)
	}
}

// scored takes the score of the latest member.
func (p *packed) scored(text []byte) {
	if len(text) >= maxScore {
		p.fail(ErrFormat)
		return
	}
	if score := p.score(bytes.TrimSpace(text)); !p.checking {
		p.v.Members[len(p.v.Members)-1].Score = score
	}
}

// counted fails if the number of entries is not that in the header. There, 0xffff means unknown.
func (p *packed) counted(header int) {
	if header != 0xffff && header != p.entries {
		p.fail(ErrFormat)
	}
}

// listpack reads the entries of a listpack.
func (p *packed) listpack() {
	size := p.src.left()
	header := p.next(4 + 2)
	if header == nil || uint64(binary.LittleEndian.Uint32(header)) != uint64(size) {
		p.fail(ErrFormat)
		return
	}
	count := binary.LittleEndian.Uint16(header[4:])
	for p.more() {
		before := p.src.left()
		p.listpackEntry()
		p.backLength(before - p.src.left())
	}
	p.counted(int(count))
}

func (p *packed) listpackEntry() {
	head := p.one()
	switch {
	case head < 0x80:
		p.number(int64(head))
	case head < 0xc0:
		p.text(head & 0x3f)
	case head < 0xe0: // 13 bits
		n := int64(head&0x1f<<8 | p.one())
		p.number(n << 51 >> 51)
	case head < 0xf0:
		p.text(head&0xf<<8 | p.one())
	case head == 0xf0:
		if b := p.next(4); b != nil {
			p.text(int(binary.LittleEndian.Uint32(b)))
		}
	case head <= 0xf4:
		p.number(signed(p.next([...]int{2, 3, 4, 8}[head-0xf1])))
	default:
		p.fail(ErrFormat)
	}
}

// backLength reads the length of an entry that follows the entry, and compares it.
func (p *packed) backLength(length int) {
	size := 5
	for i, end := range [...]int{1 << 7, 1<<14 - 1, 1<<21 - 1, 1<<28 - 1} {
		if length < end {
			size = i + 1
			break
		}
	}
	for i, c := range p.next(size) {
		group := byte(length >> (7 * (size - 1 - i)) & 0x7f)
		if i > 0 {
			group |= 0x80
		}
		if c != group {
			p.fail(ErrFormat)
		}
	}
}

// ziplist reads the entries of a ziplist.
func (p *packed) ziplist() {
	size := p.src.left()
	header := p.next(4 + 4 + 2)
	if header == nil || uint64(binary.LittleEndian.Uint32(header)) != uint64(size) {
		p.fail(ErrFormat)
		return
	}
	tail, count := int(binary.LittleEndian.Uint32(header[4:])), binary.LittleEndian.Uint16(header[8:])
	last, before := size-p.src.left(), 0
	for p.more() {
		left := p.src.left()
		last = size - left
		length := p.one()
		if length == 0xfe {
			if long := p.next(4); long != nil {
				length = int(binary.LittleEndian.Uint32(long))
			}
		}
		if length != before {
			p.fail(ErrFormat)
		}
		p.ziplistEntry()
		before = left - p.src.left()
	}
	if tail != last {
		p.fail(ErrFormat)
	}
	p.counted(int(count))
}

func (p *packed) ziplistEntry() {
	head := p.one()
	switch {
	case head < 0x40:
		p.text(head)
	case head < 0x80:
		p.text(head&0x3f<<8 | p.one())
	case head == 0x80:
		if b := p.next(4); b != nil {
			p.text(int(binary.BigEndian.Uint32(b)))
		}
	case head == 0xc0:
		p.number(signed(p.next(2)))
	case head == 0xd0:
		p.number(signed(p.next(4)))
	case head == 0xe0:
		p.number(signed(p.next(8)))
	case head == 0xf0:
		p.number(signed(p.next(3)))
	case head == 0xfe:
		p.number(signed(p.next(1)))
	case head > 0xf0 && head < 0xfe:
		p.number(int64(head&0xf - 1))
	default:
		p.fail(ErrFormat)
	}
}

// zipmap reads the fields and values of a zipmap.
func (p *packed) zipmap() {
	count := p.one()
	for p.more() {
		p.text(p.zipmapLength())
		length := p.zipmapLength()
		unused := p.one()
		p.text(length)
		p.next(unused)
	}
	if count < 254 && count != p.entries/2 {
		p.fail(ErrFormat)
	}
}

func (p *packed) zipmapLength() int {
	length := p.one()
	switch length {
	case 254:
		if b := p.next(4); b != nil {
			return int(binary.LittleEndian.Uint32(b))
		}
	case 255:
		p.fail(ErrFormat)
	}
	return length
}

// integers reads a set of integers.
func (p *packed) integers() {
	p.endless = true
	header := p.src.next(4 + 4)
	if p.err != nil || header == nil {
		p.fail(ErrFormat)
		return
	}
	width, count := int(binary.LittleEndian.Uint32(header)), int(binary.LittleEndian.Uint32(header[4:]))
	if width != 2 && width != 4 && width != 8 || p.src.left() != width*count {
		p.fail(ErrFormat)
		return
	}
	for ; p.err == nil && count > 0; count-- {
		if b := p.src.next(width); b != nil {
			p.number(signed(b))
		} else {
			p.fail(ErrFormat)
		}
	}
}
