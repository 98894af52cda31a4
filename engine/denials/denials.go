package denials

import (
	"bytes"
	"cmp"
	"slices"

	"rlserver/engine/rule"
)

// Counters counts how often keys were denied, in bounded memory: the keys denied most, by the
// Space-Saving algorithm of Metwally, Agrawal and El Abbadi (Efficient Computation of Frequent and
// Top-k Elements in Data Streams, ICDT 2005).
//
// There are MaxCounters counters. A key without a counter takes over the one with the smallest
// count, which becomes the key's error: at most this number of its denials were missed. So of N
// denials
//
//   - a key that was denied more than N/MaxCounters times has a counter;
//   - count is too high by at most error, and error is at most N/MaxCounters: count-error is never
//     too high.
//
// The counters are sorted, the highest first, so a key that is denied repeatedly is found at once.
// A counter that is incremented is swapped with the first of those with the same count.
type Counters struct {
	// by counter, in an array of their own, so that searching them reads few cache lines
	keys     []hashed
	counters []counter
}

// hashed identifies a key: no client can find two names with one hash, see dict.Hasher.
type hashed struct {
	hash uint64
	db   int
}

type counter struct {
	count, error int64
	name         []byte
	rule         *rule.Rule // that denied last
	known        bool       // false: no rule of this server has decided
	cut          bool       // name is not the whole name
}

const (
	MaxCounters = 64  // the most keys that are counted
	MaxName     = 256 // bytes of a name that are kept
)

// Add counts a denial by a rule; nil: no rule has decided. It copies name and rule.
func (d *Counters) Add(db int, hash uint64, name []byte, by *rule.Rule) {
	i := slices.Index(d.keys, hashed{hash, db})
	if i < 0 {
		i = d.take(db, hash, name)
	}
	first, _ := slices.BinarySearchFunc(d.counters[:i], d.counters[i].count, func(c counter, count int64) int {
		return cmp.Compare(count, c.count)
	})
	d.keys[i], d.keys[first] = d.keys[first], d.keys[i]
	d.counters[i], d.counters[first] = d.counters[first], d.counters[i]
	c := &d.counters[first]
	c.count++
	if c.known = by != nil; c.known {
		*c.rule = *by
	}
}

// take assigns the last counter to a key, a new one if there are fewer than MaxCounters.
func (d *Counters) take(db int, hash uint64, name []byte) (at int) {
	if len(d.counters) < MaxCounters {
		d.keys, d.counters = append(d.keys, hashed{}), append(d.counters, counter{rule: new(rule.Rule)})
	}
	at = len(d.counters) - 1
	c := &d.counters[at]
	d.keys[at], c.error = hashed{hash, db}, c.count
	c.name = append(c.name[:0], name[:min(len(name), MaxName)]...)
	c.cut = len(name) > MaxName
	return at
}

// Count is a lower bound of how often a key was denied. A name longer than MaxName is cut.
type Count struct {
	DB    int
	Name  []byte
	Count int64
	// Rule is the rule that denied last; nil if no limiter has decided, as for INCREX.
	Rule *rule.Rule
	// Hash identifies a key whose name was cut; 0 for others.
	Hash uint64
}

// AllDatabases is the argument of Append for all databases.
const AllDatabases = -1

// Append appends copies of the counts of a database, or of all, to a list.
func (d *Counters) Append(list []Count, db int) []Count {
	for i := range d.counters {
		if of := d.keys[i].db; of == db || db == AllDatabases {
			c := d.counters[i].copied(of)
			if d.counters[i].cut {
				c.Hash = d.keys[i].hash
			}
			list = append(list, c)
		}
	}
	return list
}

// Rule returns a copy of the rule that denied a key last; nil if the key has no counter, or no
// limiter has decided.
func (d *Counters) Rule(db int, hash uint64) *rule.Rule {
	if i := slices.Index(d.keys, hashed{hash, db}); i >= 0 {
		return d.counters[i].copied(db).Rule
	}
	return nil
}

func (c *counter) copied(db int) Count {
	d := Count{DB: db, Name: bytes.Clone(c.name), Count: c.count - c.error}
	if c.known {
		by := *c.rule
		d.Rule = &by
	}
	return d
}

// Top sorts a list, the highest counts first, and returns the first n.
func Top(list []Count, n int) []Count {
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), bytes.Compare(a.Name, b.Name), cmp.Compare(a.DB, b.DB))
	})
	return list[:min(n, len(list))]
}
