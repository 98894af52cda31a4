package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"rlserver/engine/effect"
	"rlserver/internal/largecopy"
)

// headerSize is the size of a record header: the length, 8 bytes, and the checksum, 4 bytes.
const headerSize = 8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrShort reports that the bytes end before the record does: more may follow, or the tail is torn.
var ErrShort = errors.New("record is cut short")

// recordKind is the first byte of every record's payload. The numbers are file format: never
// renumber.
type recordKind byte

const (
	recordCall   recordKind = 1 // the effects of a call
	recordSynced recordKind = 2 // number: durable bytes of the segment, plus its salt
	recordEnd    recordKind = 3 // number: records before this one; the snapshot is complete
)

// record is one record, decoded.
type record struct {
	kind    recordKind
	at      int64           // time of the call, or of writing, in Unix ms
	effects []effect.Effect // of a recordCall
	number  int64           // of the other kinds
}

// appendMark appends a record with a number: a recordSynced or recordEnd.
func appendMark(dst []byte, kind recordKind, now, number int64) []byte {
	dst, start := beginRecord(dst, kind, now)
	return endRecord(binary.AppendVarint(dst, number), start, nil)
}

func beginRecord(dst []byte, kind recordKind, now int64) (_ []byte, start int) {
	start = len(dst)
	var header [headerSize]byte
	dst = append(append(dst, header[:]...), byte(kind))
	return binary.AppendVarint(dst, now), start
}

// endRecord completes the header of a record that began at start. rest is the end of its payload,
// which follows dst.
func endRecord(dst []byte, start int, rest []byte) []byte {
	payload := dst[start+headerSize:]
	binary.LittleEndian.PutUint64(dst[start:], uint64(len(payload)+len(rest)))
	binary.LittleEndian.PutUint32(dst[start+8:], checksum(checksum(0, payload), rest))
	return dst
}

// checksum continues the checksum of what precedes b. It works in pieces, see package largecopy.
func checksum(sum uint32, b []byte) uint32 {
	for len(b) > largecopy.Piece {
		sum = crc32.Update(sum, castagnoli, b[:largecopy.Piece])
		b = b[largecopy.Piece:]
	}
	return crc32.Update(sum, castagnoli, b)
}

// readRecord decodes the record at the beginning of b and returns its size in bytes. The record has
// dst with its effects appended, which alias b; their keys are not hashed, because engine.Apply
// does that. The error is ErrShort if b ends too early; other errors name the fault and the byte.
func readRecord(dst []effect.Effect, b []byte) (rec record, size int, err error) {
	rec, r, size, err := openRecord(b)
	if err != nil {
		return rec, 0, err
	}
	rec.effects = dst
	switch rec.kind {
	case recordCall:
		for len(r.Rest) > 0 && r.Err == nil {
			rec.effects = r.Append(rec.effects)
		}
	case recordSynced, recordEnd:
		rec.number = r.Varint()
		if len(r.Rest) > 0 {
			r.Fail(errors.New("more than a number"))
		}
	default:
		r.Fail(fmt.Errorf("unknown kind of record %d", rec.kind))
	}
	if err := errorIn(&r, size); err != nil {
		return record{}, 0, err
	}
	return rec, size, nil
}

// openRecord checks the record at the beginning of b, and returns its kind and time, a reader of
// what follows them, and its size in bytes.
func openRecord(b []byte) (rec record, r effect.Reader, size int, err error) {
	if len(b) < headerSize {
		return rec, r, 0, ErrShort
	}
	length := binary.LittleEndian.Uint64(b)
	if uint64(len(b)-headerSize) < length {
		return rec, r, 0, ErrShort
	}
	size = headerSize + int(length)
	payload := b[headerSize:size]
	if want, got := binary.LittleEndian.Uint32(b[8:]), checksum(0, payload); got != want {
		return rec, r, 0, fmt.Errorf("record: crc %08x, want %08x", got, want)
	}
	r.Rest = payload
	rec.kind, rec.at = recordKind(r.Byte()), r.Varint()
	return rec, r, size, nil
}

// errorIn returns the error of the reader of a record of this size, with the byte.
func errorIn(r *effect.Reader, size int) error {
	if r.Err == nil {
		return nil
	}
	return fmt.Errorf("record: at byte %d: %w", size-len(r.Rest), r.Err)
}
