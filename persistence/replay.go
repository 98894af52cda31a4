package persistence

import (
	"sort"

	"rlserver/engine/effect"
)

// A replay applies the records of a file while the next ones are read: one goroutine reads and
// decodes, another one applies what it has read, in the order of the file. They exchange batches of
// records, whose memory is reused.
type replay struct {
	r     *recovery
	from  *scanner
	batch *batch // is being filled

	full, free chan *batch
	failed     chan struct{} // closed at the first error
	ended      chan struct{}
	err        error // valid when failed or ended is closed
}

const (
	maxBatches   = 4         // in turn
	batchEffects = 2 << 10   // from which a batch is applied
	batchBytes   = 256 << 10 // and of its records
	keptEffects  = 4 << 10   // of the largest batch that is reused
	keptBytes    = 1 << 20
)

// batch is several records that follow each other.
type batch struct {
	at      int64 // the latest time of the records, Unix ms
	effects []effect.Effect
	bytes   []byte // that the effects alias
	ends    []end
}

// end is a record: where it begins in the file, and the number of effects up to its end.
type end struct {
	offset  int64
	effects int
}

// replay begins to apply the records of a file, which add is given. close must be called.
func (r *recovery) replay(from *scanner) *replay {
	p := &replay{
		r: r, from: from, batch: new(batch), full: make(chan *batch, maxBatches), free: make(chan *batch, maxBatches),
		failed: make(chan struct{}), ended: make(chan struct{}),
	}
	for range maxBatches - 1 {
		p.free <- new(batch)
	}
	from.gather = true
	go p.run()
	return p
}

// run applies batches.
func (p *replay) run() {
	defer close(p.ended)
	for b := range p.full {
		if p.err == nil {
			if p.err = p.apply(b); p.err != nil {
				close(p.failed)
			}
		}
		b.reset()
		p.free <- b
	}
}

func (p *replay) apply(b *batch) error {
	applied, err := p.r.e.ApplyAll(b.at, b.effects)
	if err != nil {
		i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i].effects > applied })
		return &damage{p.from.name, b.ends[i].offset, err}
	}
	return nil
}

func (b *batch) reset() {
	clear(b.effects)
	if *b = (batch{effects: b.effects[:0], bytes: b.bytes[:0], ends: b.ends[:0]}); cap(b.bytes) > keptBytes {
		b.bytes = nil
	}
	if cap(b.effects) > keptEffects {
		b.effects = nil
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
	select {
	case <-p.failed:
		return p.err
	default:
	}
	p.hand()
	p.batch = <-p.free
	p.from.buf, p.from.effects = p.batch.bytes, p.batch.effects
	return nil
}

// hand gives the batch, with the records that were added, to the other goroutine.
func (p *replay) hand() {
	n := 0
	if len(p.batch.ends) > 0 {
		n = p.batch.ends[len(p.batch.ends)-1].effects
	}
	p.batch.bytes, p.batch.effects = p.from.buf, p.from.effects[:n]
	p.from.buf, p.from.effects = nil, nil
	p.full <- p.batch
}

// close returns when all records that were added are applied, or one of them could not be: with
// that error. Closing it again returns the same.
func (p *replay) close() error {
	if p.batch != nil {
		p.hand()
		p.batch = nil
		close(p.full)
	}
	<-p.ended
	return p.err
}
