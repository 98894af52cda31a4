package rdb

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cost returns how much memory a function allocates, in bytes.
func cost(run func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// fixed is what a payload of any size may cost beyond four times its size, in bytes: an inflater,
// which is used again, and what the test itself allocates.
const fixed = 40 << 10

// requireCheap requires that a payload is refused, and has cost at most four times its size.
func requireCheap(t *testing.T, what string, payload []byte, limit int64, want error) {
	t.Helper()
	var err error
	spent := cost(func() { _, err = decode(payload, limit) })
	require.Equal(t, want, err, what)
	require.LessOrEqual(t, spent, 4*len(payload)+fixed, "%s: %d bytes", what, len(payload))
}

// deflated returns the LZF form of a text of size bytes, as a string of a payload: its head, then a
// cycle that is repeated, then its tail.
func deflated(head, cycle, tail []byte, size int) []byte {
	var b []byte
	for _, c := range [][]byte{head, cycle} {
		for part := range slices.Chunk(c, 32) {
			b = append(append(b, byte(len(part)-1)), part...)
		}
	}
	back := len(cycle) - 1
	for left := size - len(head) - len(cycle) - len(tail); left > 0; {
		n := min(left, 264)
		switch {
		case n < 3 || left-n > 0 && left-n < 3:
			n = min(left, 3+n/2)
			b, n = append(b, byte(min(n, 8)-2)<<5|byte(back>>8), byte(back)), min(n, 8)
		case n < 9:
			b = append(b, byte(n-2)<<5|byte(back>>8), byte(back))
		default:
			b = append(b, 0xe0|byte(back>>8), byte(n-9), byte(back))
		}
		left -= n
	}
	if len(tail) > 0 {
		b = append(append(b, byte(len(tail)-1)), tail...)
	}
	out := appendLength([]byte{encodedLZF}, uint64(len(b)))
	return append(appendLength(out, uint64(size)), b...)
}

// packedBomb returns a payload that inflates to a number of equal entries.
func packedBomb(kind byte, entries int, one []byte) []byte {
	var header []byte
	size := 6 + entries*len(one) + 1
	if kind == typeHashListpack || kind == typeZSetListpack {
		header = binary.LittleEndian.AppendUint32(nil, uint32(size))
	} else {
		size += 4
		header = binary.LittleEndian.AppendUint32(nil, uint32(size))
		header = binary.LittleEndian.AppendUint32(header, uint32(size-1-len(one)))
	}
	header = append(header, 0xff, 0xff)
	return AppendFooter(append([]byte{kind}, deflated(header, one, []byte{packedEnd}, size)...))
}

func TestRefusedPayloadsAreCheap(t *testing.T) {
	const entries = 1_500_000
	for what, kind := range map[string]byte{"hash": typeHashListpack, "sorted set": typeZSetListpack} {
		requireCheap(t, what, packedBomb(kind, entries, []byte{1, 1}), math.MaxInt64, ErrFormat)
	}
	ziplist := packedBomb(typeHashZiplist, entries, []byte{2, 0xf2})
	requireCheap(t, "ziplist", ziplist, math.MaxInt64, ErrFormat)
	zipmap := deflated([]byte{0xff}, []byte{0, 0, 0}, []byte{packedEnd}, 3_000_002)
	requireCheap(t, "zipmap", AppendFooter(append([]byte{typeHashZipmap}, zipmap...)), math.MaxInt64, ErrFormat)

	zeros := deflated([]byte("a"), []byte("a"), nil, 6_000_000)
	requireCheap(t, "cut off", AppendFooter(append([]byte{typeHash, 2}, append(slices.Clone(zeros), 0)...)),
		math.MaxInt64, ErrFormat)
	requireCheap(t, "too large", AppendFooter(append([]byte{typeString}, zeros...)), 1<<20, ErrTooLarge)
	twice := append(append([]byte{typeHash, 2}, zeros...), 0)
	twice = append(append(twice, zeros...), 0)
	requireCheap(t, "a long name twice", AppendFooter(twice), math.MaxInt64, ErrFormat)

	for what, claimed := range map[string][]byte{
		"hash": {typeHash}, "sorted set": {typeZSet2}, "old sorted set": {typeZSet}, "string": {typeString},
	} {
		for _, count := range []uint64{1 << 20, math.MaxUint32, 1 << 40, math.MaxUint64} {
			requireCheap(t, what, AppendFooter(appendLength(claimed, count)), math.MaxInt64, ErrFormat)
		}
	}
}

// Names occur twice at a distance, in forms that differ, and among more than the check can hold.
func TestNamesThatOccurTwiceAreFound(t *testing.T) {
	const many = 50_000
	for _, second := range []int{1, 2, many / 2, many} {
		b := AppendHash(nil, many+1)
		for i := range many {
			b = AppendText(AppendText(b, fmt.Sprint(i)), "")
		}
		b = AppendText(AppendText(b, fmt.Sprint(second-1)), "")
		requireCheap(t, fmt.Sprint(second), AppendFooter(b), math.MaxInt64, ErrFormat)
	}
	for _, size := range []int{40, maxPiece, maxPiece + 1, 5000} {
		long := strings.Repeat("a", size)
		b := AppendText(AppendText(AppendHash(nil, 2), long), "")
		b = append(b, deflated([]byte("a"), []byte("a"), nil, size)...)
		requireCheap(t, "plain and deflated", AppendFooter(AppendText(b, "")), math.MaxInt64, ErrFormat)
	}
	v, err := decode(AppendFooter(AppendText(AppendText(AppendHash(nil, 1), ""), "")), math.MaxInt64)
	require.NoError(t, err)
	assert.Equal(t, [][]byte{{}, {}}, v.Elements)
}

// A valid value is read when it inflates to much more than its payload, and when it has more names
// than the check has room for at once.
func TestLargeValuesAreRead(t *testing.T) {
	const many = 100_000
	listpack := make([]byte, 6, 6+9*many)
	for i := range many { // names of three bytes, values of one: 7 bits or a short text
		listpack = append(listpack, 0x83, byte(i>>14), byte(i>>7), byte(i), 4, 0x80, 1)
	}
	listpack = append(listpack, packedEnd)
	binary.LittleEndian.PutUint32(listpack, uint32(len(listpack)))
	listpack[4], listpack[5] = 0xff, 0xff
	v, err := decode(AppendFooter(append(appendLength([]byte{typeHashListpack}, uint64(len(listpack))), listpack...)),
		math.MaxInt64)
	require.NoError(t, err)
	assert.Len(t, v.Elements, 2*many)

	members := AppendSortedSet(nil, 2)
	for _, c := range []byte{'a', 'b'} {
		members = append(members, deflated([]byte{c}, []byte{c}, nil, 3_000_000)...)
		members = binary.LittleEndian.AppendUint64(members, math.Float64bits(1))
	}
	v, err = decode(AppendFooter(members), math.MaxInt64)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("b", 3_000_000), string(v.Members[1].Name))
	assert.Greater(t, v.Size, int64(6_000_000))
}
