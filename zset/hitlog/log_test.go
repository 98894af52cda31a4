package hitlog

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/dict"
)

var hasher = dict.NewHasher(3, 5)

// hitText is a hit of a model of a log with ids: its time and its name.
type hitText struct {
	at   int64
	name string
}

func (h hitText) compare(other hitText) int {
	return cmp.Or(cmp.Compare(h.at, other.at), strings.Compare(h.name, other.name))
}

type texts []hitText

func (m *texts) add(h Hit) {
	x := textOf(h)
	if i, found := slices.BinarySearchFunc(*m, x, hitText.compare); !found {
		*m = slices.Insert(*m, i, x)
	}
}

func textOf(h Hit) hitText { return hitText{h.At, string(h.Append(nil))} }

func requireTexts(t *testing.T, m texts, l *Log) {
	t.Helper()
	require.NoError(t, l.Check())
	require.Equal(t, len(m), l.Len())
	var up, down texts
	l.Ascend(0, l.Len(), func(h Hit) bool { up = append(up, textOf(h)); return true })
	require.Equal(t, m, up)
	l.Descend(0, l.Len(), func(h Hit) bool { down = append(down, textOf(h)); return true })
	slices.Reverse(down)
	require.Equal(t, m, down)
}

func requireTextAnswers(t *testing.T, r *rand.Rand, m texts, l *Log) {
	t.Helper()
	at, name := int64(1000+r.IntN(40)), []byte(fmt.Sprint("a:", r.IntN(40)))
	if len(m) > 0 && r.IntN(2) == 0 {
		x := m[r.IntN(len(m))]
		at, name = x.at, []byte(x.name)
		if r.IntN(2) == 0 {
			name = append(name[:r.IntN(len(name)+1)], []string{"", "~", "0", ":", "-"}[r.IntN(5)]...)
		}
	}
	i, _ := slices.BinarySearchFunc(m, hitText{at, string(name)}, hitText.compare)
	require.Equal(t, i, l.Before(at, name), "%d %q", at, name)
	i, _ = slices.BinarySearchFunc(m, hitText{at + 1, ""}, hitText.compare)
	require.Equal(t, i, l.After(at))
	if id, n, ok := Named(name); ok {
		h := slices.IndexFunc(m, func(x hitText) bool { return x.name == string(name) })
		found, ok := l.Named(name)
		require.Equal(t, h >= 0, ok, "%q", name)
		if ok {
			require.Equal(t, string(id), string(found.ID))
			require.Equal(t, n, found.Seq)
			require.Contains(t, m, textOf(found))
		}
	}
	if len(m) == 0 {
		return
	}
	i = r.IntN(len(m))
	require.Equal(t, m[i], textOf(l.At(i)), "rank %d", i)
	require.Equal(t, m[i].at, l.TimeAt(i))
	lo := r.IntN(len(m))
	hi := lo + r.IntN(min(30, len(m)-lo)+1)
	var up, down texts
	require.True(t, l.Ascend(lo, hi, func(h Hit) bool { up = append(up, textOf(h)); return true }))
	require.True(t, l.Descend(lo, hi, func(h Hit) bool { down = append(down, textOf(h)); return true }))
	slices.Reverse(down)
	require.Equal(t, slices.Clone(m[lo:hi]), append(texts{}, up...))
	require.Equal(t, slices.Clone(m[lo:hi]), append(texts{}, down...))
	if hi > lo {
		stop := 1 + r.IntN(hi-lo)
		seen := 0
		require.False(t, l.Ascend(lo, hi, func(Hit) bool { seen++; return seen < stop }))
		require.Equal(t, stop, seen)
		seen = 0
		require.False(t, l.Descend(lo, hi, func(Hit) bool { seen++; return seen < stop }))
		require.Equal(t, stop, seen)
	}
}

// Hits with ids and without, in any order, against a list of all names.
func TestLogWithIDsMatchesModel(t *testing.T) {
	for _, many := range []int{1, 4, 60} { // chunks of many calls, and an index
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			logWithIDs(t, rand.New(rand.NewPCG(seed, 0)), many)
		})
	}
}

