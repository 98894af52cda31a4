package dict

// Passage is the state of a walk through a dict in steps while others change it: the cursor, and
// the hashes ahead of it whose entries the walk skips.
//
//	place   0                      cursor                         2^32
//	        |  walked: may change  |  to be walked, except hashes  |
//	                                  in overtaken
//
// Hashes take less memory than names. Entries with the same hash overtake the walk together.
type Passage struct {
	Cursor uint64 // of Scan, or passed
	// of entries ahead of the cursor that were changed or added since the walk began
	overtaken *Dict[uint64]
}

// Overtake is called before an entry with this hash changes or is added. It reports whether the
// walk had not reached the hash yet: then it is to see all entries that have it now, and skips them
// from then on.
func (p *Passage) Overtake(hash uint64) bool {
	if !p.Ahead(hash) {
		return false
	}
	if p.overtaken == nil {
		p.overtaken = New(func(hash uint64) uint64 { return hash })
	}
	p.overtaken.Insert(hash, hash)
	return true
}

// Forget is called when no entry has this hash any more. One that is added later overtakes the walk
// like any new one.
func (p *Passage) Forget(hash uint64) {
	if p.overtaken != nil {
		p.overtaken.Remove(hash, func(other uint64) bool { return other == hash })
	}
}

// Ahead reports whether the walk is going to visit the entries with this hash.
func (p *Passage) Ahead(hash uint64) bool { return hash>>32 >= p.Cursor && !p.PassesBy(hash) }

// PassesBy reports whether the walk skips the entries with a hash.
func (p *Passage) PassesBy(hash uint64) bool {
	if p.overtaken == nil {
		return false
	}
	_, ok := p.overtaken.Find(hash, func(other uint64) bool { return other == hash })
	return ok
}

// Overtaken returns how many hashes ahead of the cursor the walk skips.
func (p *Passage) Overtaken() int {
	if p.overtaken == nil {
		return 0
	}
	return p.overtaken.Len()
}

// Reach moves the walk to the cursor that Scan returned.
func (p *Passage) Reach(next uint64) {
	if p.Cursor = next; next == 0 {
		p.Cursor, p.overtaken = passed, nil
	}
}

func (p *Passage) Over() bool { return p.Cursor == passed }

const passed = 1 << 32
