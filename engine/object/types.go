package object

import (
	"slices"

	"rlserver/engine/effect"
	"rlserver/internal/dict"
)

// The types of Redis. Each limiter without a log has one of its own, see State.
const (
	TypeNone   Type = "none" // no such key
	TypeString Type = "string"
	TypeHash   Type = "hash"
	TypeZSet   Type = "zset"
	TypeList   Type = "list"
	TypeSet    Type = "set"
)

// Redis' numbers of its types, for digests. Other types are identified by their names.
const (
	digestString = 0
	digestList   = 1
	digestSet    = 2
	digestZSet   = 3
	digestHash   = 4
)

// Ranked reports whether the elements of a type are in the order of effect.Insert.
func (t Type) Ranked() bool { return t == TypeList }

func (t Type) String() string { return string(t) }

// Types are all types of values.
var Types = [...]Type{
	TypeString, TypeHash, TypeZSet, TypeToken, TypeFixed, TypeCounter, TypeList, TypeSet,
}

// Number returns the index of a type in Types.
func (t Type) Number() int { return slices.Index(Types[:], t) }

// inserted are the types that effect.Insert creates: collections whose elements are plain text.
var inserted = map[Type]func(h *dict.Hasher, name []byte) Object{
	TypeList: newList,
	TypeSet:  newSet,
}

// Create returns an empty collection, for an effect that adds to a missing key.
func Create(h *dict.Hasher, f *effect.Effect) Object {
	switch f.Kind {
	case effect.HashSet:
		return NewHash(h, f.Key.Name)
	case effect.Add:
		return NewZSet(h, f.Key.Name)
	}
	return inserted[Type(f.Field)](h, f.Key.Name)
}

// Has reports whether a collection has a field or member; nil is a missing key.
func Has(o Object, element []byte) (found bool) {
	switch o := o.(type) {
	case *Hash:
		_, found = o.View().Get(element)
	case *ZSet:
		_, found = o.Set.Score(element)
	case *Set:
		found = o.View().Has(element)
	}
	return found
}

// Change applies an effect, which fits, to a collection, and returns how many elements are left. It
// is no method of Object: the effect would escape to the heap.
func Change(o Object, f *effect.Effect) (left int) {
	switch o := o.(type) {
	case *Hash:
		return o.change(f)
	case *ZSet:
		return o.change(f)
	case *List:
		return o.change(f)
	case *Set:
		return o.change(f)
	}
	panic("object: " + f.Kind.String() + " of a type that is no collection")
}

// ranks returns how many elements with a rank an object has.
func ranks(o Object) int {
	switch o := o.(type) {
	case *ZSet:
		return o.Set.Len()
	case *Log:
		return int(o.n)
	case *List:
		return o.Elements.Len()
	}
	return 0
}

// hasMembers reports whether an object has members that effect.Remove removes.
func hasMembers(o Object) bool { return is[*ZSet](o) || is[*Set](o) }
