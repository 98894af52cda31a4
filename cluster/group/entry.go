package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"rlserver/engine"
	"rlserver/persistence"
)

// entryKind is what an entry is. The numbers are file format.
type entryKind byte

const (
	entryBatch   entryKind = 1 // the effects of calls, in order
	entryBarrier entryKind = 2 // a new leader begins: all entries before it are applied
	// entryDigest has no records: all replicas compare their state at this entry.
	entryDigest entryKind = 3
	entryNote   entryKind = 4 // what the group holds beside its keys, see Note
	// A record of one call that is too large for a batch: its parts but for the last, and the last.
	entryPart     entryKind = 5
	entryLastPart entryKind = 6
)

// header is the beginning of an entry.
//
//	+---------+------+----------+------+-------+------+---------+---------+
//	| version | kind | proposer | term | first | last | Unix ms | records |
//	| 1       | 1    | 8        | 8    | 8     | 8    | 8       |         |
//	+---------+------+----------+------+-------+------+---------+---------+
//
// Integers are big-endian. The records are those of package persistence, one for each call.
type header struct {
	kind entryKind
	// proposer is the incarnation that has decided the calls, and has them in its engine.
	proposer uint64
	// term is the leadership under which the calls were decided. If the entry is committed under
	// any other, another leader may have been there in between: it is fenced, for all replicas.
	term uint64
	// first and last are the numbers of the records. The proposer counts its records from 1.
	// Without any, last is first-1.
	first, last uint64
	at          int64 // the time of the leader, Unix ms
}

const (
	entryVersion = 2
	oldestEntry  = 1 // that can be read
	headerSize   = 1 + 1 + 5*8
)

// put writes a header to the beginning of b.
func (h header) put(b []byte) {
	b[0], b[1] = entryVersion, byte(h.kind)
	binary.BigEndian.PutUint64(b[2:], h.proposer)
	binary.BigEndian.PutUint64(b[10:], h.term)
	binary.BigEndian.PutUint64(b[18:], h.first)
	binary.BigEndian.PutUint64(b[26:], h.last)
	binary.BigEndian.PutUint64(b[34:], uint64(h.at))
}

// VersionError reports data of a version that this server does not know.
type VersionError struct {
	What           string
	Version, Known byte // that it has, and the latest that this server can read
}

func (e *VersionError) Error() string {
	text := fmt.Sprintf("%s of version %d, and this server knows version %d: ", e.What, e.Version, e.Known)
	if e.Version > e.Known {
		return text + "it has to be upgraded"
	}
	return text + "it needs a server in between that knows both"
}

func checkVersion(what string, version, oldest, known byte) error {
	if version < oldest || version > known {
		return &VersionError{what, version, known}
	}
	return nil
}

// readHeader decodes the header of an entry, of a version up to known, and returns what follows it.
func readHeader(b []byte, known byte) (h header, records []byte, err error) {
	if len(b) > 0 {
		if err = checkVersion("entry", b[0], oldestEntry, known); err != nil {
			return h, nil, err
		}
	}
	if len(b) < headerSize {
		return h, nil, errors.New("entry ends within its header")
	}
	h.kind = entryKind(b[1])
	h.proposer = binary.BigEndian.Uint64(b[2:])
	h.term = binary.BigEndian.Uint64(b[10:])
	h.first = binary.BigEndian.Uint64(b[18:])
	h.last = binary.BigEndian.Uint64(b[26:])
	h.at = int64(binary.BigEndian.Uint64(b[34:]))
	if h.kind < entryBatch || h.kind > entryLastPart {
		return h, nil, fmt.Errorf("unknown kind of entry %d", h.kind)
	}
	return h, b[headerSize:], nil
}

// applier applies the records of entries to an engine. It reuses its memory.
type applier struct{ calls persistence.CallReader }

// apply applies the records of an entry with numbers above after.
func (a *applier) apply(e *engine.Engine, h header, records []byte, after uint64) error {
	number, apply := h.first, persistence.Apply(e.Apply)
	for ; len(records) > 0; number++ {
		to := apply
		if number <= after {
			to = nil
		}
		size, err := a.calls.Read(records, to)
		if err != nil {
			return err
		}
		records = records[size:]
	}
	if err := a.calls.Flush(apply); err != nil {
		return err
	}
	if number != h.last+1 {
		return fmt.Errorf("the entry has %d records, want %d", number-h.first, h.last+1-h.first)
	}
	return nil
}

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
