package change

import (
	"slices"

	"rlserver/engine/effect"
)

// elements are the kinds of effects of which a call makes one for each element of a collection.
var elements = []effect.Kind{effect.HashSet, effect.HashDelete, effect.Add, effect.Remove}

// Append appends a change to those of a call. Of changes to elements of one key that follow each
// other, only the first and the last are kept: their event is one, and a call may change a million.
func Append(list []Change, c Change) []Change {
	if n := len(list); n > 1 && c.joins(&list[n-1]) && c.joins(&list[n-2]) {
		list[n-1] = c
		return list
	}
	return append(list, c)
}

func (c *Change) joins(before *Change) bool {
	return c.Kind == before.Kind && before.Event == "" && slices.Contains(elements, c.Kind) && c.DB == before.DB &&
		c.Key == before.Key && c.Reason == Called && before.Reason == Called
}
