package persistence

import (
	"math"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/engine/effect"
)

// A replay applies the records of a file while the next ones are read: one goroutine reads and
// decodes, and several apply what it has read, each the effects on its part of the shards, in the
// order of the file. They exchange batches of records, whose memory is reused.
type replay struct {
	r     *recovery
	from  *scanner
	batch *batch // is being filled
	sent  int64  // effects of the batches before it

	parts []chan *batch // each gets all batches
	free  chan *batch
	ended sync.WaitGroup

	failed atomic.Int64 // the number of effects before the first that could not be applied
	mu     sync.Mutex
	err    error
}

const (
	maxBatches   = 4         // in turn
	batchEffects = 2 << 10   // from which a batch is applied
	batchBytes   = 256 << 10 // and of its records
	keptEffects  = 4 << 10   // of the largest batch that is reused
	keptBytes    = 1 << 20
	maxParts     = 4 // goroutines that apply them
)

// batch is several records that follow each other.
type batch struct {
	at      int64 // the latest time of the records, Unix ms
	before  int64 // effects of earlier batches
	effects []effect.Effect
	bytes   []byte // that the effects alias
	ends    []end

	shards [][]*effect.Effect // the effects on keys of each shard
	// not divided: the first part applies all effects, when the others have come to this batch, and
	// these wait for it
	whole      bool
	come, done sync.WaitGroup
	users      atomic.Int32 // parts that use the batch
}

// end is a record: where it begins in the file, and the number of effects up to its end.
type end struct {
	offset  int64
	effects int
}

// replay begins to apply the records of a file, which add is given. close must be called.
func (r *recovery) replay(from *scanner) *replay {
	p := &replay{r: r, from: from, free: make(chan *batch, maxBatches)}
	for range maxBatches {
		p.free <- new(batch)
	}
	p.batch = <-p.free
	p.failed.Store(math.MaxInt64)
	from.gather = true
	p.parts = make([]chan *batch, min(runtime.GOMAXPROCS(0), maxParts))
	for i := range p.parts {
		p.parts[i] = make(chan *batch, maxBatches)
		p.ended.Go(func() { p.run(i) })
	}
	return p
}

// run applies a part of all batches.
func (p *replay) run(part int) {
	tx := p.r.e.NewTx()
	for b := range p.parts[part] {
		switch {
		case !b.whole:
			p.applyPart(tx, b, part)
		case part > 0:
			b.come.Done()
			b.done.Wait()
		default:
			b.come.Wait()
			p.applyWhole(b)
			b.done.Done()
		}
		if b.users.Add(-1) == 0 {
			b.reset()
			p.free <- b
		}
	}
}

// applyPart applies the effects on every shard of a part, one shard after the other.
func (p *replay) applyPart(tx *engine.Tx, b *batch, part int) {
	for i := part; i < len(b.shards) && b.before <= p.failed.Load(); i += len(p.parts) {
		if len(b.shards[i]) == 0 {
			continue
		}
		if misfit, err := tx.ApplyTo(i, b.at, b.shards[i]); err != nil {
			p.fail(b, misfit, err) // an effect on another shard may be before it
		}
	}
}

// applyWhole applies the effects of a batch one after the other, under one hold of the locks.
func (p *replay) applyWhole(b *batch) {
	if b.before > p.failed.Load() {
		return
	}
	if misfit, err := p.r.e.ApplyAll(b.at, b.effects); err != nil {
		p.fail(b, misfit, err)
	}
}

// fail notes that an effect of a batch could not be applied. That of the first one is the error.
func (p *replay) fail(b *batch, misfit *effect.Effect, err error) {
	n := 0
	for misfit != &b.effects[n] {
		n++
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := b.before + int64(n); before < p.failed.Load() {
		i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i].effects > n })
		p.err = &damage{p.from.name, b.ends[i].offset, err}
		p.failed.Store(before)
	}
}

// divide adds each effect to those of its key's shard. It reports false if one of them has to come
// after all that are before it, as it changes several keys.
func (b *batch) divide(e *engine.Engine) (ok bool) {
	for i := range b.effects {
		if k := b.effects[i].Kind; k.HasTo() || !k.ChangesKey() {
			return false
		}
	}
	for i := range b.effects {
		f := &b.effects[i]
		f.Key = e.Key(f.Key.Name)
		shard := e.ShardOf(f.Key)
		for shard >= len(b.shards) {
			b.shards = append(b.shards, nil)
		}
		b.shards[shard] = append(b.shards[shard], f)
	}
	return true
}

func (b *batch) reset() {
	clear(b.effects)
	for i := range b.shards {
		b.shards[i] = b.shards[i][:0]
	}
	b.at, b.effects, b.bytes, b.ends = 0, b.effects[:0], b.bytes[:0], b.ends[:0]
	if cap(b.bytes) > keptBytes {
		b.bytes = nil
	}
	if cap(b.effects) > keptEffects {
		b.effects, b.shards = nil, nil
	}
}

// add has a record applied, which was read at an offset. The error is that of an earlier one.
func (p *replay) add(offset int64, rec record) error {
	p.batch.at = max(p.batch.at, rec.at)
	p.batch.ends = append(p.batch.ends, end{offset, len(p.from.effects)})
	if len(p.from.effects) < batchEffects && len(p.from.buf) < batchBytes {
		return nil
	}
	return p.pass()
}

// pass has the batch applied, and begins the next one.
func (p *replay) pass() error {
	p.hand()
	p.batch = <-p.free
	p.from.buf, p.from.effects = p.batch.bytes, p.batch.effects
	return p.failure()
}

// hand gives the batch, with the records that were added, to the other goroutines.
func (p *replay) hand() {
	b, n := p.batch, 0
	if len(b.ends) > 0 {
		n = b.ends[len(b.ends)-1].effects
	}
	b.bytes, b.effects = p.from.buf, p.from.effects[:n]
	p.from.buf, p.from.effects = nil, nil
	b.before = p.sent
	p.sent += int64(n)
	b.users.Store(int32(len(p.parts)))
	if b.whole = !b.divide(p.r.e); b.whole {
		b.come.Add(len(p.parts) - 1)
		b.done.Add(1)
	}
	for _, part := range p.parts {
		part <- b
	}
}

func (p *replay) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// close returns when all records that were added are applied, or one of them could not be: with
// that error. Closing it again returns the same.
func (p *replay) close() error {
	if p.batch != nil {
		p.hand()
		p.batch = nil
		for _, part := range p.parts {
			close(part)
		}
	}
	p.ended.Wait()
	return p.err
}
