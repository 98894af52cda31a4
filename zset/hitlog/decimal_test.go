package hitlog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers before the cut of a text are those whose own text is less.
func TestCutsFollowTheOrderOfTexts(t *testing.T) {
	numbers := []uint64{0, 9, 10, 11, 99, 100, 101, 109, 110, 999, 1000, 12345, 1e15 - 1, 1e15, MaxSeq - 1, MaxSeq}
	for i := range uint64(1200) {
		numbers = append(numbers, i)
	}
	texts := []string{"", "00", "0", "01", "1/", "1:", "/", ":", "9:", "99", "990", "\xff", "9007199254740991",
		"90071992547409910", "9999999999999999", "99999999999999999999999", "1000000000000000/", "12a"}
	for i := range 1300 {
		texts = append(texts, fmt.Sprint(i))
	}
	for _, text := range texts {
		c := below([]byte(text))
		for _, x := range numbers {
			if c.has(x) != (strconv.FormatUint(x, 10) < text) {
				t.Fatalf("%d before %q: %t", x, text, c.has(x))
			}
		}
	}
}

func TestDigits(t *testing.T) {
	for d := 1; d <= maxDigits; d++ {
		require.Equal(t, d, digits(least(d)))
		require.Equal(t, d, digits(powers[d]-1))
	}
}

// Spans of random numbers are in the order of their texts.
func TestSpansAreInTheOrderOfTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s spans
		var all []string
		for x := r.Uint64N(3); x < 3000; x += r.Uint64N(1500) + 1 {
			n := 1 + r.Uint64N(120)
			s = s.with(x, x+n)
			for i := range n {
				all = append(all, fmt.Sprint(x+i))
			}
			x += n
		}
		slices.Sort(all)
		require.EqualValues(t, len(all), s.count())
		require.Equal(t, all[0], fmt.Sprint(s.first()))
		for i, text := range all {
			require.Equal(t, text, fmt.Sprint(s.nth(uint64(i))))
			c := below([]byte(text))
			require.EqualValues(t, i, s.before(&c))
		}
		i := r.IntN(len(all))
		var up, down []string
		s.ascend(uint64(i), func(x uint64) bool { up = append(up, fmt.Sprint(x)); return true })
		require.Equal(t, all[i:], up)
		s.descend(uint64(i), func(x uint64) bool { down = append(down, fmt.Sprint(x)); return true })
		slices.Reverse(down)
		require.Equal(t, append([]string{}, all[:len(all)-i]...), append([]string{}, down...))
	}
}
