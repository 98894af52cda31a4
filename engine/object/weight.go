package object

// Weigh returns how many bytes a key takes in memory, with its name and its entry in the dict. Only
// effects change it.
func Weigh(o Object) int64 { return o.overhead() + o.Weight() }

// nameWeight returns how many bytes a name takes. A short one is part of the object's allocation,
// see withName.
func nameWeight(name string) int64 { return int64(allocated(max(len(name), 1))) }

// allocated returns how many bytes an allocation of n bytes takes.
func allocated(n int) int { return (n + grain - 1) / grain * grain }

// Sizes of allocations in bytes, as measured.
const (
	recordWeight = 10 // of a record in its database, see package dict
	entryWeight  = 28 // of another key
	fieldWeight  = 48 // of a field in a large hash, without its text
	grain        = 16 // in which allocations grow, roughly
)
