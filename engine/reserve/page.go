package reserve

import (
	"bytes"
	"encoding/binary"
)

const pageNodes = 64

// page is up to pageNodes nodes with their calls: one allocation for the nodes and one for the
// calls, neither of which has pointers. A shared page is copied before it is changed.
type page struct {
	nodes  []node
	text   []byte // the calls, each with its length before it
	wasted int32  // bytes of text that belong to no node any more
	shared bool
}

// maxAhead is for how many bytes of calls a page has room at first: a few long calls must not take
// their memory twice.
const maxAhead = 4 << 10

// nextPage returns a page behind others. The first one grows, as most books are small.
func nextPage(pages []page) page {
	if len(pages) == 0 {
		return page{}
	}
	return page{
		nodes: make([]node, 0, pageNodes),
		text:  make([]byte, 0, min(len(pages[len(pages)-1].text), maxAhead)),
	}
}

// own copies a shared page.
func (p *page) own() {
	p.nodes, p.shared = append(make([]node, 0, cap(p.nodes)), p.nodes...), false
	p.text = bytes.Clone(p.text)
}

// write adds a call to the text, and returns where.
func (p *page) write(call []byte) (at uint32) {
	at = uint32(len(p.text))
	if p.text == nil { // most books are small
		p.text = make([]byte, 0, nameSize(len(call)))
	}
	p.text = append(binary.AppendUvarint(p.text, uint64(len(call))), call...)
	return at
}

// read returns a call.
func (p *page) read(at uint32) []byte {
	length, size := uint64(p.text[at]), 1
	if length >= 0x80 {
		length, size = binary.Uvarint(p.text[at:])
	}
	begin := int(at) + size
	return p.text[begin : begin+int(length) : begin+int(length)]
}

// rewrite puts a call in place of one that is needed no more, and returns where it is.
func (p *page) rewrite(at uint32, call []byte) uint32 {
	old := p.read(at)
	if len(old) == len(call) {
		copy(old, call)
		return at
	}
	p.wasted += int32(nameSize(len(old)))
	return p.write(call)
}

// pop removes the last node.
func (p *page) pop() {
	if p.shared {
		p.own()
	}
	last := len(p.nodes) - 1
	at := p.nodes[last].call
	size := nameSize(len(p.read(at)))
	if int64(at)+size == int64(len(p.text)) {
		p.text = p.text[:at]
	} else {
		p.wasted += int32(size)
	}
	p.nodes = p.nodes[:last]
}

// tidy copies the nodes or the text if most of their memory is not needed any more.
func (p *page) tidy() {
	used := len(p.text) - int(p.wasted)
	many, long := cap(p.nodes) > 4*len(p.nodes), cap(p.text) > 3*used+pageNodes
	if p.shared && (many || long) {
		p.own()
	}
	if many {
		p.nodes = append(make([]node, 0, len(p.nodes)), p.nodes...)
	}
	if !long {
		return
	}
	old := *p
	p.text, p.wasted = make([]byte, 0, used), 0
	for i := range p.nodes {
		n := &p.nodes[i]
		n.call = p.write(old.read(n.call))
	}
}

// nameSize returns how many bytes a call of n bytes takes.
func nameSize(n int) int64 {
	size := n + 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return int64(size)
}
