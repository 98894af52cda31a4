package rdb

import "encoding/binary"

const packedEnd = 0xff

// listpack returns the entries of a listpack.
func listpack(d *decoder, b []byte) (texts [][]byte) {
	const header = 4 + 2
	if len(b) < header+1 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) || b[len(b)-1] != packedEnd {
		d.fail(ErrFormat)
		return nil
	}
	count := binary.LittleEndian.Uint16(b[4:])
	p := packed{decoder: d, b: b[header : len(b)-1]}
	for len(p.b) > 0 && d.err == nil {
		before := len(p.b)
		texts = d.add(texts, p.listpackEntry())
		p.backLength(before - len(p.b))
	}
	p.counted(int(count), len(texts))
	return texts
}

// packed is a cursor over the entries of a packed value.
type packed struct {
	*decoder
	b []byte
}

func (p *packed) next(n int) []byte {
	if p.err != nil || n > len(p.b) || n < 0 {
		p.fail(ErrFormat)
		p.b = nil
		return nil
	}
	taken := p.b[:n:n]
	p.b = p.b[n:]
	return taken
}

func (p *packed) one() int {
	if b := p.next(1); b != nil {
		return int(b[0])
	}
	return 0
}

// counted fails if the number of entries is not that in the header. There, 0xffff means unknown.
func (p *packed) counted(header, count int) {
	if header != 0xffff && header != count {
		p.fail(ErrFormat)
	}
}

func (p *packed) listpackEntry() []byte {
	head := p.one()
	switch {
	case head < 0x80:
		return p.number([]byte{byte(head), 0})
	case head < 0xc0:
		return p.next(head & 0x3f)
	case head < 0xe0: // 13 bits
		n := head&0x1f<<8 | p.one()
		n = n << 51 >> 51
		return p.number(binary.LittleEndian.AppendUint16(nil, uint16(n)))
	case head < 0xf0:
		return p.next(head&0xf<<8 | p.one())
	case head == 0xf0:
		if b := p.next(4); b != nil {
			return p.next(int(binary.LittleEndian.Uint32(b)))
		}
	case head <= 0xf4:
		return p.number(p.next([...]int{2, 3, 4, 8}[head-0xf1]))
	}
	p.fail(ErrFormat)
	return nil
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

// ziplist returns the entries of a ziplist.
func ziplist(d *decoder, b []byte) (texts [][]byte) {
	const header = 4 + 4 + 2
	if len(b) < header+1 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) || b[len(b)-1] != packedEnd {
		d.fail(ErrFormat)
		return nil
	}
	tail, count := int(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint16(b[8:])
	p := packed{decoder: d, b: b[header : len(b)-1]}
	last, size := header, 0
	for len(p.b) > 0 && d.err == nil {
		before := len(p.b)
		last = len(b) - 1 - before
		length := p.one()
		if length == 0xfe {
			if long := p.next(4); long != nil {
				length = int(binary.LittleEndian.Uint32(long))
			}
		}
		if length != size {
			d.fail(ErrFormat)
		}
		texts = d.add(texts, p.ziplistEntry())
		size = before - len(p.b)
	}
	if tail != last {
		d.fail(ErrFormat)
	}
	p.counted(int(count), len(texts))
	return texts
}

func (p *packed) ziplistEntry() []byte {
	head := p.one()
	switch {
	case head < 0x40:
		return p.next(head)
	case head < 0x80:
		return p.next(head&0x3f<<8 | p.one())
	case head == 0x80:
		if b := p.next(4); b != nil {
			return p.next(int(binary.BigEndian.Uint32(b)))
		}
	case head == 0xc0:
		return p.number(p.next(2))
	case head == 0xd0:
		return p.number(p.next(4))
	case head == 0xe0:
		return p.number(p.next(8))
	case head == 0xf0:
		return p.number(p.next(3))
	case head == 0xfe:
		return p.number(p.next(1))
	case head > 0xf0 && head < 0xfe:
		return p.number([]byte{byte(head&0xf - 1)})
	}
	p.fail(ErrFormat)
	return nil
}

// zipmap returns the fields and values of a zipmap, alternating.
func zipmap(d *decoder, b []byte) (texts [][]byte) {
	if len(b) < 2 || b[len(b)-1] != packedEnd {
		d.fail(ErrFormat)
		return nil
	}
	p := packed{decoder: d, b: b[1 : len(b)-1]}
	for len(p.b) > 0 && d.err == nil {
		texts = d.add(texts, p.next(p.zipmapLength()))
		length := p.zipmapLength()
		unused := p.one()
		texts = d.add(texts, p.next(length))
		p.next(unused)
	}
	if count := int(b[0]); count < 254 && count != len(texts)/2 {
		d.fail(ErrFormat)
	}
	return texts
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
