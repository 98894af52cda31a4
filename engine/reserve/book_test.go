package reserve

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// model is a book by definition: a list in order.
type model []Reservation

func (m model) sorted() model {
	slices.SortFunc(m, func(a, b Reservation) int {
		return cmp.Or(cmp.Compare(a.Until, b.Until), bytes.Compare(a.Call, b.Call))
	})
	return m
}

func (m model) put(r Reservation) model {
	m = slices.DeleteFunc(slices.Clone(m), func(x Reservation) bool { return string(x.Call) == string(r.Call) })
	return append(m, r).sorted()
}

func (m model) over(now int64) (n int) {
	for _, r := range m {
		if r.Until <= now {
			n++
		}
	}
	return n
}

func (m model) held(now int64) (sum int64) {
	for _, r := range m {
		if r.Until > now {
			sum += r.Amount
		}
	}
	return sum
}

// requireModel compares what a book says with the model.
func requireModel(t *testing.T, m model, b *Book, r *rand.Rand) {
	t.Helper()
	require.Equal(t, len(m), b.Len())
	from := r.IntN(len(m) + 1)
	require.Equal(t, fmt.Sprint([]Reservation(m[from:])), fmt.Sprint(slices.Collect(b.All(from))))
	for range 3 {
		now := r.Int64N(60)
		require.Equal(t, m.held(now), b.Held(now))
		require.Equal(t, m.over(now), b.Over(now))
		most := r.Int64N(100)
		want, found := int64(0), false
		for _, x := range m {
			if x.Until > now && !found && m.held(x.Until) <= most {
				want, found = x.Until, true
			}
		}
		at, ok := b.Lapse(now, func(at, held int64) bool {
			require.GreaterOrEqual(t, held, m.held(at)) // more if others lapse at the same time
			return held <= most
		})
		require.Equal(t, found, ok)
		require.Equal(t, want, at)
	}
	last, ok := b.Last()
	require.Equal(t, len(m) > 0, ok)
	if ok {
		require.Equal(t, m[len(m)-1].Until, last)
	}
	same := New()
	for _, x := range m {
		same.Put(x)
		got, ok := b.Find(x.Call)
		require.True(t, ok)
		require.Equal(t, x, got)
	}
	require.Equal(t, same.Weight(), b.Weight())
	_, ok = b.Find([]byte("none"))
	require.False(t, ok)
}

func TestBookEqualsAListInOrder(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		b, m, calls := New(), model(nil), 1+r.IntN(300)
		for step := range 300 {
			switch {
			case r.IntN(8) == 0:
				n := r.IntN(4)
				if r.IntN(20) == 0 {
					n = r.IntN(len(m) + 1)
				}
				b.Forget(n)
				m = m[min(n, len(m)):]
			case r.IntN(30) == 0: // the original changes as well, and must leave the clone alone
				old := b
				b = b.Clone()
				for i := range 5 {
					old.Put(Reservation{Call: fmt.Append(nil, "x", i), Amount: 1, Until: 1})
				}
				old.Forget(r.IntN(5))
			default:
				x := Reservation{
					Call: fmt.Append(nil, "call-", r.IntN(calls)), Amount: r.Int64N(20), Until: r.Int64N(50)}
				if r.IntN(20) == 0 {
					x.Call = bytes.Repeat(x.Call, 20+r.IntN(100))
				}
				b.Put(x)
				m = m.put(x)
			}
			if step%10 == 0 {
				requireModel(t, m, b, r)
			}
		}
		requireModel(t, m, b, r)
		b.Forget(len(m) + 1)
		requireModel(t, nil, b, r)
	}
}

func TestNilBookIsEmpty(t *testing.T) {
	var b *Book
	assert.Zero(t, b.Len())
	assert.Zero(t, b.Held(0))
	assert.Zero(t, b.Open(0))
	assert.Zero(t, b.Weight())
	assert.Nil(t, b.Clone())
	_, ok := b.Find([]byte("a"))
	assert.False(t, ok)
	_, ok = b.Lapse(0, nil)
	assert.False(t, ok)
	for range b.All(0) {
		t.Fail()
	}
}

func TestReservationTakesAtMost64BytesAndItsCall(t *testing.T) {
	requireSize(t, 1000, 64+12)
}

func TestWeightIsThatOfTheHeap(t *testing.T) {
	for _, n := range []int{1, 2, 5, 10, 100} {
		requireSize(t, n, 200)
	}
}

// requireSize fills books with n reservations each.
func requireSize(t *testing.T, n int, most float64) {
	t.Helper()
	books := make([]*Book, 20_000/n)
	var call [12]byte
	before := heap()
	for i := range books {
		books[i] = New()
		for j := range n {
			books[i].Put(Reservation{Call: fmt.Appendf(call[:0], "req-%08d", j), Amount: 1, Until: int64(j)})
		}
	}
	each := float64(heap()-before) / float64(len(books)*n)
	require.LessOrEqual(t, each, most)
	require.InEpsilon(t, each, float64(books[0].Weight())/float64(n), 0.2)
	runtime.KeepAlive(books)
}

// Books that have forgotten many reservations, or long calls, give back their memory.
func TestForgottenReservationsTakeNoMemory(t *testing.T) {
	for _, long := range []int{12, 30_000} {
		for _, short := range []int{1, 64} {
			books := make([]*Book, 20)
			before := heap()
			for i := range books {
				b := New()
				b.Put(Reservation{Call: []byte("first"), Amount: 1, Until: 100})
				for j := range 63 {
					b.Put(Reservation{Call: bytes.Repeat(fmt.Append(nil, j%10), long+j), Amount: 1, Until: int64(j)})
				}
				for j := range short { // on a page of their own
					b.Put(Reservation{Call: fmt.Append(nil, j), Amount: 1, Until: 100})
				}
				b.Forget(63)
				books[i] = b
			}
			each := float64(int64(heap()-before)) / float64(len(books))
			require.Less(t, each, 4*float64(books[0].Weight()), "%d long, %d short", long, short)
			runtime.KeepAlive(books)
		}
	}
}

// Nor does the list of its pages: that of 100,000 reservations takes 100 KB.
func TestTheListOfPagesShrinks(t *testing.T) {
	b := New()
	for n, most := range map[int]int{64 * 100: 400, 64: 4, 1: 4, 0: 0} {
		for i := range 100_000 {
			b.Put(Reservation{Call: fmt.Append(nil, i), Amount: 1, Until: int64(i)})
		}
		b.Forget(100_000 - n)
		require.LessOrEqual(t, cap(b.pages), most, n)
		require.Equal(t, n, b.Len())
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC() // what other tests have left in pools
	runtime.GC() // is freed by the second
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A book whose reservations have lapsed in order is still a shallow tree.
func TestTreeIsShallow(t *testing.T) {
	b := New()
	for i := range int64(50_000) {
		b.Put(Reservation{Call: fmt.Append(nil, i), Amount: 1, Until: i})
		if i%2 == 0 {
			b.Forget(1)
		}
	}
	var depth func(x ref) int
	depth = func(x ref) int {
		if x == 0 {
			return 0
		}
		return 1 + max(depth(b.at(x).left), depth(b.at(x).right))
	}
	assert.Less(t, depth(b.root), 60)
}

func BenchmarkPutAndForget(b *testing.B) {
	book, call := New(), []byte("request-0000000")
	for i := range int64(b.N) {
		copy(call[8:], fmt.Appendf(nil, "%07d", i%1e7))
		book.Put(Reservation{Call: call, Amount: 1, Until: i})
		if book.Len() > 1000 {
			book.Forget(1)
		}
	}
}
