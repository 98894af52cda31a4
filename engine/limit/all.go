package limit

// And makes one answer of d and o, which a call that is held against both got: admitted only if it
// was by both. It speaks of one of their rules, chosen as by DecideAll; their Index says which
// comes first. RetryAfter and ResetAfter are the later ones, and the call is Free if it is so for
// both.
//
// That is when both admit, if each, once it admits a call, goes on to do so for as long as nothing
// else happens. All do but a log with hits in the future and a lease that could be renewed: their
// AdmitsFrom looks further.
func (d Decision) And(o Decision) Decision {
	answer := d
	if o.tighter(d) || !d.tighter(o) && o.Index < d.Index {
		answer = o
	}
	answer.ResetAfter, answer.Free = max(d.ResetAfter, o.ResetAfter), d.Free && o.Free
	return answer
}
