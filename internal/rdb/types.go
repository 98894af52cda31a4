package rdb

import (
	"encoding/binary"
	"math"
	"slices"
)

// Kind is the kind of a value: its type, as TYPE returns it.
type Kind string

const (
	String    Kind = "string"
	Hash      Kind = "hash"
	SortedSet Kind = "zset"
	List      Kind = "list"
	Set       Kind = "set"
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
	typeReserved     = 250 // a limiter with reservations
	typeBanned       = 251 // a limiter with denials or a ban, and perhaps with reservations
)

const fieldDeadlines ForeignError = "hash with deadlines of fields"

var foreign = map[byte]ForeignError{
	6: "module's value", 7: "module's value", 15: "stream", 19: "stream",
	// of Redis 7.2 and later, and Valkey
	21: "stream", 22: fieldDeadlines, 24: fieldDeadlines, 25: fieldDeadlines,
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
var limiters = [...]Kind{"rl.token", "rl.fixed", "rl.counter"}

// AppendLimiter appends the state of a limiter, whose type is one of limiters.
func AppendLimiter(b []byte, limiter Kind, n Numbers) []byte {
	return appendNumbers(append(b, byte(typeLimiter+slices.Index(limiters[:], limiter))), n)
}

// AppendReservations begins a limiter with a number of reservations, and their rules. The caller
// appends each with AppendReservation, and then the limiter.
func AppendReservations(b, terms []byte, count int) []byte {
	return appendLength(appendText(append(b, typeReserved), terms), uint64(count))
}

// AppendReservation appends a reservation.
func AppendReservation(b []byte, r Reservation) []byte {
	return binary.AppendVarint(binary.AppendVarint(appendText(b, r.Call), r.Amount), r.Until)
}

// AppendBan begins a limiter with denials or a ban. The caller appends the limiter, which may be
// one with reservations.
func AppendBan(b, ban []byte) []byte { return appendText(append(b, typeBanned), ban) }

func appendNumbers(b []byte, list Numbers) []byte {
	for _, n := range list {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func (d *decoder) value(kind byte) (v Value) {
	switch kind {
	case typeString:
		return Value{Kind: String, Text: d.text()}
	case typeList:
		return d.elements(List, d.length())
	case typeSet:
		return d.elements(Set, d.length())
	case typeHash:
		return d.hash(d.length())
	case typeZSet, typeZSet2:
		return d.sortedSet(d.length(), kind == typeZSet2)
	case typeZiplists, typeListpacks:
		return d.runs(d.length(), kind == typeListpacks)
	case typeSetInts:
		return d.packed(Set, (*packed).integers)
	case typeSetListpack:
		return d.packed(Set, (*packed).listpack)
	case typeListZiplist:
		return d.packed(List, (*packed).ziplist)
	case typeHashZipmap:
		return d.packed(Hash, (*packed).zipmap)
	case typeHashZiplist:
		return d.packed(Hash, (*packed).ziplist)
	case typeHashListpack:
		return d.packed(Hash, (*packed).listpack)
	case typeZSetZiplist:
		return d.packed(SortedSet, (*packed).ziplist)
	case typeZSetListpack:
		return d.packed(SortedSet, (*packed).listpack)
	case typeReserved:
		return d.reserved()
	case typeBanned:
		return d.banned()
	}
	if i := int(kind) - typeLimiter; 0 <= i && i < len(limiters) {
		return Value{Kind: limiters[i], Numbers: d.numbers()}
	}
	if name, known := foreign[kind]; known {
		d.fail(name)
	}
	d.fail(ErrFormat)
	return v
}

func (d *decoder) numbers() (list Numbers) {
	for i := range list {
		list[i] = d.number()
	}
	return list
}

func (d *decoder) number() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail(ErrFormat)
		return 0
	}
	d.take(uint64(size))
	return n
}

// reserved reads reservations and their limiter.
func (d *decoder) reserved() (v Value) {
	terms, count := d.text(), d.length()
	var list []Reservation
	for ; count > 0 && d.spend(2*placeSize); count-- {
		r := Reservation{Call: d.text(), Amount: d.number(), Until: d.number()}
		if !d.checking {
			list = append(list, r)
		}
	}
	v = d.limiter(d.byte())
	v.Reservations, v.Terms = list, terms
	return v
}

// banned reads a ban and its limiter.
func (d *decoder) banned() (v Value) {
	ban := d.text()
	if kind := d.byte(); kind == typeReserved {
		v = d.reserved()
	} else {
		v = d.limiter(kind)
	}
	v.Ban = ban
	return v
}

// limiter reads a limiter, which may be a sorted set without members.
func (d *decoder) limiter(kind byte) (v Value) {
	switch {
	case kind == typeZSet2 && len(d.rest) > 0 && d.rest[0] == 0: // no members
		d.byte()
		v = Value{Kind: SortedSet}
	case kind == typeZSet2 || int(kind)-typeLimiter < len(limiters) && kind >= typeLimiter:
		v = d.value(kind)
	default:
		d.fail(ErrFormat)
	}
	return v
}
