package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"slices"
	"strconv"
)

// Kind is the kind of a value.
type Kind uint8

const (
	String Kind = iota + 1
	Hash
	SortedSet
	List
	Set
	Limiter // a limiter whose state is a few numbers
)

// Value is the decoded content of a payload.
type Value struct {
	Kind     Kind
	Text     []byte   // String
	Elements [][]byte // List, Set; Hash: fields and values, alternating
	Members  []Member // SortedSet
	Type     string   // Limiter: its type, as TYPE returns it
	Numbers  Numbers  // Limiter: its state
	Size     int64    // about how many bytes the value and the payload it refers to take
}

// Numbers are the state of a limiter.
type Numbers [4]int64

// Member is a member of a sorted set.
type Member struct {
	Name  []byte
	Score float64
}

var (
	ErrChecksum = errors.New("version or checksum are wrong")
	ErrFormat   = errors.New("bad data format")
	ErrTooLarge = errors.New("the value takes more memory than is allowed")
)

// ForeignError reports a value of a type that Redis has and this server has not.
type ForeignError string

func (e ForeignError) Error() string { return fmt.Sprintf("the payload holds a %s", string(e)) }

const (
	version    = 10
	footerSize = 2 + 8
)

// The types that are read. The numbers are Redis' own up to 199: never renumber. The error for a
// type in foreign names it.
const (
	typeString       = 0
	typeList         = 1
	typeSet          = 2
	typeZSet         = 3
	typeHash         = 4
	typeZSet2        = 5
	typeHashZipmap   = 9
	typeListZiplist  = 10
	typeSetInts      = 11
	typeZSetZiplist  = 12
	typeHashZiplist  = 13
	typeZiplists     = 14
	typeHashListpack = 16
	typeZSetListpack = 17
	typeListpacks    = 18
	typeSetListpack  = 20  // of Redis 7.2 and later
	typeLimiter      = 200 // the first of limiters, the others after it
)

const fieldDeadlines ForeignError = "hash with deadlines of fields"

var foreign = map[byte]ForeignError{
	6: "module's value", 7: "module's value", 15: "stream", 19: "stream",
	// of Redis 7.2 and later, and Valkey
	21: "stream", 22: fieldDeadlines, 24: fieldDeadlines, 25: fieldDeadlines,
}

// jones is the polynomial of Redis' checksum, with its bits in reverse order.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum returns Redis' CRC-64. Go's CRC-64 inverts the value before and after, Redis' does not.
func checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), jones, b) }

// AppendFooter completes the payload b with its version and checksum.
func AppendFooter(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, version)
	return binary.LittleEndian.AppendUint64(b, checksum(b))
}

// AppendString appends a string value.
func AppendString(b, text []byte) []byte { return appendText(append(b, typeString), text) }

// AppendHash begins a hash with a number of fields. The caller appends each field and its value
// with AppendText.
func AppendHash(b []byte, fields int) []byte {
	return appendLength(append(b, typeHash), uint64(fields))
}

// AppendList begins a list with a number of elements. The caller appends each with AppendText.
func AppendList(b []byte, elements int) []byte {
	return appendLength(append(b, typeList), uint64(elements))
}

// AppendSet begins a set with a number of members. The caller appends each with AppendText.
func AppendSet(b []byte, members int) []byte {
	return appendLength(append(b, typeSet), uint64(members))
}

// AppendSortedSet begins a sorted set with a number of members. The caller appends each with
// AppendMember.
func AppendSortedSet(b []byte, members int) []byte {
	return appendLength(append(b, typeZSet2), uint64(members))
}

// AppendText appends an element of a list or set, or a field of a hash or its value.
func AppendText[T string | []byte](b []byte, text T) []byte { return appendText(b, text) }

// AppendMember appends a member of a sorted set.
func AppendMember(b, name []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(appendText(b, name), math.Float64bits(score))
}

// limiters are the types of limiters. The place in the list is the number after typeLimiter: never
// renumber, only append.
var limiters = [...]string{"rl.token", "rl.fixed", "rl.counter"}

// AppendLimiter appends the state of a limiter, whose type is one of limiters.
func AppendLimiter(b []byte, limiter string, n Numbers) []byte {
	return appendNumbers(append(b, byte(typeLimiter+slices.Index(limiters[:], limiter))), n)
}

func appendNumbers(b []byte, list Numbers) []byte {
	for _, n := range list {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// TextSize returns how many bytes AppendText appends.
func TextSize[T string | []byte](text T) int {
	if _, ok := integer(text); ok {
		var b [1 + 4]byte
		return len(appendText(b[:0], text))
	}
	return LengthSize(len(text)) + len(text)
}

// LengthSize returns how many bytes the number of elements of a collection takes.
func LengthSize(n int) int {
	var b [1 + 8]byte
	return len(appendLength(b[:0], uint64(n)))
}

// NumbersSize returns how many bytes the numbers of a limiter take.
func NumbersSize(list Numbers) int { return len(appendNumbers(nil, list)) }

func appendLength(b []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, 1<<6|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, length32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, length64), n)
}

// appendText appends a string: as an integer if it is the canonical decimal form of one with up to
// 32 bits.
func appendText[T string | []byte](b []byte, text T) []byte {
	if n, ok := integer(text); ok {
		switch {
		case n == int64(int8(n)):
			return append(b, encodedInt8, byte(n))
		case n == int64(int16(n)):
			return binary.LittleEndian.AppendUint16(append(b, encodedInt16), uint16(n))
		default:
			return binary.LittleEndian.AppendUint32(append(b, encodedInt32), uint32(n))
		}
	}
	return append(appendLength(b, uint64(len(text))), text...)
}

func integer[T string | []byte](text T) (n int64, ok bool) {
	const longest = len("-2147483648")
	if len(text) == 0 || len(text) > longest || text[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	var buf [longest]byte
	return n, err == nil && string(strconv.AppendInt(buf[:0], n, 10)) == string(text)
}
