package engine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Policy is a limit that has a name and is kept by the engine, for Tx.Check. All but its counts stays as it is: to change a policy is to put
// another one in its place, which is an effect like any other. Policies are of no database, and FLUSHALL leaves them.
type Policy struct {
	name   string
	text   string
	limit  Limit // without key and id
	shadow bool
	tally  *tally // nil until the engine keeps the policy; its successors of the same name count on
	former atomic.Pointer[former]
}

// Name is what Check calls it by.
func (p *Policy) Name() string { return p.name }

// Definition is its algorithm and arguments in the one form in which they are written: SLIDE 5 1m SHADOW. ParsePolicy reads it.
func (p *Policy) Definition() string { return p.text }

// Shadow tells whether the policy admits all, and only counts what it would have denied.
func (p *Policy) Shadow() bool { return p.shadow }

// Counts are how many calls the policy has admitted and denied since it was set or the server started, or since ResetStats. In SHADOW denied are those
// that it would have denied. A call that others denied is not counted here, nor is a peek, nor the retry of a call that was.
func (p *Policy) Counts() (admitted, denied int64) {
	for i := range p.tally {
		admitted += p.tally[i].admitted.Load()
		denied += p.tally[i].denied.Load()
	}
	return admitted, denied
}

// tally counts a policy's calls. Those on different shards count on different cache lines.
type tally [8]struct {
	admitted, denied atomic.Int64
	_                [48]byte
}

func (t *tally) count(shard int, admitted bool) {
	if line := &t[shard%len(t)]; admitted {
		line.admitted.Add(1)
	} else {
		line.denied.Add(1)
	}
}

func (t *tally) reset() {
	for i := range t {
		t[i].admitted.Store(0)
		t[i].denied.Store(0)
	}
}

// policies are what the engine keeps, by name: a map that is never written to, but replaced under all locks. So who holds one lock sees the
// same policies until it lets go, and who holds none may read too.
type policies map[string]*Policy

// Policy finds a policy; nil if there is none of that name. It takes no lock.
func (e *Engine) Policy(name string) *Policy { return (*e.policies.Load())[name] }

