package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/counts"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/internal/dict"
	"rlserver/zset"
)

var hasher = dict.NewHasher(1, 2)

func hashOf(name string) uint64 { return hasher.Sum([]byte(name)) }

func newTable() *Table { return New(hashOf, new(counts.Sum)) }

// model is what a table should hold.
type model struct {
	*testing.T
	*rand.Rand
	table *Table
	keys  map[string]string // their objects as text
	names []string          // of the keys
}

func textOf(o object.Object) string {
	text := fmt.Sprint(o.Kind(), " ", o.Deadline(), " ", o.Accessed(), " ", o.Pressure())
	switch o := o.(type) {
	case object.State:
		return fmt.Sprint(text, o.Numbers())
	case *object.String:
		return fmt.Sprint(text, string(o.Value))
	case *object.Log:
		var p zset.Packed
		o.Load(&hasher, new(zset.Borrowed)).Packed(&p)
		return fmt.Sprint(text, o.Newest(), p)
	}
	return text
}

// name returns a name of any length, also such that no page has.
func (m *model) name() string {
	n := m.IntN(24)
	if m.IntN(4) == 0 {
		n = m.IntN(400)
	}
	return fmt.Sprintf("%d:%s", m.IntN(1000), strings.Repeat("x", n))
}

// change gives an object a random state.
func (m *model) change(o object.Object) {
	o.SetDeadline(m.Int64())
	o.Touch(m.Uint32())
	if s, ok := o.(*object.String); ok {
		s.Put(binary.LittleEndian.AppendUint64(nil, m.Uint64()))
		return
	}
	if l, ok := o.(*object.Log); ok {
		l.Put(m.packed(m.IntN(object.TextSize(l) - len(l.Name()) + 1)))
		return
	}
	count, length := m.Int64N(limit.MaxCount+1), 1+m.Int64N(limit.MaxDuration)
	object.SetState(o, &effect.Effect{
		Tokens: limit.Tokens{Missing: count, Fraction: m.Uint64(), Since: m.Int64N(1 << 46)},
		Count:  limit.Count{Start: m.Int64(), Length: length, Used: count},
		Counts: limit.Counts{Start: m.Int64(), Length: length, Current: count, Previous: m.Int64N(count + 1)},
	})
}

// packed returns hits of so many bytes.
func (m *model) packed(size int) *zset.Packed {
	p := &zset.Packed{Data: make([]byte, size), First: m.Int64N(1 << 50), N: m.IntN(1000), End: uint64(m.IntN(1000))}
	for i := range p.Data {
		p.Data[i] = byte(m.IntN(256))
	}
	p.At = p.First + m.Int64N(1<<30)
	return p
}

// repack has a log move to other memory.
func (m *model) repack() {
	if len(m.names) == 0 {
		return
	}
	name := m.names[m.IntN(len(m.names))]
	o := m.table.Find(hashOf(name), []byte(name))
	l, ok := o.(*object.Log)
	switch most := object.MaxRecord - object.FormLog.Size(len(name)); {
	case !ok || most < 0:
		return
	case m.IntN(4) == 0:
		o = object.NewString([]byte(name))
		m.table.Replace(hashOf(name), l, o)
	default:
		size := m.IntN(most + 1)
		before := textOf(l)
		l = m.table.Repack(hashOf(name), l, size)
		require.Equal(m, m.keys[name], before)
		require.Equal(m, textOf(object.NewRecord(object.FormLog, []byte(name))), textOf(l))
		require.GreaterOrEqual(m, object.TextSize(l), len(name)+size)
		o = l
	}
	m.change(o)
	m.keys[name] = textOf(o)
}

func (m *model) add(name string) {
	if _, there := m.keys[name]; there {
		return
	}
	var o object.Object
	form := object.Form(m.IntN(int(object.Forms)))
	switch {
	case form == 0:
		o = m.table.Insert(hashOf(name), object.NewString([]byte(name)))
	case m.IntN(3) == 0: // a copy that has changed before
		own := object.NewRecord(form, []byte(name))
		m.change(own)
		o = m.table.Insert(hashOf(name), own)
		require.Equal(m, textOf(own), textOf(o))
	default:
		o = m.table.Create(hashOf(name), form, []byte(name), 0)
		require.Equal(m, textOf(object.NewRecord(form, []byte(name))), textOf(o), "unused")
	}
	require.Equal(m, name, o.Name())
	require.Equal(m, form, object.FormOf(o))
	m.change(o)
	m.keys[name] = textOf(o)
	m.names = append(m.names, name)
}

// remove removes a key. What was found before stays readable.
func (m *model) remove() {
	if len(m.names) == 0 {
		return
	}
	i := m.IntN(len(m.names))
	name := m.names[i]
	o := m.table.Find(hashOf(name), []byte(name))
	m.table.Remove(hashOf(name), o)
	require.Equal(m, m.keys[name], textOf(o))
	require.Equal(m, name, o.Name())
	require.Nil(m, m.table.Find(hashOf(name), []byte(name)))
	delete(m.keys, name)
	m.names[i] = m.names[len(m.names)-1]
	m.names = m.names[:len(m.names)-1]
}

