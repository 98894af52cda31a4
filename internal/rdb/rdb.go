package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"strconv"
)

// Value is the decoded content of a payload.
type Value struct {
	Kind     Kind
	Text     []byte   // String
	Elements [][]byte // List, Set; Hash: fields and values, alternating
	Members  []Member // SortedSet
	Numbers  Numbers  // of a limiter whose state is a few numbers
	Size     int64    // about how many bytes the value and the payload it refers to take

	// of a limiter, which may be a sorted set without members then
	Reservations []Reservation
	Terms        []byte // their rules
	Ban          []byte // of a limiter; nil: none
}

// Reservation is what a call has reserved of a limiter.
type Reservation struct {
	Call   []byte
	Amount int64
	Until  int64 // Unix ms
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

// jones is the polynomial of Redis' checksum, with its bits in reverse order.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum returns Redis' CRC-64. Go's CRC-64 inverts the value before and after, Redis' does not.
func checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), jones, b) }

// AppendFooter completes the payload b with its version and checksum.
func AppendFooter(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, version)
	return binary.LittleEndian.AppendUint64(b, checksum(b))
}

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
