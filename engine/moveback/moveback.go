// Package moveback moves the times in the values of keys that are ahead of the present, see
// engine.Engine.MoveBack.
package moveback

import (
	"bytes"
	"math"
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/zset"
)

// Mover moves times back.
type Mover struct {
	Present int64 // Unix ms
	By      int64 // ms
	Key     func(name []byte) effect.Key
	// Apply makes a change of an object
	Apply func(object.Object, *effect.Effect) object.Object
}

// Move moves the times of an object, by effects.
func (m *Mover) Move(o object.Object) {
	k, expireAt := m.Key(object.BytesOf(o.Name())), o.Deadline()
	m.reservations(k, o)
	m.bans(k, o)
	switch o := o.(type) {
	case object.State:
		f := &effect.Effect{Key: k, ExpireAt: m.deadline(expireAt)}
		moved, extended := o.MoveBack(f, m.Present, m.By), object.ExtensionOf(o) != nil
		if extended { // the deadline is not only that of the state
			f.ExpireAt = max(f.ExpireAt, m.deadline(expireAt))
		}
		if moved {
			m.Apply(o, f)
		}
		if !extended || moved {
			return
		}
	case *object.ZSet:
		m.calls(k, o)
		m.manyHits(k, o)
		m.members(k, o)
	}
	if at := m.deadline(expireAt); at != expireAt {
		m.Apply(o, &effect.Effect{Kind: effect.Expire, Key: k, ExpireAt: at})
	}
}

// reservations moves the times of reservations. What is open at the latest moment lapses as much
// later; a call that was settled is remembered as long.
func (m *Mover) reservations(k effect.Key, o object.Object) {
	book := object.ExtensionOf(o).Reservations()
	for _, r := range slices.Collect(book.All(book.Over(m.Present))) {
		at := r.Until - m.By
		if !r.Settled() {
			at = m.deadline(r.Until)
		}
		if at != r.Until {
			m.Apply(o, &effect.Effect{
				Kind: effect.Reserve, Key: k, Field: r.Call, ExpireAt: o.Deadline(),
				Hold: effect.Hold{Amount: r.Amount, Until: at},
			})
		}
	}
}

// bans moves the times of denials and bans.
func (m *Mover) bans(k effect.Key, o object.Object) {
	past := func(at int64) int64 {
		if at > m.Present {
			return at - m.By
		}
		return at
	}
	if n, change, moved := object.ExtensionOf(o).Bans().MoveBack(m.deadline, past); moved {
		m.Apply(o, &effect.Effect{Kind: effect.Ban, Key: k, Lo: n, Value: change, ExpireAt: o.Deadline()})
	}
}

// deadline moves a time that may be in the future even if the clock is right.
func (m *Mover) deadline(at int64) int64 {
	if at == 0 || at == math.MaxInt64 || at-m.Present < m.By/2 {
		return at
	}
	return at - m.By
}

// calls moves the hits of calls with ids.
func (m *Mover) calls(k effect.Key, o *object.ZSet) {
	var ahead []effect.Effect
	for part := range o.Set.CallParts() {
		o.Set.VisitCalls(part, func(at int64, id []byte, lo, n uint64) {
			if at <= m.Present {
				return
			}
			for h := range effect.Split(at, lo, n) {
				ahead = append(ahead, effect.Effect{Kind: effect.Uncall, Key: k, Field: bytes.Clone(id), Hits: h})
			}
		})
	}
	for _, old := range ahead {
		moved := old
		moved.Kind, moved.ExpireAt = effect.Call, o.Deadline()
		moved.Hits.At = max(moved.Hits.At-m.By, 0)
		m.Apply(o, &moved)
		m.Apply(o, &old)
	}
}

// span is hits of a millisecond with consecutive numbers.
type span struct {
	at     int64
	seq, n uint64
}

// manyHits moves the hits of the milliseconds with many of them together, without writing them out.
func (m *Mover) manyHits(k effect.Key, o *object.ZSet) {
	var ahead []span
	for part := range o.Set.HitParts() {
		o.Set.VisitHits(part, func(at int64, seq, n uint64) {
			if at > m.Present {
				ahead = append(ahead, span{at, seq, n})
			}
		})
	}
	for len(ahead) > 0 {
		i, total := 0, uint64(0)
		for ; i < len(ahead) && ahead[i].at == ahead[0].at; i++ {
			total += ahead[i].n
		}
		if total >= effect.ManyHits {
			for _, s := range ahead[:i] {
				m.addHits(k, o, s)
			}
			m.removeHits(k, o, ahead[0].at)
		}
		ahead = ahead[i:]
	}
}

// addHits adds hits at the time to which they move, with their numbers or the next free ones.
func (m *Mover) addHits(k effect.Key, o *object.ZSet, s span) {
	at := s.at - m.By
	seq := o.Set.Free(at, s.seq, s.n)
	if seq > zset.MaxSeq-s.n {
		seq = o.Set.Free(at, 0, s.n)
	}
	if seq > zset.MaxSeq-s.n && s.n > 1 {
		m.addHits(k, o, span{s.at, s.seq, s.n / 2})
		m.addHits(k, o, span{s.at, s.seq, s.n - s.n/2})
		return
	}
	m.Apply(o, &effect.Effect{Kind: effect.AddHits, Key: k,
		Hits: effect.Hits{At: at, Seq: seq, N: int64(s.n)}, ExpireAt: o.Deadline()})
}

// removeHits removes the hits of a millisecond, from between the other members with this score.
func (m *Mover) removeHits(k effect.Key, o *object.ZSet, at int64) {
	lo, hi := o.Set.FirstAfter(math.Nextafter(float64(at), 0)), o.Set.FirstAfter(float64(at))
	ends := []int{lo - 1}
	for member, score := range o.Set.Others(0) {
		if score == float64(at) {
			rank, _, _ := o.Set.Rank(member)
			ends = append(ends, rank)
		}
	}
	ends = append(ends, hi)
	for i := len(ends) - 1; i > 0; i-- {
		if from := ends[i-1] + 1; from < ends[i] {
			m.Apply(o, &effect.Effect{Kind: effect.RemoveSpan, Key: k, Lo: from, Hi: ends[i]})
		}
	}
}

// members moves the scores of a sorted set that are times.
func (m *Mover) members(k effect.Key, o *object.ZSet) {
	type member struct {
		name string
		at   int64
		hit  bool
	}
	var moved []member
	last := 0.0
	if n := o.Set.Len(); n > 0 {
		last = o.Set.ScoreAt(n - 1)
	}
	leases := limit.Lapse(last) == o.ExpireAt // the deadline of a log of hits is after the last hit
	for name, score := range o.Set.Ascend(o.Set.FirstAfter(float64(m.Present)), o.Set.Len()) {
		at := int64(score)
		_, hit := effect.ParseHitName(string(name), at)
		switch {
		case score > math.MaxInt64/2 || float64(at) != score:
		case hit, at <= o.ExpireAt && (!leases || m.deadline(at) != at):
			moved = append(moved, member{string(name), at, hit})
		}
	}
	for _, x := range moved {
		f := effect.Effect{Kind: effect.Add, Key: k, Field: []byte(x.name), Score: float64(x.at - m.By)}
		if x.hit {
			f.Field = object.FreeHit(o, x.name, x.at, x.at-m.By)
		}
		m.Apply(o, &f)
		if x.hit {
			m.Apply(o, &effect.Effect{Kind: effect.Remove, Key: k, Field: []byte(x.name)})
		}
	}
}
