package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/zset"
)

// zmodel is a reference model of a sorted set: scores by member, sorted for each call.
type zmodel struct {
	scores   map[string]float64
	deadline int64
}

func (m *zmodel) sorted() []zset.Member {
	var list []zset.Member
	for member, score := range m.scores {
		list = append(list, zset.Member{Member: []byte(member), Score: score})
	}
	slices.SortFunc(list, func(x, y zset.Member) int {
		return cmp.Or(cmp.Compare(x.Score, y.Score), bytes.Compare(x.Member, y.Member))
	})
	return list
}

// find returns the members of a range: it reverses, filters and cuts the whole list.
func (m *zmodel) find(r *zset.Range) []zset.Member {
	all := m.sorted()
	if r.Reverse {
		slices.Reverse(all)
	}
	var found []zset.Member
	n := int64(len(all))
	for i, x := range all {
		start, stop := r.Start, r.Stop
		if start < 0 {
			start += n
		}
		if stop < 0 {
			stop += n
		}
		if r.By == zset.ByRank && (int64(i) < start || int64(i) > stop) ||
			r.By == zset.ByScore && !inScores(r.Scores, x.Score) || r.By == zset.ByLex && !inLex(r.Lex, x.Member) {
			continue
		}
		found = append(found, x)
	}
	if !r.Limited || r.By == zset.ByRank {
		return found
	}
	if r.Offset < 0 || r.Offset > int64(len(found)) {
		return nil
	}
	found = found[r.Offset:]
	if r.Count >= 0 {
		found = found[:min(r.Count, int64(len(found)))]
	}
	return found
}

func inScores(r zset.ScoreRange, x float64) bool {
	return (x > r.Min || x == r.Min && !r.MinOpen) && (x < r.Max || x == r.Max && !r.MaxOpen)
}

func inLex(r zset.LexRange, x []byte) bool {
	above := r.Min.Infinite < 0 || r.Min.Infinite == 0 && bytes.Compare(x, r.Min.Member) > 0 ||
		r.Min.Infinite == 0 && !r.Min.Open && bytes.Equal(x, r.Min.Member)
	below := r.Max.Infinite > 0 || r.Max.Infinite == 0 && bytes.Compare(x, r.Max.Member) < 0 ||
		r.Max.Infinite == 0 && !r.Max.Open && bytes.Equal(x, r.Max.Member)
	return above && below
}

// ztrace makes random calls on an engine and on models. The last key's members all have the score
// 0, for ranges by member.
type ztrace struct {
	*testing.T
	*rand.Rand
	tx     *Tx
	now    int64
	keys   []Key
	models []*zmodel
}

// Random calls, of up to three operations each, give the same results as the models, and their
// effects make a replica equal.
func TestSortedSetsMatchModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	log := new(recorder)
	e, replica := New(Options{Journal: log, Shards: 2, Databases: 1}), New(Options{Shards: 1, Databases: 1})
	z := &ztrace{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), tx: e.NewTx(), now: epoch}
	for _, name := range []string{"a", "b", "c", "lex"} {
		z.keys = append(z.keys, e.Key([]byte(name)))
		z.models = append(z.models, &zmodel{scores: map[string]float64{}})
	}
	operations := []func(){
		z.add, z.add, z.add, z.incrBy, z.rem, z.remRange, z.pop, z.storeRange, z.storeAlgebra, z.expire, z.reads,
		z.sample,
	}
	for range 1000 {
		z.now += z.Int64N(20)
		z.begin()
		for range 1 + z.IntN(3) {
			operations[z.IntN(len(operations))]()
		}
		z.compare()
		z.tx.End()
		requireSound(t, e)

		require.NoError(t, replica.Apply(0, log.effects()))
		log.calls = nil
		require.Equal(t, dump(e), dump(replica))
	}
}

func (z *ztrace) begin() {
	z.tx.Begin(z.now, 0, z.keys, true)
	for _, m := range z.models {
		if m.deadline != 0 && z.now > m.deadline {
			*m = zmodel{scores: map[string]float64{}}
		}
	}
}

