package dict

// Passage is a walk through a dict in steps, while others change it: how far it has come, and what
// it passes by from there on.
//
//	place   0                      cursor                        2^32
//	        |  walked: may change  |  to be walked, but for what  |
//	                                  others have overtaken
type Passage struct {
	Cursor uint64 // of Scan, or passed
	// names further on that were changed, came or went since the walk began
	Overtaken map[string]struct{}
}

// Overtake is called before something changes under a name with this hash, and reports whether the
// walk was to come to it, but will not now.
// Over reports whether the walk has reached the end.
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

// LeaveOut is called before what a name holds is evicted, and reports whether the walk was to come
// to it. If the name holds something later, that overtakes the walk as a new key does.
func (p *Passage) LeaveOut(hash uint64, name []byte) bool {
	ahead := hash>>32 >= p.Cursor && !p.PassesBy(string(name))
	delete(p.Overtaken, string(name))
	return ahead
}

// PassesBy reports whether the walk leaves out what is under a name.
func (p *Passage) PassesBy(name string) bool {
	_, ok := p.Overtaken[name]
	return ok
}

// Reach moves the walk on to what Scan returned.
func (p *Passage) Reach(next uint64) {
	if p.Cursor = next; next == 0 {
		p.Cursor, p.Overtaken = passed, nil
	}
}

func (p *Passage) Over() bool { return p.Cursor == passed }

const passed = 1 << 32
