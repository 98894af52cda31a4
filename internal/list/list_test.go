package list

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// model is a list as a slice, with a clone of an earlier time and what it held.
type model struct {
	*rand.Rand
	list   List
	want   []string
	clone  *List
	cloned []string
}

func (m *model) element() []byte {
	size := m.IntN(40)
	switch m.IntN(60) {
	case 0:
		size = 100 + m.IntN(100)
	case 1:
		size = RunSize - 10 + m.IntN(20)
	case 2:
		size = 16380 + m.IntN(10)
	}
	return bytes.Repeat([]byte{byte('a' + m.IntN(26))}, size)
}

func (m *model) step() {
	n := len(m.want)
	switch m.IntN(10) {
	case 0, 1:
		m.insert(0)
	case 2, 3:
		m.insert(n)
	case 4, 5, 6:
		m.insert(m.IntN(n + 1))
	case 7:
		m.remove(0, min(n, m.IntN(4)))
	case 8:
		m.remove(n-min(n, m.IntN(4)), n)
	default:
		lo := m.IntN(n + 1)
		m.remove(lo, lo+m.IntN(min(n-lo, 1+m.IntN(1+m.IntN(400)))+1))
	}
}

func (m *model) insert(i int) {
	e := m.element()
	m.list.Insert(i, e)
	m.want = slices.Insert(m.want, i, string(e))
}

func (m *model) remove(lo, hi int) {
	m.list.Remove(lo, hi)
	m.want = slices.Delete(m.want, lo, hi)
}

func texts(elements func(func([]byte) bool)) []string {
	list := []string{}
	for e := range elements {
		list = append(list, string(e))
	}
	return list
}

func (m *model) check(t *testing.T) {
	t.Helper()
	require.NoError(t, m.list.Check())
	n := len(m.want)
	require.Equal(t, n, m.list.Len())
	lo := m.IntN(n + 1)
	hi := lo + m.IntN(n-lo+1)
	require.True(t, slices.Equal(m.want[lo:hi], texts(m.list.Range(lo, hi))))
	backward := texts(m.list.Backward(lo, hi))
	slices.Reverse(backward)
	require.True(t, slices.Equal(m.want[lo:hi], backward))
	kept := ViewOf(&m.list).Keep(lo, hi)
	require.True(t, slices.Equal(m.want[lo:hi], texts(kept.Range(0, kept.Len()))))
	if n > 0 {
		i := m.IntN(n)
		require.Equal(t, m.want[i], string(m.list.At(i)))
	}
	if m.clone != nil {
		require.NoError(t, m.clone.Check())
		require.True(t, slices.Equal(m.cloned, texts(m.clone.All())))
	}
}

// Random changes of a list and of its clones agree with a slice, and cost the same memory whether
// clones exist or not.
func TestListAgreesWithASlice(t *testing.T) {
	for seed := range uint64(30) {
		m := model{Rand: rand.New(rand.NewPCG(seed, 0))}
		alone := model{Rand: rand.New(rand.NewPCG(seed, 0))}
		for i := range 1500 {
			m.step()
			alone.step()
			if i%7 == 0 {
				m.check(t)
				alone.check(t)
				require.Equal(t, alone.list.Bytes(), m.list.Bytes())
			}
			if i%50 == 49 {
				m.clone, m.cloned = m.list.Clone(), slices.Clone(m.want)
				if i%100 == 99 { // the clone changes, and the list is what does not
					m.list, *m.clone = *m.clone, m.list
				}
			}
		}
		m.remove(0, len(m.want))
		m.check(t)
	}
}

func TestEntriesOfAllLengths(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 128, 129, 16380, 16381, 16382, 16383, 16384, 1 << 21} {
		e := bytes.Repeat([]byte("x"), n)
		b := appendEntry([]byte("before"), e)[len("before"):]
		assert.Len(t, b, entrySize(n))
		read, size := first(b)
		assert.Equal(t, e, read)
		assert.Equal(t, len(b), size, n)
		assert.Equal(t, len(b), lastSize(b), n)
	}
}

func TestElementsCostLittle(t *testing.T) {
	const n = 100_000
	for name, at := range map[string]func(*List) int{
		"at the end": (*List).Len, "at the front": func(*List) int { return 0 },
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var l List
		for i := range n {
			l.Insert(at(&l), fmt.Appendf(nil, "%020d", i))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		assert.Less(t, float64(after.HeapAlloc-before.HeapAlloc)/n, 28.0, name)
		assert.Less(t, float64(l.Weight())/n, 28.0, name)
		assert.InDelta(t, float64(after.HeapAlloc-before.HeapAlloc), l.Weight(), n, name)
		runtime.KeepAlive(&l)
	}
}

// A list that was long takes little memory when most of it is gone.
func TestShortListsTakeLittle(t *testing.T) {
	for name, leave := range map[string]func(l *List){
		"the first":  func(l *List) { l.Remove(2, l.Len()) },
		"the last":   func(l *List) { l.Remove(0, l.Len()-2) },
		"one by one": func(l *List) { removeOneByOne(l) },
	} {
		var l List
		for i := range 10_000 {
			l.Insert(i, fmt.Appendf(nil, "%020d", i))
		}
		leave(&l)
		assert.Equal(t, 2, l.Len(), name)
		assert.Less(t, l.Weight(), 600, name)
	}
}

func removeOneByOne(l *List) {
	for l.Len() > 2 {
		l.Remove(1, 2)
	}
}

func BenchmarkRandomRemoval(b *testing.B) {
	var l List
	for i := range b.N {
		l.Insert(i, []byte("12345678901234567890"))
	}
	b.ResetTimer()
	for i := b.N - 1; i >= 0; i-- {
		if i%2 == 0 {
			l.Remove(i, i+1)
		}
	}
}

func BenchmarkQueue(b *testing.B) {
	var l List
	e := []byte("12345678901234567890")
	for range 1000 {
		l.Insert(0, e)
	}
	for range b.N {
		l.Insert(0, e)
		l.Remove(l.Len()-1, l.Len())
	}
}

func BenchmarkIndex(b *testing.B) {
	var l List
	for i := range 1_000_000 {
		l.Insert(i, []byte("12345678901234567890"))
	}
	b.ResetTimer()
	for i := range b.N {
		l.At(i * 7919 % l.Len())
	}
}
