package engine

// MostPrefetched is how many keys Prefetch looks after, the first of those it is given. To be of use, what it fetches has to stay in a cache until
// the calls have come to it.
const MostPrefetched = 16

// Prefetch has what stands under keys that Begin or Join was given fetched from memory, all of it side by side, for calls that come to it one after
// the other and would wait for each piece: of one key, nothing is. It changes nothing. See dict.Dict.Prefetch.
func (tx *Tx) Prefetch(keys []Key) {
	if len(keys) < 2 {
		return
	}
	var objects [MostPrefetched]object
	keys = keys[:min(len(keys), len(objects))]
	for i := range keys {
		if d := tx.e.shardOf(keys[i]).dbs[tx.db].keys; d != nil {
			tx.fetched += d.Prefetch(tx.e.place(keys[i].hash))
		}
	}
	for i := range keys {
		if d := tx.e.shardOf(keys[i]).dbs[tx.db].keys; d != nil {
			objects[i] = d.Guess(tx.e.place(keys[i].hash))
		}
	}
	for _, o := range objects[:len(keys)] {
		if o == nil {
			continue
		}
		tx.fetched += len(o.head().name)
		switch o := o.(type) {
		case *tokenObject:
			tx.fetched += int(o.high)
		case *zsetObject:
			tx.fetched += o.set.Prefetch()
		case *stringObject:
			tx.fetched += len(o.value)
		}
	}
	for _, o := range objects[:len(keys)] {
		if o == nil {
			continue
		}
		if name := o.head().name; name != "" {
			tx.fetched += int(name[0])
		}
		switch o := o.(type) {
		case *zsetObject:
			tx.fetched += o.set.PrefetchLast()
		case *stringObject:
			if len(o.value) > 0 {
				tx.fetched += int(o.value[0])
			}
		}
	}
}
