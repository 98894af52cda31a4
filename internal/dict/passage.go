package dict

// Passage is the state of a walk through a dict in steps while others change it: the cursor, and
// the names ahead of it that the walk skips.
//
//	place   0                      cursor                        2^32
//	        |  walked: may change  |  to be walked, except names  |
//	                                  in Overtaken
type Passage struct {
	Cursor uint64 // of Scan, or passed
	// names ahead of the cursor that were changed, added or removed since the walk began
	Overtaken map[string]struct{}
}

// Overtake is called before the entry of a name with this hash changes. It reports whether the walk
// had not reached the entry yet; from then on the walk skips it.
func (p *Passage) Overtake(hash uint64, name []byte) bool {
	if hash>>32 < p.Cursor || p.PassesBy(string(name)) {
		return false
	}
	if p.Overtaken == nil {
		p.Overtaken = make(map[string]struct{})
	}
	p.Overtaken[string(name)] = struct{}{}
	return true
}

// LeaveOut is called before the entry of a name is evicted, and reports whether the walk had not
// reached it yet. An entry that is added under the name later overtakes the walk like any new one.
func (p *Passage) LeaveOut(hash uint64, name []byte) bool {
	ahead := hash>>32 >= p.Cursor && !p.PassesBy(string(name))
	delete(p.Overtaken, string(name))
	return ahead
}

// PassesBy reports whether the walk skips the entry of a name.
func (p *Passage) PassesBy(name string) bool {
	_, ok := p.Overtaken[name]
	return ok
}

// Reach moves the walk to the cursor that Scan returned.
func (p *Passage) Reach(next uint64) {
	if p.Cursor = next; next == 0 {
		p.Cursor, p.Overtaken = passed, nil
	}
}

func (p *Passage) Over() bool { return p.Cursor == passed }

const passed = 1 << 32
