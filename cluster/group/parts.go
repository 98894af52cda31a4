package group

import (
	"errors"
	"slices"

	"rlserver/persistence"
)

// A record of more than maxBatch bytes is split into several entries: the log takes entries of 64
// MB at most, and a large one would delay what the other nodes are told meanwhile. Followers apply
// the record when they have its last part.

// errPart reports that the parts of a record do not follow each other.
var errPart = errors.New("the log lacks a part of a record")

// split returns the batches that are a large record, whose number is that of the last appended.
// Their entries are made of the parts when they are proposed.
func (r *Replica) split(record []byte) (parts []*batch) {
	for chunk := range slices.Chunk(record, maxBatch) {
		parts = append(parts, &batch{
			kind: entryPart, part: chunk, first: r.appended, last: r.appended - 1, done: make(chan struct{}),
		})
	}
	last := parts[len(parts)-1]
	last.kind, last.last = entryLastPart, r.appended
	return parts
}

// partial is a record of which not all parts are applied.
type partial struct {
	of     header // of the latest part
	record []byte // the parts so far; empty: none
}

// add adds a part.
func (p *partial) add(h header, part []byte) {
	if !p.precedes(h) {
		p.record = make([]byte, 0, persistence.SizeOfCall(part))
	}
	p.of, p.record = h, append(p.record, part...)
}

// precedes reports whether a part is one more of the same record.
func (p *partial) precedes(h header) bool {
	return len(p.record) > 0 && p.of.proposer == h.proposer && p.of.term == h.term && p.of.first == h.first
}

// finish returns the record, of which h and part are the last part.
func (p *partial) finish(h header, part []byte) (record []byte, err error) {
	if !p.precedes(h) {
		return nil, errPart
	}
	record = append(p.record, part...)
	p.record = nil
	return record, nil
}