// settle removes the deadline of a model without members, whose key does not exist.
func (m *zmodel) settle() {
	if len(m.scores) == 0 {
		m.deadline = 0
	}
}

func (z *ztrace) compare() {
	z.Helper()
	for i, m := range z.models {
		z.equal(m.sorted(), z.set(i).Range(&zall))
		at, ok := z.tx.Deadline(z.keys[i])
		require.Equal(z, len(m.scores) > 0, ok)
		require.Equal(z, m.deadline, at)
	}
}

func (z *ztrace) set(i int) zset.View {
	z.Helper()
	set, err := z.tx.ZSet(z.keys[i])
	require.NoError(z, err)
	return set
}

func (z *ztrace) equal(want []zset.Member, got zset.Members) {
	z.Helper()
	require.Equal(z, len(want), got.Len())
	i := 0
	for member, score := range got.All() {
		require.Equal(z, string(want[i].Member), string(member), "at %d", i)
		require.Equal(z, want[i].Score, score, "of %s", member)
		i++
	}
	require.Equal(z, len(want), i)
}

// any picks one of all keys, other one of those with differing scores.
func (z *ztrace) any() (int, *zmodel)   { i := z.IntN(4); return i, z.models[i] }
func (z *ztrace) other() (int, *zmodel) { i := z.IntN(3); return i, z.models[i] }

func (z *ztrace) member() []byte {
	switch z.IntN(3) {
	case 0:
		return fmt.Appendf(nil, "%d-%d", z.IntN(40), z.IntN(3)) // like the name of a hit
	case 1:
		return fmt.Append(nil, z.IntN(200))
	default:
		return fmt.Appendf(nil, "%0*d", z.IntN(20), z.IntN(60))
	}
}

func (z *ztrace) score(i int) float64 {
	switch {
	case i == 3:
		return 0
	case z.IntN(20) == 0:
		return math.Inf(1 - 2*z.IntN(2))
	default:
		return float64(z.IntN(80)-20) / 2
	}
}

func (z *ztrace) conditions() zset.AddIf {
	return [...]zset.AddIf{
		0, 0, 0, zset.IfNX, zset.IfXX, zset.IfGT, zset.IfLT, zset.IfXX | zset.IfGT, zset.IfXX | zset.IfLT,
	}[z.IntN(9)]
}

func (z *ztrace) span(i int) *zset.Range {
	r := &zset.Range{By: zset.By(z.IntN(2)), Reverse: z.IntN(2) == 0, Start: z.Int64N(40) - 20, Stop: z.Int64N(60) - 30}
	if i == 3 {
		r.By = zset.ByLex
	}
	r.Scores = zset.ScoreRange{Min: z.score(i), Max: z.score(i), MinOpen: z.IntN(3) == 0, MaxOpen: z.IntN(3) == 0}
	r.Lex.Min = zset.LexBound{Member: z.member(), Open: z.IntN(2) == 0, Infinite: int8(max(z.IntN(5)-3, 0) * -1)}
	r.Lex.Max = zset.LexBound{Member: z.member(), Open: z.IntN(2) == 0, Infinite: int8(max(z.IntN(5)-3, 0))}
	if z.IntN(2) == 0 {
		r.Limited, r.Offset, r.Count = true, z.Int64N(8)-1, z.Int64N(8)-1
	}
	return r
}

// allows is zset.AddIf.hold as Redis' manual defines it.
func allows(c zset.AddIf, exists bool, old, score float64) bool {
	switch {
	case !exists:
		return c&zset.IfXX == 0
	case c&zset.IfNX != 0:
		return false
	case c&zset.IfGT != 0:
		return score > old
	case c&zset.IfLT != 0:
		return score < old
	}
	return true
}

