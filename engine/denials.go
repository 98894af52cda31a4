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
// The counters stand in order, the highest first: the key that is denied over and over is found at the first look. A counter that goes up
// changes places with the first of those that it was equal to.
type denials struct {
	whose    []hashed // by counter, side by side, so that it takes a few cache lines to look through them
	counters []counter
}

// hashed stands for a key: nobody can find two names with one hash, see dict.Hasher.
type hashed struct {
	hash uint64
	db   int
}

type counter struct {
	count, error int64
	name         []byte
}

const (
	maxCounters = 64  // in a shard
	maxTopName  = 256 // bytes of a name that are kept
)

func (d *denials) add(db int, k Key) {
	i := slices.Index(d.whose, hashed{k.hash, db})
	if i < 0 {
		i = d.take(db, k)
	}
	first, _ := slices.BinarySearchFunc(d.counters[:i], d.counters[i].count, func(c counter, count int64) int {
		return cmp.Compare(count, c.count)
	})
	d.whose[i], d.whose[first] = d.whose[first], d.whose[i]
	d.counters[i], d.counters[first] = d.counters[first], d.counters[i]
	d.counters[first].count++
}

// take gives a key a counter, the last.
func (d *denials) take(db int, k Key) (at int) {
	if len(d.counters) < maxCounters {
		d.whose, d.counters = append(d.whose, hashed{}), append(d.counters, counter{})
	}
	at = len(d.counters) - 1
	c := &d.counters[at]
	d.whose[at], c.error = hashed{k.hash, db}, c.count
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
		for j, c := range sh.denied.counters {
			if sh.denied.whose[j].db == db {
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
