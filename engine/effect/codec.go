package effect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"rlserver/internal/largecopy"
)

// Fields is the set of fields that a kind of effect has besides kind, database and key. The bits
// are not file format; the order in which Append writes the fields is.
type Fields uint32

const (
	known Fields = 1 << iota // the kind is in kindFields
	HasToDB
	HasTo
	HasField
	HasValue
	HasScore
	HasLo
	HasHi
	HasExpireAt
	HasHits
	HasTokens
	HasCount
	HasBucket
	HasWindow
	HasCounter
	HasHold
	HasForgets // Lo
	HasForm    // Hi
	HasRuns    // Value

	packs // it is written in the packed form, see pack
)

// packed is set in the byte of a kind if the effect is in the packed form. Logs before format
// version 9 do not have it.
const packed = 0x80

// kindFields are the fields of each kind. They are file format: never change those of a kind; add a
// kind instead. A kind that has no fields besides database and key is listed too, with known alone.
var kindFields = [...]Fields{
	Delete:     known,
	Expire:     known | HasExpireAt,
	String:     known | HasValue | HasExpireAt,
	Splice:     known | HasValue | HasLo,
	HashSet:    known | HasField | HasValue,
	HashDelete: known | HasField,
	Add:        known | HasField | HasScore,
	Remove:     known | HasField,
	RemoveSpan: known | HasLo | HasHi,
	AddHits:    known | HasLo | HasHits | HasExpireAt | packs,
	Tokens:     known | HasTokens | HasExpireAt,
	Count:      known | HasCount | HasExpireAt,
	Rename:     known | HasTo,
	Copy:       known | HasTo | HasToDB,
	Move:       known | HasToDB,
	Flush:      known,
	Swap:       known | HasToDB,

	Policy:       known | HasValue,
	PolicyDelete: known,

	Bucket: known | HasBucket | HasExpireAt | packs,
	Window: known | HasWindow | HasExpireAt | packs,

	Counter: known | HasCounter | HasExpireAt,
	ZSet:    known | HasValue,
	Insert:  known | HasField | HasValue | HasLo | HasHi,

	Script:       known | HasValue | HasLo,
	ScriptDelete: known,

	Reserve: known | HasField | HasForgets | HasForm | HasExpireAt | HasHold,
	Forget:  known | HasForgets,
	Terms:   known | HasValue,
	Ban:     known | HasValue | HasForgets | HasForm | HasExpireAt,

	Override:       known | HasValue | HasLo,
	OverrideDelete: known,

	Call:   known | HasField | HasLo | HasHits | HasExpireAt,
	Uncall: known | HasField | HasHits,

	Runs: known | HasRuns,
}

// Fields returns the fields of a kind; none for an unknown one.
func (k Kind) Fields() Fields {
	if int(k) < len(kindFields) {
		return kindFields[k]
	}
	return 0
}

// AppendAll appends effects, one after another.
func AppendAll(dst []byte, effects []Effect) []byte {
	for i := range effects {
		dst = Append(dst, &effects[i])
	}
	return dst
}

