package object

// Prefetch loads an object into the CPU's caches, for a call soon after. The result has no
// meaning, see dict.Dict.Prefetch.
func Prefetch(o Object) (sum int) {
	sum = int(o.Accessed())
	switch o := o.(type) {
	case *ZSet:
		sum += o.Set.Prefetch()
	case *String:
		sum += len(o.Value)
	}
	return sum
}

// PrefetchNext loads what an object points to, after Prefetch.
func PrefetchNext(o Object) (sum int) {
	sum = PrefetchName(o)
	switch o := o.(type) {
	case *ZSet:
		sum += o.Set.PrefetchLast()
	case *String:
		if len(o.Value) > 0 {
			sum += int(o.Value[0])
		}
	}
	return sum
}

// PrefetchName loads the name of an object.
func PrefetchName(o Object) int {
	if name := o.Name(); name != "" {
		return int(name[0])
	}
	return 0
}
