package engine

import (
	"testing"

	"rlserver/engine/limit"
)

func BenchmarkCostOfAMillion(b *testing.B) {
	e := New(Options{Databases: 1})
	tx := e.NewTx()
	k := []Key{e.Key([]byte("k"))}
	now := int64(1_700_000_000_000)
	for b.Loop() {
		now += 1000
		tx.Begin(now, 0, k, true)
		d, err := tx.Slide(k[0], []limit.Window{{Limit: 9_000_000, Length: 500}}, 1_000_000, nil)
		if err != nil || !d.Allowed {
			b.Fatal(err, d)
		}
		tx.End()
	}
}
