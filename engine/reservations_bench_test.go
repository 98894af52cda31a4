package engine

import (
	"strconv"
	"testing"

	"rlserver/engine/limit"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

func BenchmarkReserve(b *testing.B) {
	e := New(Options{Journal: new(nothing)})
	e.SetPolicies(epoch, []*policy.Policy{
		mustParse("a", "TOKEN 1000000000 1 1h"), mustParse("b", "FIXED 1000000000 1h"),
	})
	tx, names := e.NewTx(), [][]byte{[]byte("a"), []byte("b")}
	keys := policyKeys(e, names, []byte("ann"))
	const hour = 3_600_000
	limits := []Limit{
		{Key: keys[0], Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1e9, Refill: 1, Period: hour}}},
		{Key: keys[1], Rule: rule.Rule{Kind: rule.Fixed, Fixed: limit.Fixed{Limit: 1e9, Window: limit.Every(hour)}}},
	}
	id := make([]byte, 0, 20)
	costs, many := []int64{1, 1}, make([][]Key, 10_000)
	for i := range many {
		many[i] = policyKeys(e, names, strconv.AppendInt(nil, int64(i), 10))
	}
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			keys := many[i%len(many)]
			tx.Begin(epoch, 1, keys, true)
			limits[0].Cost, limits[1].Cost, limits[0].Key, limits[1].Key = 1, 1, keys[0], keys[1]
			tx.All(limits)
			tx.End()
		}
	})
	b.Run("hold and settle", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			id = strconv.AppendInt(id[:0], int64(i), 10)
			call := CheckCall{Names: names, Keys: keys, Costs: costs, ID: id, TTL: 1000}
			now, keys := epoch+int64(i)/10, many[i%len(many)]
			call.Keys = keys
			tx.Begin(now, 0, keys, true)
			if _, err := tx.Check(call); err != nil {
				b.Fatal(err)
			}
			tx.End()
			tx.Begin(now, 0, keys, true)
			if _, err := tx.SettleChecked(call); err != nil {
				b.Fatal(err)
			}
			tx.End()
		}
	})
}

type nothing struct{}

func (*nothing) Append(int64, []byte) Position { return 0 }
func (*nothing) Wait(Position) error           { return nil }