// Append appends an effect as records have it. A Reader reads it.
func Append(dst []byte, f *Effect) []byte {
	has := kindFields[f.Kind]
	if has&packs != 0 {
		return f.pack(dst)
	}
	dst = append(dst, byte(f.Kind))
	dst = binary.AppendUvarint(dst, uint64(f.DB))
	dst = appendBytes(dst, f.Key.Name)
	if has&HasToDB != 0 {
		dst = binary.AppendUvarint(dst, uint64(f.ToDB))
	}
	if has&HasTo != 0 {
		dst = appendBytes(dst, f.To.Name)
	}
	if has&HasField != 0 {
		dst = appendBytes(dst, f.Field)
	}
	if has&(HasValue|HasRuns) != 0 {
		dst = appendBytes(dst, f.Value)
	}
	if has&HasScore != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f.Score))
	}
	if has&(HasLo|HasForgets) != 0 {
		dst = binary.AppendVarint(dst, int64(f.Lo))
	}
	if has&(HasHi|HasForm) != 0 {
		dst = binary.AppendVarint(dst, int64(f.Hi))
	}
	if has&HasExpireAt != 0 {
		dst = binary.AppendVarint(dst, f.ExpireAt)
	}
	if has&HasHits != 0 {
		dst = appendNumbers(dst, f.Hits.At, int64(f.Hits.Seq), f.Hits.N)
	}
	if has&HasTokens != 0 {
		dst = appendNumbers(dst, f.Tokens.Missing, f.Tokens.Earned, f.Tokens.Since)
	}
	if has&HasCount != 0 {
		dst = appendNumbers(dst, f.Count.Start, f.Count.Used)
	}
	if has&HasBucket != 0 {
		dst = appendNumbers(dst, f.Tokens.Missing, f.Tokens.Since)
		dst = binary.AppendUvarint(dst, f.Tokens.Fraction)
	}
	if has&HasWindow != 0 {
		dst = appendNumbers(dst, f.Count.Start, f.Count.Length, f.Count.Used)
	}
	if has&HasCounter != 0 {
		dst = appendNumbers(dst, f.Counts.Start, f.Counts.Length, f.Counts.Current, f.Counts.Previous)
	}
	if has&HasHold != 0 {
		dst = appendNumbers(dst, f.Hold.Amount, f.Hold.Until)
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

// Reader reads effects, and the numbers around them in a record, from bytes that may be damaged. It
// keeps the first error, after which it reads zeros.
type Reader struct {
	Rest []byte // what is left; after an error, from the damage on
	Err  error
}

// Append reads an effect, which aliases the bytes, and appends it. Its keys are not hashed.
func (r *Reader) Append(dst []Effect) []Effect {
	dst = append(dst, Effect{})
	r.effect(&dst[len(dst)-1])
	return dst
}

// effect reads into a zero effect: copies of one take longer than reading it.
func (r *Reader) effect(f *Effect) {
	kind := r.Byte()
	f.Kind = Kind(kind &^ packed)
	has := f.Kind.Fields()
	if has == 0 || kind&packed != 0 && has&packs == 0 {
		r.Fail(fmt.Errorf("unknown kind %d", kind))
		return
	}
	f.DB = r.database()
	f.Key.Name = r.bytes()
	if kind&packed != 0 {
		r.unpack(f)
		return
	}
	if has&HasToDB != 0 {
		f.ToDB = r.database()
	}
	if has&HasTo != 0 {
		f.To.Name = r.bytes()
	}
	if has&HasField != 0 {
		f.Field = r.bytes()
	}
	if has&(HasValue|HasRuns) != 0 {
		f.Value = r.bytes()
	}
	if has&HasScore != 0 {
		f.Score = math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
	}
	if has&(HasLo|HasForgets) != 0 {
		f.Lo = int(r.Varint())
	}
	if has&(HasHi|HasForm) != 0 {
		f.Hi = int(r.Varint())
	}
	if has&HasExpireAt != 0 {
		f.ExpireAt = r.Varint()
	}
	if has&HasHits != 0 {
		f.Hits = Hits{At: r.Varint(), Seq: uint64(r.Varint()), N: r.Varint()}
	}
	if has&HasTokens != 0 {
		f.Tokens.Missing, f.Tokens.Earned, f.Tokens.Since = r.Varint(), r.Varint(), r.Varint()
	}
	if has&HasCount != 0 {
		f.Count.Start, f.Count.Used = r.Varint(), r.Varint()
	}
	if has&HasBucket != 0 {
		f.Tokens.Missing, f.Tokens.Since, f.Tokens.Fraction = r.Varint(), r.Varint(), r.uvarint()
	}
	if has&HasWindow != 0 {
		f.Count.Start, f.Count.Length, f.Count.Used = r.Varint(), r.Varint(), r.Varint()
	}
	if has&HasCounter != 0 {
		f.Counts.Start, f.Counts.Length = r.Varint(), r.Varint()
		f.Counts.Current, f.Counts.Previous = r.Varint(), r.Varint()
	}
	if has&HasHold != 0 {
		f.Hold.Amount, f.Hold.Until = r.Varint(), r.Varint()
	}
}

// Fail sets the error, unless there is one already.
func (r *Reader) Fail(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

// ErrEnds reports that the bytes end within a field.
var ErrEnds = errors.New("ends within a field")

var zeros [8]byte

// Byte reads a byte.
func (r *Reader) Byte() byte { return r.take(1)[0] }

// take returns the next n bytes, at most 8. After an error they are zeros.
func (r *Reader) take(n int) []byte {
	if r.Err != nil || len(r.Rest) < n {
		r.Fail(ErrEnds)
		return zeros[:n]
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

func (r *Reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.Rest)) {
		r.Fail(ErrEnds)
		return nil
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}

// database reads the number of a database. The caller checks whether the engine has it.
func (r *Reader) database() int {
	n := r.uvarint()
	if n > math.MaxInt32 {
		r.Fail(fmt.Errorf("database %d", n))
		return 0
	}
	return int(n)
}

func (r *Reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.Rest)
	r.skip(size)
	return n
}

// Varint reads a signed integer.
func (r *Reader) Varint() int64 {
	n, size := binary.Varint(r.Rest)
	r.skip(size)
	return n
}

func (r *Reader) skip(size int) {
	if r.Err != nil || size <= 0 {
		r.Fail(ErrEnds)
		return
	}
	r.Rest = r.Rest[size:]
}
