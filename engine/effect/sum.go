package effect

import (
	"crypto/sha256"
	"encoding/binary"

	"rlserver/zset"
)

// Sum is the sum of the hashes of effects that rebuild a state, each of which sets one key, field,
// member or hit. So neither their order makes a difference, nor how they are grouped, which depends
// on the hash seed of a process and on how it has come to its state. The zero value is that of
// none.
type Sum struct {
	Sum [2]uint64
	one []byte
}

// Add adds an effect, or each of those that set as much.
func (s *Sum) Add(f *Effect) {
	part := *f
	switch f.Kind {
	case Insert:
		for e := range Elements(f.Value) {
			part.Value, part.Hi = e, part.Lo+1
			s.add(&part, 1, 0)
			if string(f.Field) != "set" { // the elements have ranks
				part.Lo++
			}
		}
	case Runs:
		for h := range EachRun(f.Value) {
			s.addHits(part, h)
		}
	case Add: // a set may have a hit among its other members, if it had another score before
		if !zset.IsHit(f.Field, f.Score) {
			s.add(f, 1, 0)
			return
		}
		at := int64(f.Score)
		seq, _ := ParseHitName(string(f.Field), at)
		s.addHits(part, Hits{At: at, Seq: seq, N: 1})
	default:
		s.add(f, 1, 0)
	}
}

func (s *Sum) addHits(part Effect, h Hits) {
	part.Kind, part.Hits = AddHits, Hits{At: h.At}
	s.add(&part, uint64(h.N), h.Numbers())
}

// add adds the hash of an effect n times, and another one as many times as the numbers of n hits
// are together, doubled: a log may have a billion hits. So of a millisecond counts how many hits it
// has, and the sum of their numbers.
func (s *Sum) add(f *Effect, n, numbers uint64) {
	s.one = Append(s.one[:0], f)
	hash := sha256.Sum256(s.one)
	s.Sum[0] += n*binary.BigEndian.Uint64(hash[0:]) + numbers*binary.BigEndian.Uint64(hash[16:])
	s.Sum[1] += n*binary.BigEndian.Uint64(hash[8:]) + numbers*binary.BigEndian.Uint64(hash[24:])
}
