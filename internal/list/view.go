package list

import "iter"

// View is a read-only view of a list. The zero value is an empty list. It is valid until the list
// changes.
type View struct{ list *List }

// ViewOf returns a view of a list.
func ViewOf(l *List) View { return View{l} }

// Len returns the number of elements.
func (v View) Len() int {
	if v.list == nil {
		return 0
	}
	return v.list.n
}

// At returns the element of rank i, which is in range. It is valid until the list changes.
func (v View) At(i int) []byte { return v.list.At(i) }

// Range yields the elements from rank lo up to but not including hi.
func (v View) Range(lo, hi int) iter.Seq[[]byte] {
	if lo >= hi {
		return func(func([]byte) bool) {}
	}
	return v.list.Range(lo, hi)
}

// Backward yields the elements from rank hi-1 down to lo.
func (v View) Backward(lo, hi int) iter.Seq[[]byte] {
	if lo >= hi {
		return func(func([]byte) bool) {}
	}
	return v.list.Backward(lo, hi)
}

// Keep returns a view of the elements from rank lo up to but not including hi, which stays valid
// when the list changes. It costs time in proportion to the number of their runs.
func (v View) Keep(lo, hi int) View {
	if lo >= hi {
		return View{}
	}
	return View{v.list.part(lo, hi)}
}
