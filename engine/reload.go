package engine

import "rlserver/dict"

// Reload makes all keys anew from the effects that a snapshot and its loading would go through: what these cannot tell is lost. Keys whose time has
// come stay until they are deleted. It is for a call on the whole keyspace that is not writing: nothing changes, so the journal gets nothing.
func (tx *Tx) Reload() (keys int) {
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			old := sh.dbs[db].keys
			if old == nil {
				continue
			}
			sh.flush(db)
			keys += old.Len()
			tx.e.reload(db, old)
		}
	}
	return keys
}

func (e *Engine) reload(db int, old *dict.Dict[object]) {
	var b batch
	restore := func(effects []Effect) {
		for i := range effects {
			f := &effects[i]
			f.Key = e.Key(f.Key.Name)
			e.apply(e.shardOf(f.Key).find(f.DB, f.Key), f)
		}
	}
	for o := range old.All() {
		b.add(db, o)
		for _, l := range b.large {
			for more := true; more; {
				more = l.part(&b)
				b.visit(restore)
				b.effects, b.ends, b.text, b.weight = b.effects[:0], b.ends[:0], b.text[:0], 0
			}
			l.close()
		}
		b.visit(restore)
		b.reset()
	}
}