func (z *ztrace) add() {
	i, m := z.any()
	conditions, members, added, changed := z.conditions(), []zset.Member(nil), 0, 0
	for range z.IntN(12) {
		x := zset.Member{Member: z.member(), Score: z.score(i)}
		members = append(members, x)
		old, exists := m.scores[string(x.Member)]
		if !allows(conditions, exists, old, x.Score) {
			continue
		}
		m.scores[string(x.Member)] = x.Score
		if !exists {
			added++
		} else if old != x.Score {
			changed++
		}
	}
	gotAdded, gotChanged, err := z.tx.ZAdd(z.keys[i], conditions, members)
	require.NoError(z, err)
	require.Equal(z, [2]int{added, changed}, [2]int{gotAdded, gotChanged})
}

func (z *ztrace) incrBy() {
	i, m := z.other()
	member, by, conditions := z.member(), z.score(i), z.conditions()
	score, ok, err := z.tx.ZIncrBy(z.keys[i], conditions, member, by)

	old, exists := m.scores[string(member)]
	sum := old + by
	switch {
	case math.IsNaN(sum) && conditions&zset.IfNX == 0:
		require.ErrorIs(z, err, ErrScoreNaN)
		return
	case allows(conditions, exists, old, sum):
		require.True(z, ok)
		require.Equal(z, sum, score)
		m.scores[string(member)] = sum
	default:
		require.False(z, ok)
	}
	require.NoError(z, err)
}

func (z *ztrace) rem() {
	i, m := z.any()
	var members [][]byte
	for range z.IntN(8) {
		members = append(members, z.member())
	}
	before := len(m.scores)
	for _, x := range members {
		delete(m.scores, string(x))
	}
	n, err := z.tx.ZRem(z.keys[i], members)
	require.NoError(z, err)
	require.Equal(z, before-len(m.scores), n)
	m.settle()
}

func (m *zmodel) drop(members []zset.Member) {
	for _, x := range members {
		delete(m.scores, string(x.Member))
	}
	m.settle()
}

func (z *ztrace) remRange() {
	i, m := z.any()
	r := z.span(i)
	found := m.find(r)
	n, err := z.tx.ZRemRange(z.keys[i], r)
	require.NoError(z, err)
	require.Equal(z, len(found), n)
	m.drop(found)
}

func (z *ztrace) pop() {
	i, j := z.IntN(4), z.IntN(4)
	first := i
	if len(z.models[i].scores) == 0 {
		first = j
	}
	m, n, greatest := z.models[first], z.Int64N(5), z.IntN(2) == 0
	want := m.find(&zset.Range{Stop: math.MaxInt64, Reverse: greatest})
	want = want[:min(int(n), len(want))]
	found, err := z.tx.ZPop([]Key{z.keys[i], z.keys[j]}, n, greatest, func(from Key, popped zset.Members) {
		require.Equal(z, z.keys[first].Name, from.Name)
		z.equal(want, popped)
	})
	require.NoError(z, err)
	require.Equal(z, len(m.scores) > 0, found)
	m.drop(want)
}

func (m *zmodel) store(members []zset.Member) {
	*m = zmodel{scores: map[string]float64{}}
	for _, x := range members {
		m.scores[string(x.Member)] = x.Score
	}
}

func (z *ztrace) storeRange() {
	src, from := z.any()
	_, to := z.other()
	r := z.span(src)
	want := from.find(r)
	n := z.tx.ZStore(z.keys[slices.Index(z.models, to)], z.set(src).Range(r))
	require.Equal(z, len(want), n)
	to.store(want)
}

func (z *ztrace) storeAlgebra() {
	dst, to := z.other()
	var operands []*zmodel
	var keys []Key
	for range 1 + z.IntN(3) {
		i, m := z.any()
		operands, keys = append(operands, m), append(keys, z.keys[i])
	}
	sets, err := z.tx.ZSets(keys)
	require.NoError(z, err)
	weights := []float64{1, 2, -0.5}[:len(sets)]
	var got zset.Members
	var want *zmodel
	switch z.IntN(4) {
	case 0:
		got, want = z.tx.ZUnion(sets, nil, zset.Min), unionOf(operands, []float64{1, 1, 1}, math.Min)
	case 1:
		got, want = z.tx.ZUnion(sets, weights, zset.Max), unionOf(operands, weights, math.Max)
	case 2:
		got, want = z.tx.ZInter(sets, weights, zset.Sum), unionOf(operands, weights, sumOrZero)
		keep(want, func(member string) bool { return in(member, operands) == len(operands) })
		require.Equal(z, len(want.scores), z.tx.ZInterCard(sets, 0))
		require.Equal(z, min(len(want.scores), 2), z.tx.ZInterCard(sets, 2))
	default:
		got, want = z.tx.ZDiff(sets), &zmodel{scores: map[string]float64{}}
		for member, score := range operands[0].scores {
			want.scores[member] = score
		}
		keep(want, func(member string) bool { return in(member, operands[1:]) == 0 })
	}
	require.Equal(z, len(want.scores), z.tx.ZStore(z.keys[dst], got))
	to.store(want.sorted())
}

