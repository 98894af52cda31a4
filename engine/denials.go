package engine

import (
	"bytes"
	"cmp"
	"slices"
)

// denials counts how often the keys of a shard were denied, in a bounded place: those that were denied most, by the Space-Saving
// algorithm of Metwally, Agrawal and El Abbadi (Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005).
//
// There are maxCounters counters. A key that has none takes over the smallest, and what that had counted is noted as its error, since
// as many of its denials may have gone by. So of N denials
//
//   - a key that was denied more than N/maxCounters times has a counter;
//   - count is too high by error at most, and error is N/maxCounters at most: count-error is never too high.
//
// The counters stand in order, the highest first. The key that is denied over and over is found at the first look, and to count a
// denial is to move a counter past those that are equal.
type denials struct {
	counters []counter
}

type counter struct {
	hash         uint64 // stands for the name: nobody can find two names with one hash, see dict.Hasher
	db           int
	count, error int64
	name         []byte
}

const (
	maxCounters = 64  // in a shard
	maxTopName  = 256 // bytes of a name that are kept
)

func (d *denials) add(db int, k Key) {
	i := slices.IndexFunc(d.counters, func(c counter) bool { return c.hash == k.hash && c.db == db })
	if i < 0 {
		i = d.take(db, k)
	}
	c := d.counters[i]
	c.count++
	for ; i > 0 && d.counters[i-1].count < c.count; i-- {
		d.counters[i] = d.counters[i-1]
	}
	d.counters[i] = c
}

// take gives a key a counter, the last.
func (d *denials) take(db int, k Key) (at int) {
	if len(d.counters) < maxCounters {
		d.counters = append(d.counters, counter{})
	}
	at = len(d.counters) - 1
	c := &d.counters[at]
	c.hash, c.db, c.error = k.hash, db, c.count
	c.name = append(c.name[:0], k.Name[:min(len(k.Name), maxTopName)]...)
	return at
}

// Denials says that a key was denied at least so many times. A name that is longer than 256 bytes is cut.
type Denials struct {
	Name  []byte
	Count int64
}

// MostTop is how many keys Top can tell of at most: those that it is sure to know are far fewer.
func (e *Engine) MostTop() int { return len(e.shards) * maxCounters }

// Top is the n keys of a database that were denied most since the start, or since ResetStats, those denied most first. It counts in
// bounded memory: of the N denials of a shard's keys, a key that had more than N/64 is known, and its count too low by no more than that.
// It takes one shard's lock after the other, and what it returns is the caller's.
func (e *Engine) Top(db, n int) (top []Denials) {
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		for _, c := range sh.denied.counters {
			if c.db == db {
				top = append(top, Denials{bytes.Clone(c.name), c.count - c.error})
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(top, func(a, b Denials) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), bytes.Compare(a.Name, b.Name))
	})
	return top[:min(n, len(top))]
}
