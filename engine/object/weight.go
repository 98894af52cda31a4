package object

// Weigh is what an object takes with all that belongs to it. Only apply changes what it depends on.
func Weigh(o Object) int64 {
	return entryWeight + nameWeight(o.Head().Name) + o.Weight()
}

// nameWeight is what a name takes: a short one is part of the object's allocation, see withName.
func nameWeight(name string) int64 { return int64(allocated(max(len(name), 1))) }

// allocated is what n bytes take.
func allocated(n int) int { return (n + grain - 1) / grain * grain }

// What things weigh, in bytes: what the allocator sets aside for them, as measured.
const (
	entryWeight = 26 // of a key in its database, see package dict
	fieldWeight = 48 // of a field in a large hash, beside its text
	grain       = 16 // in which allocations grow, roughly
)