// Policies lists all policies, by name. It takes no lock.
func (e *Engine) Policies() []*Policy {
	known := *e.policies.Load()
	return slices.SortedFunc(maps.Values(known), func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
}

// applyPolicy puts a policy in the place of that of its name.
func (e *Engine) applyPolicy(f *Effect) {
	p, err := f.policy()
	if err != nil {
		panic(fmt.Sprintf("engine: %s: %v", f.Kind, err))
	}
	known := maps.Clone(*e.policies.Load())
	p.tally = new(tally)
	if before := known[p.name]; before != nil {
		p.tally = before.tally
	}
	known[p.name] = p
	e.policies.Store(&known)
}

func (e *Engine) applyPolicyDelete(f *Effect) {
	known := maps.Clone(*e.policies.Load())
	delete(known, string(f.Key.Name))
	e.policies.Store(&known)
}

// policy is what EffectPolicy speaks of.
func (f *Effect) policy() (*Policy, error) {
	return ParsePolicy(f.Key.Name, bytes.Split(f.Value, []byte{' '}))
}

func (p *Policy) effect() Effect {
	return Effect{Kind: EffectPolicy, Key: Key{Name: bytesOf(p.name)}, Value: bytesOf(p.text)}
}

// PolicyChanges tell what SetPolicies has done.
type PolicyChanges struct {
	Names    []string // of the policies that are new or say something else than before
	Switched []string // of those among them whose algorithm is another one
	Dropped  int      // how many keys these had left
	Position Position // of the last change in the journal; 0 if there was none
}

// SetPolicies puts policies, whose names differ, in the place of those of their names: all at one moment, at now (Unix ms). A changed limit holds from the
// next call on, over what was used before. Counts go on.
//
// Where the algorithm is another one, the keys of the former are deleted first, in all databases: those named `name:{…}` that hold its type and
// have a deadline. That takes steps which lock one shard each, during which the former goes on to decide. No lock may be held.
func (e *Engine) SetPolicies(now int64, list []*Policy) (c PolicyChanges) {
	e.changing.Lock()
	defer e.changing.Unlock()
	d := departure{e: e, tx: e.NewTx(), now: now, leaving: make(policies)}
	for _, p := range list {
		before := e.Policy(p.name)
		if before != nil && before.text == p.text {
			continue
		}
		c.Names = append(c.Names, p.name)
		if before != nil && before.limit.Kind != p.limit.Kind {
			c.Switched = append(c.Switched, p.name)
			d.leaving[p.name] = before
		}
	}
	if len(c.Names) == 0 {
		return c
	}
	d.dropAll()
	d.tx.BeginAll(now, 0, true)
	d.dropRest()
	for _, p := range list {
		if slices.Contains(c.Names, p.name) {
			f := p.effect()
			d.tx.perform(nil, &f)
		}
	}
	c.Dropped, c.Position = d.dropped, max(d.position, d.tx.End())
	return c
}

// DeletePolicy forgets a policy, and tells whether there was one. Its keys go when their time comes. No lock may be held.
func (e *Engine) DeletePolicy(now int64, name string) (found bool, pos Position) {
	e.changing.Lock()
	defer e.changing.Unlock()
	if e.Policy(name) == nil {
		return false, 0
	}
	tx := e.NewTx()
	tx.BeginAll(now, 0, true)
	tx.perform(nil, &Effect{Kind: EffectPolicyDelete, Key: Key{Name: []byte(name)}})
	return true, tx.End()
}

// former is a policy that is about to be replaced by one of another algorithm: calls that record something under it say so, as the walk that
// deletes its keys may have passed by.
type former struct {
	mu    sync.Mutex
	marks map[mark]struct{}
}

// mark is where something was recorded.
type mark struct {
	db   int
	name string
}

func (r *former) note(db int, k Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks[mark{db, string(k.Name)}] = struct{}{}
}

func (r *former) take() (marks map[mark]struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks, r.marks = r.marks, make(map[mark]struct{})
	return marks
}

// departure deletes what policies have left behind that are about to be replaced.
type departure struct {
	e        *Engine
	tx       *Tx
	now      int64
	leaving  policies
	due      []object
	dropped  int
	position Position
}

const (
	departureKeys   = 64 // about how many keys are looked at under a shard's lock
	departureRounds = 8  // how often it goes after calls that record under the former, before it locks all
)

// dropAll deletes all keys there are, step by step, and then most of those that have come since.
func (d *departure) dropAll() {
	if len(d.leaving) == 0 {
		return
	}
	for _, p := range d.leaving {
		p.former.Store(&former{marks: make(map[mark]struct{})})
	}
	for i := range d.e.shards {
		for db := range d.e.databases {
			for position, more := uint64(0), true; more; more = position != 0 {
				position = d.step(&d.e.shards[i], db, position)
			}
		}
	}
	for range departureRounds {
		for _, p := range d.leaving {
			for m := range p.former.Load().take() {
				k := d.e.Key([]byte(m.name))
				d.tx.Begin(d.now, m.db, []Key{k}, true)
				d.drop(d.tx.find(m.db, k))
				d.position = max(d.position, d.tx.End())
			}
		}
	}
}

// dropRest deletes, under all locks, what calls have recorded since. From here on none can.
func (d *departure) dropRest() {
	for _, p := range d.leaving {
		for m := range p.former.Load().take() {
			d.tx.Use(m.db)
			d.drop(d.tx.find(m.db, d.e.Key([]byte(m.name))))
		}
	}
	d.tx.Use(0)
}

func (d *departure) step(sh *shard, db int, position uint64) (next uint64) {
	d.tx.locked = append(d.tx.locked, sh)
	d.tx.begin(d.now, db, true)
	if keys := sh.dbs[db].keys; keys != nil {
		next = keys.Scan(position, departureKeys, func(o object) { d.due = append(d.due, o) })
		for _, o := range d.due {
			d.drop(o)
		}
		clear(d.due)
		d.due = d.due[:0]
	}
	d.position = max(d.position, d.tx.End())
	return next
}

// drop deletes an object if it is of a policy that leaves, and not something that only has such a name.
func (d *departure) drop(o object) {
	if o == nil || o.head().expireAt == 0 || o.head().expired(d.tx.now) {
		return
	}
	name, id, _ := strings.Cut(o.head().name, ":{")
	p := d.leaving[name]
	if p == nil || !strings.HasSuffix(id, "}") || o.kind() != p.limit.Kind.holds() {
		return
	}
	d.dropped++
	d.tx.delete(d.e.Key(bytesOf(o.head().name)), o)
}

// holds is what the keys of a limiter hold.
func (k LimitKind) holds() Type {
	switch k {
	case LimitToken:
		return TypeToken
	case LimitFixed:
		return TypeFixed
	}
	return TypeZSet
}
