package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"rlserver/engine/effect"
	"rlserver/largecopy"
)

// headerSize is the size of a record header: the length, 8 bytes, and the checksum, 4 bytes.
const headerSize = 8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrShort reports that the bytes end before the record does: more may follow, or the tail is torn.
var ErrShort = errors.New("record is cut short")

// fields is the set of fields that an effect has besides kind, database and key. The bits are not
// file format; the order in which appendEffect writes the fields is.
type fields uint16

const (
	known fields = 1 << iota // the kind is in kindFields
	hasToDB
	hasTo
	hasField
	hasValue
	hasScore
	hasLo
	hasHi
	hasExpireAt
	hasHits
	hasTokens
	hasCount
	hasBucket
	hasWindow
	hasCounter
)

// kindFields are the fields of each kind. They are file format: never change those of a kind; add a
// kind instead. A kind that has no fields besides database and key is listed too, with known alone.
var kindFields = [...]fields{
	effect.Delete:     known,
	effect.Expire:     known | hasExpireAt,
	effect.String:     known | hasValue | hasExpireAt,
	effect.Splice:     known | hasValue | hasLo,
	effect.HashSet:    known | hasField | hasValue,
	effect.HashDelete: known | hasField,
	effect.Add:        known | hasField | hasScore,
	effect.Remove:     known | hasField,
	effect.RemoveSpan: known | hasLo | hasHi,
	effect.AddHits:    known | hasLo | hasHits | hasExpireAt,
	effect.Tokens:     known | hasTokens | hasExpireAt,
	effect.Count:      known | hasCount | hasExpireAt,
	effect.Rename:     known | hasTo,
	effect.Copy:       known | hasTo | hasToDB,
	effect.Move:       known | hasToDB,
	effect.Flush:      known,
	effect.Swap:       known | hasToDB,

	effect.Policy:       known | hasValue,
	effect.PolicyDelete: known,

	effect.Bucket: known | hasBucket | hasExpireAt,
	effect.Window: known | hasWindow | hasExpireAt,

	effect.Counter: known | hasCounter | hasExpireAt,
	effect.ZSet:    known | hasValue,
}

// fieldsOf returns the fields of a kind. ok is false if there is no such kind.
func fieldsOf(kind effect.Kind) (has fields, ok bool) {
	if int(kind) < len(kindFields) {
		has = kindFields[kind]
	}
	return has, has&known != 0
}

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

// appendRecord appends the effects of a call at now, in Unix ms, as a record.
func appendRecord(dst []byte, now int64, effects []effect.Effect) []byte {
	return AppendCall(dst, now, nil, effects)
}

// appendMark appends a record with a number: a recordSynced or recordEnd.
func appendMark(dst []byte, kind recordKind, now, number int64) []byte {
	dst, start := beginRecord(dst, kind, now)
	return endRecord(binary.AppendVarint(dst, number), start)
}

func beginRecord(dst []byte, kind recordKind, now int64) (_ []byte, start int) {
	start = len(dst)
	var header [headerSize]byte
	dst = append(append(dst, header[:]...), byte(kind))
	return binary.AppendVarint(dst, now), start
}

func endRecord(dst []byte, start int) []byte {
	payload := dst[start+headerSize:]
	binary.LittleEndian.PutUint64(dst[start:], uint64(len(payload)))
	binary.LittleEndian.PutUint32(dst[start+8:], checksum(payload))
	return dst
}

// checksum works in pieces, see package largecopy.
func checksum(b []byte) (sum uint32) {
	for len(b) > largecopy.Piece {
		sum = crc32.Update(sum, castagnoli, b[:largecopy.Piece])
		b = b[largecopy.Piece:]
	}
	return crc32.Update(sum, castagnoli, b)
}

func appendEffect(dst []byte, f *effect.Effect) []byte {
	has := kindFields[f.Kind]
	dst = append(dst, byte(f.Kind))
	dst = binary.AppendUvarint(dst, uint64(f.DB))
	dst = appendBytes(dst, f.Key.Name)
	if has&hasToDB != 0 {
		dst = binary.AppendUvarint(dst, uint64(f.ToDB))
	}
	if has&hasTo != 0 {
		dst = appendBytes(dst, f.To.Name)
	}
	if has&hasField != 0 {
		dst = appendBytes(dst, f.Field)
	}
	if has&hasValue != 0 {
		dst = appendBytes(dst, f.Value)
	}
	if has&hasScore != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f.Score))
	}
	if has&hasLo != 0 {
		dst = binary.AppendVarint(dst, int64(f.Lo))
	}
	if has&hasHi != 0 {
		dst = binary.AppendVarint(dst, int64(f.Hi))
	}
	if has&hasExpireAt != 0 {
		dst = binary.AppendVarint(dst, f.ExpireAt)
	}
	if has&hasHits != 0 {
		dst = appendNumbers(dst, f.Hits.At, int64(f.Hits.Seq), f.Hits.N)
	}
	if has&hasTokens != 0 {
		dst = appendNumbers(dst, f.Tokens.Missing, f.Tokens.Earned, f.Tokens.Since)
	}
	if has&hasCount != 0 {
		dst = appendNumbers(dst, f.Count.Start, f.Count.Used)
	}
	if has&hasBucket != 0 {
		dst = appendNumbers(dst, f.Tokens.Missing, f.Tokens.Since)
		dst = binary.AppendUvarint(dst, f.Tokens.Fraction)
	}
	if has&hasWindow != 0 {
		dst = appendNumbers(dst, f.Count.Start, f.Count.Length, f.Count.Used)
	}
	if has&hasCounter != 0 {
		dst = appendNumbers(dst, f.Counts.Start, f.Counts.Length, f.Counts.Current, f.Counts.Previous)
	}
	return dst
}

