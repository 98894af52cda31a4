package table

import (
	"fmt"

	"rlserver/engine/object"
)

// check returns the first invariant that does not hold.
func (t *Table) check() error {
	inUse := map[ref]bool{}
	for r := range t.dict.All() {
		if inUse[r] {
			return fmt.Errorf("two references to slot %x", r)
		}
		inUse[r] = true
	}
	empty, slots, idle := map[kind]int{}, map[kind]uint32{}, int64(0)
	for i := 1; i < len(t.pages); i++ {
		p := &t.pages[i]
		if p.at == nil {
			if p.slots != 0 || p.used != 0 {
				return fmt.Errorf("page %d is dropped, and has %d slots", i, p.slots)
			}
			continue
		}
		used := 0
		for slot := range ref(p.slots) {
			r := ref(i)<<slotBits | slot
			free := p.free[slot/64]&(1<<(slot%64)) != 0
			if free == inUse[r] {
				return fmt.Errorf("slot %x: free %v, referred to %v", r, free, inUse[r])
			}
			if p.form == 0 && (*(*object.Object)(p.slot(r)) == nil) != free {
				return fmt.Errorf("slot %x: free %v, and not nil", r, free)
			}
			if !free {
				used++
				if err := t.checkSlot(p, r); err != nil {
					return err
				}
			}
			delete(inUse, r)
		}
		if used != int(p.used) {
			return fmt.Errorf("page %d: %d slots in use, said to be %d", i, used, p.used)
		}
		if used == 0 {
			empty[p.kind]++
		}
		slots[p.kind] += uint32(p.slots)
		if p.form != 0 {
			idle += int64(p.slots-p.used) * int64(p.size)
		}
		if t.isOpen(uint32(i)) == p.full() {
			return fmt.Errorf("page %d: full %v", i, p.full())
		}
	}
	for _, of := range t.kinds {
		if of.slots != slots[of.kind] {
			return fmt.Errorf("%d slots of kind %d, said to be %d", slots[of.kind], of.kind, of.slots)
		}
	}
	for k, n := range empty {
		if n > 1 {
			return fmt.Errorf("%d empty pages of kind %d", n, k)
		}
	}
	if len(inUse) > 0 {
		return fmt.Errorf("%d references to no slot", len(inUse))
	}
	if got := t.idle.Now(); got != idle {
		return fmt.Errorf("%d bytes are idle, said to be %d", idle, got)
	}
	return t.checkGone()
}

func (t *Table) checkSlot(p *page, r ref) error {
	o := p.object(r)
	if f := object.FormOf(o); f != p.form && p.form != 0 || f != 0 && p.kind != kindOf(f, object.TextSize(o)) {
		return fmt.Errorf("slot %x: %T in a page of kind %d", r, o, p.kind)
	}
	if !p.named(r, []byte(o.Name())) {
		return fmt.Errorf("slot %x: not named %q", r, o.Name())
	}
	return nil
}

// isOpen reports whether a page is in the list of its kind, whose links it checks.
func (t *Table) isOpen(wanted uint32) (open bool) {
	last := uint32(0)
	for i := t.of(t.pages[wanted].kind).open; i != 0; i = t.pages[i].next {
		if t.pages[i].last != last {
			panic(fmt.Sprintf("page %d: last is %d, not %d", i, t.pages[i].last, last))
		}
		open, last = open || i == wanted, i
	}
	return open
}

// checkGone checks that the list of dropped pages has all of them.
func (t *Table) checkGone() error {
	listed, gone := 0, 0
	for i := t.gone; i != 0; i = t.pages[i].next {
		listed++
	}
	for i := 1; i < len(t.pages); i++ {
		if t.pages[i].at == nil {
			gone++
		}
	}
	if listed != gone {
		return fmt.Errorf("%d pages are dropped, %d listed", gone, listed)
	}
	return nil
}