func (m *model) verify() {
	require.NoError(m, m.table.check())
	require.Equal(m, len(m.keys), m.table.Len())
	for o := range m.table.All() {
		require.Equal(m, m.keys[o.Name()], textOf(o), o.Name())
	}
	for name, text := range m.keys {
		o := m.table.Find(hashOf(name), []byte(name))
		require.NotNil(m, o, name)
		require.Equal(m, text, textOf(o))
		o = m.table.FindBy(hashOf(name), func(n string) bool { return n == name })
		require.Equal(m, text, textOf(o))
	}
}

// Tables grow, shrink to nothing and grow again, and always hold what a map holds.
func TestTableMatchesMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &model{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), table: newTable(), keys: map[string]string{}}
	for round := range 4 {
		adding := []int{90, 20}[round%2] // per cent
		for step := range 1500 {
			if m.repack(); m.IntN(100) < adding {
				m.add(m.name())
			} else {
				m.remove()
			}
			if step%250 == 0 {
				m.verify()
			}
		}
		for name, text := range m.keys { // all that changes in place
			o := m.table.Find(hashOf(name), []byte(name))
			require.Equal(t, text, textOf(o))
			m.change(o)
			m.keys[name] = textOf(o)
		}
		m.verify()
	}
	for len(m.names) > 0 {
		m.remove()
		require.NoError(t, m.table.check())
	}
	m.verify()
	m.table.Drop()
	assert.Zero(t, m.table.idle.Now())
}

// A key that comes and goes does not have pages allocated and dropped all the time, and many that
// have gone leave none behind.
func TestPagesAreKeptOrDropped(t *testing.T) {
	table := newTable()
	once := func() {
		o := table.Create(hashOf("key"), object.FormToken, []byte("key"), 0)
		table.Remove(hashOf("key"), o)
	}
	once()
	assert.Len(t, table.pages, 2)
	at := table.pages[1].at
	once()
	assert.Equal(t, at, table.pages[1].at)

	name := func(i int) []byte { return fmt.Appendf(nil, "%0*d", i%40, i) }
	for i := range 10000 {
		table.Create(hashOf(string(name(i))), object.FormFixed, name(i), 0)
	}
	require.NoError(t, table.check())
	for i := range 10000 {
		table.Remove(hashOf(string(name(i))), table.Find(hashOf(string(name(i))), name(i)))
	}
	require.NoError(t, table.check())
	assert.LessOrEqual(t, len(table.pages), 2)
	assert.Zero(t, table.idle.Now())
}

// A million buckets with names of 12 bytes take few bytes, and none with pointers but the dict's.
func TestBytesOfABucket(t *testing.T) {
	const keys = 100_000
	table := newTable()
	before := heap()
	for i := range keys {
		name := fmt.Appendf(nil, "key:%08d", i)
		table.Create(hashOf(string(name)), object.FormToken, name, 0)
	}
	assert.LessOrEqual(t, (heap()-before)/keys, uint64(60))
	runtime.KeepAlive(table)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Prefetch guesses what Find returns, or nothing, for keys that are there and that are not.
func TestPrefetch(t *testing.T) {
	table, right := newTable(), 0
	other := Place{Table: table, Hash: hashOf("other")}
	places := []Place{other, {Table: table, Hash: hashOf("key")}}
	assert.Zero(t, Prefetch(places))
	assert.Nil(t, places[1].guess)
	for i := range 1000 {
		name := fmt.Sprint(i)
		table.Create(hashOf(name), object.FormCounter, []byte(name), 0)
	}
	for i := range 2000 {
		name := fmt.Sprint(i)
		places := []Place{other, {Table: table, Hash: hashOf(name)}}
		Prefetch(places)
		if o := places[1].guess; o != nil && o == table.Find(hashOf(name), []byte(name)) {
			right++
		}
	}
	assert.Greater(t, right, 900)
	alone := []Place{{Table: table, Hash: hashOf("1")}}
	assert.Zero(t, Prefetch(alone))
	assert.Nil(t, alone[0].guess)
}

// Sweep, Scan and Random visit all objects.
func TestVisits(t *testing.T) {
	table, r := newTable(), rand.New(rand.NewPCG(1, 1))
	assert.Nil(t, table.Random(r))
	for i := range 300 {
		name := fmt.Sprint(i)
		o := table.Create(hashOf(name), object.FormFixed, []byte(name), 0)
		o.SetDeadline(int64(i))
		table.Mark(hashOf(name), int64(i))
	}
	seen := func(walk func(visit func(object.Object))) int {
		names := map[string]bool{}
		walk(func(o object.Object) { names[o.Name()] = true })
		return len(names)
	}
	assert.Equal(t, 300, seen(func(visit func(object.Object)) {
		assert.Zero(t, table.Scan(0, math.MaxInt, visit))
	}))
	assert.Equal(t, 300, seen(func(visit func(object.Object)) {
		assert.Zero(t, table.Sweep(0, 300, math.MaxInt, func(o object.Object) int64 {
			visit(o)
			return o.Deadline()
		}))
	}))
	assert.Greater(t, seen(func(visit func(object.Object)) {
		for range 3000 {
			visit(table.Random(r))
		}
	}), 250)
}

// A decision allocates nothing.
func TestLookupsDoNotAllocate(t *testing.T) {
	table, name := newTable(), []byte("key:00000001")
	hash := hasher.Sum(name)
	table.Create(hash, object.FormToken, name, 0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		o := table.Find(hash, name)
		o.SetDeadline(o.Deadline() + 1)
		table.Mark(hash, o.Deadline())
	}))
}
