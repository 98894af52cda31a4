package limit

// And combines d and o, the answers of two limits to one call: it is admitted only if both admit
// it. Limit and Remaining are about one of the rules, chosen as in DecideAll; the Index decides
// which comes first. RetryAfter and ResetAfter are the later ones, and the call is Free if both say
// so.
//
// RetryAfter is then the time at which both admit, provided that a limit that would admit a call
// continues to admit it while nothing else happens. Exceptions are a log with hits in the future
// and a lease that could be renewed; their AdmitsFrom looks further.
func (d Decision) And(o Decision) Decision {
	answer := d
	if o.tighter(d) || !d.tighter(o) && o.Index < d.Index {
		answer = o
	}
	answer.ResetAfter, answer.Free = max(d.ResetAfter, o.ResetAfter), d.Free && o.Free
	return answer
}

// Next combines the answer about the limits before the i-th one with that about it; the first one's
// is its own.
func (d Decision) Next(o Decision, i int) Decision {
	if o.Index = i; i == 0 {
		return o
	}
	return d.And(o)
}