// unionOf aggregates the smallest operand first, as Redis does: the sum of two opposite infinities
// and a third value depends on their order.
func unionOf(operands []*zmodel, weights []float64, how func(x, y float64) float64) *zmodel {
	order := make([]int, len(operands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return len(operands[i].scores) - len(operands[j].scores) })
	all := &zmodel{scores: map[string]float64{}}
	for _, i := range order {
		for member, score := range operands[i].scores {
			score *= weights[i]
			if known, ok := all.scores[member]; ok {
				score = how(known, score)
			}
			all.scores[member] = score + 0 // turns -0 into 0
		}
	}
	return all
}

func sumOrZero(x, y float64) float64 {
	if math.IsNaN(x + y) {
		return 0
	}
	return x + y
}

func keep(m *zmodel, which func(string) bool) {
	for member := range m.scores {
		if !which(member) {
			delete(m.scores, member)
		}
	}
}

// in returns how many of the operands have a member.
func in(member string, operands []*zmodel) (n int) {
	for _, m := range operands {
		if _, ok := m.scores[member]; ok {
			n++
		}
	}
	return n
}

func (z *ztrace) expire() {
	i, m := z.any()
	at := z.now + 1 + z.Int64N(400)
	if z.tx.Expire(z.keys[i], at, 0) {
		m.deadline = at
	}
}

// reads compares all reads.
func (z *ztrace) reads() {
	i, m := z.any()
	set, r := z.set(i), z.span(i)
	found := m.find(r)
	z.equal(found, set.Range(r))
	require.Equal(z, len(found), set.Count(r))
	require.Equal(z, len(m.scores), set.Len())

	member := z.member()
	want, exists := m.scores[string(member)]
	score, ok := set.Score(member)
	require.Equal(z, exists, ok)
	require.Equal(z, want, score)
	for _, greatest := range []bool{false, true} {
		all := m.find(&zset.Range{Stop: math.MaxInt64, Reverse: greatest})
		place := slices.IndexFunc(all, func(x zset.Member) bool { return bytes.Equal(x.Member, member) })
		rank, score, ok := set.Rank(member, greatest)
		require.Equal(z, exists, ok)
		if ok {
			require.Equal(z, place, rank)
			require.Equal(z, want, score)
		}
	}

	scanned := make(map[string]float64)
	for cursor, begun := uint64(0), false; cursor != 0 || !begun; begun = true {
		cursor = set.Scan(cursor, 10, func(member []byte, score float64) { scanned[string(member)] = score })
	}
	require.Equal(z, m.scores, scanned)
}

func (z *ztrace) sample() {
	i, m := z.any()
	set, n := z.set(i), z.IntN(30)
	seen := make(map[string]bool)
	sample := set.Sample(z.Rand, int64(n))
	for member, score := range sample.All() {
		require.Equal(z, m.scores[string(member)], score)
		seen[string(member)] = true
	}
	require.Len(z, seen, min(n, len(m.scores)), "all different")
	require.Equal(z, len(seen), sample.Len())

	picked := 0
	for member, score := range set.Pick(z.Rand, n).All() {
		want, ok := m.scores[string(member)]
		require.True(z, ok)
		require.Equal(z, want, score)
		picked++
	}
	_, ok := set.Random(z.Rand)
	require.Equal(z, len(m.scores) > 0, ok)
	if ok {
		require.Equal(z, n, picked)
	}
}
