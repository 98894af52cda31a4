package zset

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A set of one run needs no index: a tag of a byte for each member, in the order of the members,
// leads to the few that can be the one that is sought. Tags need not be hard to guess: members that
// all have the same tag are compared one after the other, and a run has few.

// tagOf returns the tag of a member.
func tagOf(member []byte) byte {
	x := uint64(len(member))
	if n := len(member); n >= 8 {
		x += binary.LittleEndian.Uint64(member) ^ binary.LittleEndian.Uint64(member[n-8:])*3
	} else {
		for _, b := range member {
			x = x<<8 | uint64(b)
		}
	}
	x *= 0x9e3779b97f4a7c15
	return byte(x >> 56)
}

// tagged returns the place of a member in a set of one run, and whether it exists.
func (s *rest) tagged(member []byte) (p place, ok bool) {
	if s.len() == 0 {
		return place{}, false
	}
	r := &s.seq.one.runs[0]
	if len(s.tags) != r.len() {
		s.tagAll(r)
	}
	for i, tag := 0, tagOf(member); ; i++ {
		next := bytes.IndexByte(s.tags[i:], tag)
		if next < 0 {
			return place{}, false
		}
		if i += next; bytes.Equal(r.member(i), member) {
			return place{ch: &s.seq.one, i: i}, true
		}
	}
}

func (s *rest) tagAll(r *run) {
	s.tags = slices.Grow(s.tags[:0], r.len()+1)
	for i := range r.len() {
		s.tags = append(s.tags, tagOf(r.member(i)))
	}
}

// tag inserts the tag of a member that was added at an index, if the others have theirs.
func (s *rest) tag(i int, member []byte) {
	if len(s.tags) > 0 && len(s.tags) == s.len()-1 && s.seq.single() {
		s.tags = slices.Insert(s.tags, i, tagOf(member))
	}
}

// untag removes n tags before their members are removed, if all members have theirs.
func (s *rest) untag(i, n int) {
	if len(s.tags) > 0 && len(s.tags) == s.len() && s.seq.single() {
		s.tags = slices.Delete(s.tags, i, i+n)
	} else {
		s.tags = nil
	}
}