func appendNumbers(dst []byte, list ...int64) []byte {
	for _, n := range list {
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return largecopy.Append(dst, b)
}

// readRecord decodes the record at the beginning of b and returns its size in bytes. The effects
// reuse dst and alias b; their keys are not hashed, because engine.Apply does that. The error is
// ErrShort if b ends too early; other errors name the fault and the byte.
func readRecord(dst []effect.Effect, b []byte) (rec record, size int, err error) {
	rec, r, size, err := openRecord(b)
	if err != nil {
		return rec, 0, err
	}
	rec.effects = dst[:0]
	switch rec.kind {
	case recordCall:
		for len(r.rest) > 0 && r.err == nil {
			rec.effects = append(rec.effects, r.effect())
		}
	case recordSynced, recordEnd:
		rec.number = r.varint()
		if len(r.rest) > 0 {
			r.fail(errors.New("more than a number"))
		}
	default:
		r.fail(fmt.Errorf("unknown kind of record %d", rec.kind))
	}
	if err := r.errorIn(size); err != nil {
		return record{}, 0, err
	}
	return rec, size, nil
}

// openRecord checks the record at the beginning of b, and returns its kind and time, a reader of
// what follows them, and its size in bytes.
func openRecord(b []byte) (rec record, r reader, size int, err error) {
	if len(b) < headerSize {
		return rec, r, 0, ErrShort
	}
	length := binary.LittleEndian.Uint64(b)
	if uint64(len(b)-headerSize) < length {
		return rec, r, 0, ErrShort
	}
	size = headerSize + int(length)
	payload := b[headerSize:size]
	if want, got := binary.LittleEndian.Uint32(b[8:]), checksum(payload); got != want {
		return rec, r, 0, fmt.Errorf("record: crc %08x, want %08x", got, want)
	}
	r.rest = payload
	rec.kind, rec.at = recordKind(r.take(1)[0]), r.varint()
	return rec, r, size, nil
}

// errorIn returns the error of a reader of a record of this size, with the byte.
func (r *reader) errorIn(size int) error {
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("record: at byte %d: %w", size-len(r.rest), r.err)
}

// reader is a cursor over a payload. It keeps the first error.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) effect() (f effect.Effect) {
	f.Kind = effect.Kind(r.take(1)[0])
	has, ok := fieldsOf(f.Kind)
	if !ok {
		r.fail(fmt.Errorf("unknown kind %d", f.Kind))
		return f
	}
	f.DB = r.database()
	f.Key.Name = r.bytes()
	if has&hasToDB != 0 {
		f.ToDB = r.database()
	}
	if has&hasTo != 0 {
		f.To.Name = r.bytes()
	}
	if has&hasField != 0 {
		f.Field = r.bytes()
	}
	if has&hasValue != 0 {
		f.Value = r.bytes()
	}
	if has&hasScore != 0 {
		f.Score = math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
	}
	if has&hasLo != 0 {
		f.Lo = int(r.varint())
	}
	if has&hasHi != 0 {
		f.Hi = int(r.varint())
	}
	if has&hasExpireAt != 0 {
		f.ExpireAt = r.varint()
	}
	if has&hasHits != 0 {
		f.Hits = effect.Hits{At: r.varint(), Seq: uint64(r.varint()), N: r.varint()}
	}
	if has&hasTokens != 0 {
		f.Tokens.Missing, f.Tokens.Earned, f.Tokens.Since = r.varint(), r.varint(), r.varint()
	}
	if has&hasCount != 0 {
		f.Count.Start, f.Count.Used = r.varint(), r.varint()
	}
	if has&hasBucket != 0 {
		f.Tokens.Missing, f.Tokens.Since, f.Tokens.Fraction = r.varint(), r.varint(), r.uvarint()
	}
	if has&hasWindow != 0 {
		f.Count.Start, f.Count.Length, f.Count.Used = r.varint(), r.varint(), r.varint()
	}
	if has&hasCounter != 0 {
		f.Counts.Start, f.Counts.Length = r.varint(), r.varint()
		f.Counts.Current, f.Counts.Previous = r.varint(), r.varint()
	}
	return f
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

var errEnds = errors.New("ends within a field")

var zeros [8]byte

// take returns the next n bytes, at most 8. After an error they are zeros.
func (r *reader) take(n int) []byte {
	if r.err != nil || len(r.rest) < n {
		r.fail(errEnds)
		return zeros[:n]
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail(errEnds)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// database reads the number of a database. The caller checks whether the engine has it.
func (r *reader) database() int {
	n := r.uvarint()
	if n > math.MaxInt32 {
		r.fail(fmt.Errorf("database %d", n))
		return 0
	}
	return int(n)
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	r.skip(size)
	return n
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.rest)
	r.skip(size)
	return n
}

func (r *reader) skip(size int) {
	if r.err != nil || size <= 0 {
		r.fail(errEnds)
		return
	}
	r.rest = r.rest[size:]
}