func logWithIDs(t *testing.T, r *rand.Rand, many int) {
	l, m := new(Log), texts(nil)
	var old *Log
	var oldModel texts
	now := int64(1000)
	ids := []string{"", "a", "a:", "a:1", "a:1:", "a:b", "a!", "1000-3", "1001-", "7", "-7"}
	for i := range many {
		ids = append(ids, fmt.Sprint("id", i), fmt.Sprint(strings.Repeat("long", 20), i))
	}
	// a name is at one time only, as in a sorted set
	held := func(h Hit) bool {
		return slices.ContainsFunc(m, func(x hitText) bool { return x.name == textOf(h).name && x.at != h.At })
	}
	for step := range 600 {
		now += int64(r.IntN(2+many) / (1 + many)) // the more ids, the more chunks a millisecond has
		at, id := now-int64(r.IntN(10)/9*r.IntN(10)), []byte(ids[r.IntN(len(ids))])
		lo := uint64(1 + r.IntN(5)/4*r.IntN(120))
		n := uint64(1 + r.IntN(4)/3*r.IntN(30))
		switch op := r.IntN(100); {
		case op < 20 && len(m) > 0:
			lo := [3]int{0, 0, r.IntN(len(m))}[r.IntN(3)]
			hi := min(len(m), lo+r.IntN(1+len(m)/[2]int{4, 50}[r.IntN(2)]))
			l.RemoveSpan(lo, hi)
			m = slices.Delete(m, lo, hi)
		case op < 24 && len(m) > 0:
			i := r.IntN(len(m))
			l.Remove(l.At(i))
			m = slices.Delete(m, i, i+1)
		case op < 30:
			l.Call(id, func(t int64, _, _ uint64) { at = t })
			l.RemoveCall(at, id, lo, lo+n)
			for i := range n {
				gone := textOf(Hit{at, lo + i, id})
				m = slices.DeleteFunc(m, func(x hitText) bool { return x == gone })
			}
		case op < 45:
			lo += uint64(r.IntN(20))
			l.Add(at, lo, lo+n)
			for i := range n {
				m.add(Hit{At: at, Seq: lo + i})
			}
		case op < 97:
			for i := range n {
				if held(Hit{at, lo + i, id}) {
					n = i
					break
				}
			}
			if n == 0 {
				continue
			}
			l.AddCall(&hasher, at, id, lo, lo+n)
			for i := range n {
				m.add(Hit{at, lo + i, id})
			}
		default:
			old, oldModel = l.Clone(), slices.Clone(m)
			if r.IntN(2) == 0 {
				l, old = old, l
			}
		}
		if over := len(m) - 1000; over > 0 {
			l.RemoveSpan(0, over)
			m = slices.Delete(m, 0, over)
		}
		requireTextAnswers(t, r, m, l)
		if step%50 == 0 {
			requireTexts(t, m, l)
			if old != nil {
				requireTexts(t, oldModel, old)
			}
		}
	}
	requireTexts(t, m, l)
	l.RemoveSpan(0, l.Len())
	requireTexts(t, nil, l)
}

func TestNamesOfCalls(t *testing.T) {
	for _, id := range []string{
		"", "a", "a:1", "a:2", "a:02", "a:0", "5-3", "-1", ":2", "a-1", "12", "a:99999999999999999",
	} {
		for _, n := range []uint64{1, 2, 10, MaxNumber} {
			name := AppendName(nil, []byte(id), n)
			gotID, got, ok := Named(name)
			assert.True(t, ok, "%s", name)
			assert.True(t, bytes.Equal([]byte(id), gotID), "%s", name)
			assert.Equal(t, n, got, "%s", name)
		}
	}
	for _, name := range []string{"a:1", "a:0", "a:02", "5-3", "a:99999999999999999"} {
		_, _, ok := Named([]byte(name))
		assert.False(t, ok, name)
	}
}

// However large a call is, it takes a few bytes and no time.
func TestCallsOfAnyCost(t *testing.T) {
	var l Log
	for i := range int64(100) {
		l.AddCall(&hasher, i, fmt.Append(nil, "request-", i), 1, MaxSeq+1)
		l.Add(i, 0, MaxSeq)
	}
	require.NoError(t, l.Check())
	require.Less(t, l.Weight(), 10_000)
	require.Equal(t, "request-50", string(l.At(l.After(49)+MaxSeq).Append(nil)))
	require.Equal(t, "request-50:1000", string(l.At(l.Before(50, []byte("request-50:1000"))).Append(nil)))
	l.RemoveSpan(l.After(9), l.Len()-10)
	require.NoError(t, l.Check())
	require.Equal(t, l.After(9)+10, l.Len())
}

// A reader changes nothing that is counted, though it may build an index.
func TestReadingChangesNoWeight(t *testing.T) {
	l := new(Log)
	for i := range 1000 {
		l.AddCall(&hasher, int64(i), fmt.Append(nil, "id", i), 1, 2)
	}
	clone := l.Clone()
	before := clone.Weight()
	_, ok := clone.Named([]byte("id500"))
	require.True(t, ok)
	require.Equal(t, before, clone.Weight())
}

// An empty id is one, also if its name is nil.
func TestRemoveOfAnEmptyID(t *testing.T) {
	l := new(Log)
	l.Add(5, 1, 3)
	l.AddCall(&hasher, 5, nil, 1, 2)
	h, ok := l.Named(nil)
	require.True(t, ok)
	l.Remove(h)
	require.Equal(t, 2, l.Len())
	require.True(t, l.Has(5, 1))
	_, ok = l.Named(nil)
	require.False(t, ok)
}
