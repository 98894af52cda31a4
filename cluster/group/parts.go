package group

import (
	"errors"
	"slices"
)

// A record of more than maxBatch bytes is split into several entries: the log takes entries of 64
// MB at most, and a large one would delay what the other nodes are told meanwhile. Followers apply
// the record when they have its last part.

// errPart reports that the parts of a record do not follow each other.
var errPart = errors.New("the log lacks a part of a record")

// split returns the batches that are a large record, whose number is that of the last appended.
func (r *Replica) split(record []byte) (parts []*batch) {
	for chunk := range slices.Chunk(record, maxBatch) {
		b := r.newBatch()
		b.kind, b.first, b.last = entryPart, r.appended, r.appended-1
		b.entry = append(b.entry, chunk...)
		parts = append(parts, b)
	}
	last := parts[len(parts)-1]
	last.kind, last.last = entryLastPart, r.appended
	return parts
}

// partial is a record of which not all parts are applied.
type partial struct {
	of    header // of the latest part
	parts [][]byte
}

// add adds a part, which must not change afterwards.
func (p *partial) add(h header, part []byte) {
	if !p.precedes(h) {
		p.parts = nil
	}
	p.of, p.parts = h, append(p.parts, part)
}

// precedes reports whether a part is one more of the same record.
func (p *partial) precedes(h header) bool {
	return len(p.parts) > 0 && p.of.proposer == h.proposer && p.of.term == h.term && p.of.first == h.first
}

// finish returns the record, of which h and part are the last part.
func (p *partial) finish(h header, part []byte) (record []byte, err error) {
	if !p.precedes(h) {
		return nil, errPart
	}
	record = slices.Concat(append(p.parts, part)...)
	p.parts = nil
	return record, nil
}
