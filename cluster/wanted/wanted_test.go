package wanted

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const length = 900 * time.Millisecond

var start = time.Now()

// side is a node with a clock of its own.
type side struct {
	*Table
	name string
	rate float64
}

func (s *side) now(at time.Duration) time.Time {
	return start.Add(time.Duration(float64(at) * s.rate))
}

// tell delivers what one node says at one moment to another at a later one.
func tell(from, to *side, said, heard time.Duration) {
	to.Receive(from.name, from.Send(to.name, from.now(said)), to.now(heard))
}

func pair() (sender, runner *side) {
	return &side{New("a", length, start), "a", 1}, &side{New("b.c", length, start), "b.c", 1}
}

func TestCallsAreWantedWhileTheirSenderIsHeard(t *testing.T) {
	a, b := pair()
	epoch := a.Epoch("b.c")
	wanted := b.Wanted(epoch)
	assert.False(t, wanted(b.now(0)), "nothing was received yet")
	tell(b, a, 100*time.Millisecond, 150*time.Millisecond)
	tell(a, b, 160*time.Millisecond, 200*time.Millisecond)
	assert.True(t, wanted(b.now(100*time.Millisecond+length-1)))
	assert.False(t, wanted(b.now(100*time.Millisecond+length)), "the lease begins with the stamp")
	assert.False(t, a.Over("b.c", epoch, a.now(150*time.Millisecond+length*4/3-1)))
	assert.True(t, a.Reachable("b.c", a.now(150*time.Millisecond+length*4/3-1)))
	assert.False(t, a.Reachable("b.c", a.now(150*time.Millisecond+length*4/3)))
	assert.Equal(t, epoch, a.Epoch("b.c"))
	assert.True(t, a.Over("b.c", epoch, a.now(150*time.Millisecond+length*4/3)))

	tell(b, a, 2*time.Second, 2*time.Second)
	tell(a, b, 2*time.Second, 2*time.Second)
	assert.False(t, wanted(b.now(2*time.Second)), "the epoch was given up")
	assert.True(t, a.Over("b.c", epoch, a.now(2*time.Second)))
	assert.NotEqual(t, epoch, a.Epoch("b.c"))
	assert.True(t, b.Wanted(a.Epoch("b.c"))(b.now(2*time.Second)))
}

func TestAnEndedEpochIsOverWhenTheOtherNodeKnows(t *testing.T) {
	a, b := pair()
	tell(b, a, 0, 0)
	tell(a, b, 0, 0)
	epoch := a.Epoch("b.c")
	require.True(t, a.End("b.c", epoch))
	assert.False(t, a.End("b.c", epoch), "it has ended before")
	tell(b, a, 1, 1)
	assert.True(t, b.Wanted(epoch)(b.now(1)), "it has not heard of the next one")
	assert.False(t, a.Over("b.c", epoch, a.now(1)))
	tell(a, b, 2, 2)
	assert.False(t, b.Wanted(epoch)(b.now(2)))
	assert.False(t, a.Over("b.c", epoch, a.now(2)))
	tell(b, a, 3, 3)
	assert.True(t, a.Over("b.c", epoch, a.now(3)))

	epoch = a.Epoch("b.c")
	require.True(t, a.End("b.c", epoch))
	for at := time.Duration(4); at < length; at += length / 8 {
		tell(b, a, at, at) // it hears nothing
	}
	assert.False(t, a.Over("b.c", epoch, a.now(3+length*4/3-1)))
	assert.True(t, a.Over("b.c", epoch, a.now(3+length*4/3)))
}

func TestCallsOfOlderVersionsAndOfTheNodeItselfAreAlwaysWanted(t *testing.T) {
	a, b := pair()
	assert.Nil(t, b.Wanted(""))
	assert.Nil(t, b.Wanted("1a2b3c"))
	assert.Empty(t, a.Epoch("a"))
	assert.True(t, a.Reachable("a", a.now(time.Hour)))
	assert.False(t, a.Over("a", "", a.now(time.Hour)))
	assert.False(t, a.End("a", ""))
}

// No call of an epoch that is over begins, whatever happens to the messages: they are late, lost
// and out of order, nodes stop, and their clocks do not run at the same rate.
func TestNoCallBeginsThatWasGivenUp(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b := pair()
		a.rate, b.rate = 0.9+r.Float64()/5, 0.9+r.Float64()/5
		type message struct {
			to, from *side
			word     Message
			at       time.Duration
		}
		var way []message
		var waited, over []string // epochs that are not over, and the last that are
		stopped := map[*side]time.Duration{}
		begun := 0
		for at := time.Duration(0); at < 20*time.Second; at += 10 * time.Millisecond {
			for _, s := range []*side{a, b} {
				if r.IntN(300) == 0 {
					stopped[s] = at + time.Duration(r.IntN(3000))*time.Millisecond
				}
			}
			runs := func(s *side) bool { return at >= stopped[s] }
			for _, ends := range [][2]*side{{a, b}, {b, a}} {
				if runs(ends[0]) && r.IntN(10) == 0 {
					late := time.Duration(r.IntN(100)) * time.Millisecond
					if r.IntN(5) == 0 {
						late = time.Duration(r.IntN(5000)) * time.Millisecond
					}
					way = append(way, message{ends[1], ends[0], ends[0].Send(ends[1].name, ends[0].now(at)), at + late})
				}
			}
			kept := way[:0]
			for _, m := range way {
				if m.at <= at && runs(m.to) {
					m.to.Receive(m.from.name, m.word, m.to.now(at))
				} else {
					kept = append(kept, m)
				}
			}
			way = kept
			if runs(a) {
				epoch := a.Epoch(b.name)
				if len(waited) == 0 || waited[len(waited)-1] != epoch {
					waited = append(waited, epoch)
				}
				if r.IntN(200) == 0 {
					a.End(b.name, epoch)
				}
				over = over[max(0, len(over)-10):]
				waited = slices.DeleteFunc(waited, func(epoch string) bool {
					is := a.Over(b.name, epoch, a.now(at))
					if is {
						over = append(over, epoch)
					}
					return is
				})
			}
			if runs(b) {
				for _, epoch := range over {
					if b.Wanted(epoch)(b.now(at)) {
						t.Fatalf("seed %d: a call of %s begins at %s, which is over", seed, epoch, at)
					}
				}
				if b.Wanted(a.Epoch(b.name))(b.now(at)) {
					begun++
				}
			}
		}
		assert.Positive(t, begun)
	}
}
