package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/ban"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
	"rlserver/engine/script"
	"rlserver/internal/bitmap"
	"rlserver/internal/rdb"
	"rlserver/zset"
)

// walk makes random calls of all kinds on an engine and moves its clock on. The seed determines all
// calls.
type walk struct {
	*rand.Rand
	e       *Engine
	tx      *Tx
	sweeper *Sweeper
	log     *recorder
	now     int64
	db      int
	named   bool     // all calls of sliding windows have an id, so that no shard numbers their hits
	calls   []string // the calls and their answers
}

const walkDatabases = 3

func newWalk(seed uint64, o Options) *walk {
	w := &walk{Rand: rand.New(rand.NewPCG(seed, 1)), log: new(recorder), now: epoch}
	o.Databases, o.Journal = walkDatabases, w.log
	w.e = New(o)
	w.tx, w.sweeper = w.e.NewTx(), w.e.NewSweeper()
	w.e.memory.Reservations.Set(4, 100)
	return w
}

// steps makes n calls.
func (w *walk) steps(n int) *walk {
	names := slices.Sorted(maps.Keys(walkCalls))
	for range n {
		w.now += []int64{0, 0, 0, 0, 1, 1, 7, 150, 900}[w.IntN(9)]
		w.db = w.IntN(walkDatabases)
		if w.IntN(40) == 0 { // the engines that replay this have other settings
			w.e.memory.Reservations.Set(1+w.Int64N(6), 1+w.Int64N(200))
		}
		if w.IntN(5) == 0 {
			w.sweeper.Step(w.now)
		}
		name := names[w.IntN(len(names))]
		if rareCalls[name] && w.IntN(15) > 0 {
			continue
		}
		w.calls = append(w.calls, fmt.Sprintf("%d %s: %s", w.now, name, walkCalls[name](w)))
	}
	return w
}

// some picks n keys, mostly of those that hold a family's type, so that most calls find the right
// type.
func (w *walk) some(family string, n int) (keys []Key) {
	for range n {
		from := family
		if w.IntN(6) == 0 {
			from = "shtfzqm"[w.IntN(7):][:1]
		}
		keys = append(keys, w.e.Key(fmt.Appendf(nil, "%s%d", from, w.IntN(4))))
	}
	return keys
}

// any picks n keys of any families.
func (w *walk) any(n int) (keys []Key) {
	for range n {
		keys = append(keys, w.some("shtfzqm"[w.IntN(7):][:1], 1)...)
	}
	return keys
}

// write makes a call that may change keys, read one that may not, and all one on the whole
// keyspace. Each returns the keys' names and the answer.
func (w *walk) write(keys []Key, call func(k []Key) []any) string {
	return w.call(func() { w.lock(keys, true) }, keys, call)
}

func (w *walk) read(keys []Key, call func(k []Key) []any) string {
	return w.call(func() { w.lock(keys, false) }, keys, call)
}

// lock holds the keys, in one of the possible ways.
func (w *walk) lock(keys []Key, writing bool) {
	waited := w.IntN(len(keys) + 1)
	w.tx.Begin(w.now, w.db, keys[:waited], false)
	if !w.tx.Join(keys[waited:]) { // another call holds their shards
		w.tx.End()
		w.tx.Begin(w.now, w.db, keys, false)
	}
	w.tx.Prefetch(keys)
	w.tx.Next(w.db, writing)
	if waited == len(keys) && w.IntN(4) == 0 && w.tx.Hold(false) {
		w.between(keys)
		w.tx.Enter()
		if w.IntN(2) == 0 {
			w.tx.Leave()
			w.between(keys)
			w.tx.Enter()
		}
	}
}

// between has another call use a key while these are held without their locks: unless another walk
// holds keys, too, as the two could wait for each other.
func (w *walk) between(held []Key) {
	if w.e.Holds.Len() > 1 {
		return
	}
	k := w.some("z", 1)[0]
	if slices.ContainsFunc(held, func(h Key) bool { return h.Hash == k.Hash }) {
		return
	}
	other := w.e.NewTx()
	other.Begin(w.now, w.db, []Key{k}, true)
	defer other.End()
	if w.IntN(2) == 0 {
		cost, id := w.hits()
		other.Slide(k, []limit.Window{{Limit: 8, Length: 700}}, cost, id)
	} else {
		other.ZPop([]Key{k}, 1, w.IntN(2) == 0, func(Key, zset.Members) {})
	}
}

func (w *walk) all(call func() []any) string {
	return w.call(func() { w.tx.BeginAll(w.now, w.db, true) }, nil, func([]Key) []any { return call() })
}

func (w *walk) call(begin func(), keys []Key, call func(k []Key) []any) (reported string) {
	begin()
	defer func() {
		w.tx.Resume()
		w.tx.End()
	}()
	for _, k := range keys {
		reported += fmt.Sprintf("%q ", k.Name)
	}
	return reported + fmt.Sprintln(call(keys)...)
}

// answer returns the results of a method as a list.
func answer(values ...any) []any { return values }

func (w *walk) value() []byte {
	return fmt.Appendf(nil, "%0*d", w.IntN(5), w.IntN(10_000))
}

// field returns one of 12 field names.
func (w *walk) field() []byte { return fmt.Appendf(nil, "f%d", w.IntN(12)) }

func (w *walk) fields() (list [][]byte) {
	for range 1 + w.IntN(4) {
		list = append(list, w.field())
	}
	return list
}

func (w *walk) deadline() int64 { return w.now - 200 + w.Int64N(3000) }

func (w *walk) scores() zset.ScoreRange {
	lo := w.IntN(20)
	return zset.ScoreRange{
		Min:     float64(lo),
		Max:     float64(lo + w.IntN(10)),
		MinOpen: w.IntN(2) == 0,
		MaxOpen: w.IntN(2) == 0,
	}
}

func (w *walk) zrange() *zset.Range {
	switch w.IntN(3) {
	case 0:
		start := w.Int64N(6) - 3
		return &zset.Range{Start: start, Stop: start + w.Int64N(3), Reverse: w.IntN(2) == 0}
	case 1:
		return &zset.Range{
			By:      zset.ByScore,
			Scores:  w.scores(),
			Limited: w.IntN(2) == 0,
			Offset:  w.Int64N(3),
			Count:   w.Int64N(4) - 1,
		}
	}
	return &zset.Range{
		By:  zset.ByLex,
		Lex: zset.LexRange{Min: zset.LexBound{Member: w.field()}, Max: zset.LexBound{Infinite: 1}},
	}
}

func (w *walk) sets(keys []Key) []zset.View {
	sets, err := w.tx.ZSets(keys)
	if err != nil {
		return nil
	}
	return sets
}

// describe returns members and scores as text, in order.
func describe(m zset.Members) string {
	text := fmt.Sprint(m.Len(), ":")
	for member, score := range m.All() {
		text += fmt.Sprintf(" %s=%v", member, score)
	}
	return text
}

// hits returns the cost and the id of a call of a sliding window.
func (w *walk) hits() (cost int64, id []byte) {
	if w.named || w.IntN(4) == 0 {
		id = fmt.Appendf(nil, "id%d", w.IntN(50))
	}
	return w.Int64N(4), id
}

// setPolicies sets some of the policies that Check is called with.
func (w *walk) setPolicies() {
	var list []*policy.Policy
	for _, name := range []string{"a", "b", "c", "d"} {
		if w.IntN(2) == 0 {
			list = append(list, randomPolicy(w.Rand, name))
		}
	}
	w.e.SetPolicies(w.now, list)
}

// override sets or deletes an override of the ids that Check has.
func (w *walk) override() {
	name, id := []byte{byte('a' + w.IntN(4))}, fmt.Append(nil, w.IntN(3))
	k := policyKeys(w.e, [][]byte{name}, id)[0]
	if w.IntN(3) == 0 {
		w.publish(effect.Effect{Kind: effect.OverrideDelete, Key: k})
		return
	}
	p := w.e.Policy(string(name))
	if p == nil {
		return
	}
	words := bytes.Fields([]byte(p.Definition()))
	words[1] = fmt.Append(nil, 1+w.IntN(9))
	for i := range words {
		if option := string(words[i]); option == "BAN" || option == "SHADOW" {
			words = words[:i]
			break
		}
	}
	w.publish(effect.Effect{Kind: effect.Override, Key: k, Value: bytes.Join(words, []byte(" "))})
}

func (w *walk) publish(f effect.Effect) {
	tx := w.e.NewTx()
	tx.Begin(w.now, 0, []Key{f.Key}, true)
	tx.Publish(f)
	tx.End()
}

// ttl returns for how long a call reserves; mostly it does not.
func (w *walk) ttl() int64 { return max(w.Int64N(900)-400, 0) }

// rareCalls delete so much that they are made less often.
var rareCalls = map[string]bool{"Flush": true, "FlushAll": true, "Swap": true}

// walkCalls has a call for every method of Tx.
var walkCalls = map[string]func(w *walk) string{
	"All": func(w *walk) string {
		keys := slices.Concat(w.some("z", 1), w.some("t", 1), w.some("f", 1), w.some("l", 1), w.some("z", 1))
		cost, id := w.hits()
		limits := []Limit{
			{Key: keys[0], Rule: rule.Rule{Kind: rule.Slide, Slide: limit.Window{Limit: 8, Length: 700}}, ID: id},
			{
				Key:  keys[1],
				Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 9, Refill: 5, Period: 1000}},
			},
			{Key: keys[2], Rule: rule.Rule{Kind: rule.Fixed, Fixed: limit.Fixed{Limit: 9, Window: limit.Every(1500)}}},
			{Key: keys[3], Rule: rule.Rule{Kind: rule.Lease, Lease: limit.Lease{Limit: 4, TTL: 800}}, ID: w.field()},
			{Key: keys[4], Rule: rule.Rule{Kind: rule.Slide, Slide: limit.Window{Limit: 12, Length: 2000}}, ID: id},
		}
		w.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
		hold := reserve.Request{Call: fmt.Append(nil, "id", w.IntN(20)), TTL: w.ttl()}
		for i := range limits {
			limits[i].Hold = hold
		}
		return w.write(keys, func([]Key) []any { return answer(w.tx.allAt(limits[:1+w.IntN(len(limits))], cost)) })
	},
	"Append": func(w *walk) string {
		return w.write(w.some("s", 1), func(k []Key) []any { return answer(w.tx.Append(k[0], w.value())) })
	},
	"BitOp": func(w *walk) string {
		sources := 1 + w.IntN(3)
		op := bitmap.Operation(w.IntN(4))
		if op == bitmap.Not {
			sources = 1
		}
		return w.write(w.some("s", 1+sources), func(k []Key) []any { return answer(w.tx.BitOp(op, k[0], k[1:])) })
	},
	"ChangeBits": func(w *walk) string {
		c := bitmap.Change{
			Field:    bitmap.Field{Offset: w.Int64N(80), Bits: 1 + w.IntN(63), Signed: w.IntN(2) == 0},
			N:        int64(w.Uint64()),
			Overflow: bitmap.Overflow(w.IntN(3)),
		}
		return w.write(w.some("s", 1), func(k []Key) []any { return answer(w.tx.ChangeBits(k[0], c)) })
	},
	"Content": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any {
			c, ok := w.tx.Content(k[0])
			if !ok {
				return nil
			}
			v, err := decode(c)
			if v.Kind == rdb.Set {
				slices.SortFunc(v.Elements, bytes.Compare)
			}
			return []any{v, err}
		})
	},
	"Restore": func(w *walk) string {
		r := &object.Restored{
			Type: []object.Type{
				object.TypeString, object.TypeHash, object.TypeZSet, object.TypeToken, object.TypeFixed,
				object.TypeList, object.TypeSet,
			}[w.IntN(7)],
			Text: w.value(),
			Idle: -1,
			Uses: -1,
		}
		r.Elements, r.Members = nil, nil
		switch r.Type {
		case object.TypeHash:
			for i := range 1 + w.IntN(4) {
				r.Elements = append(r.Elements, fmt.Append(nil, i), w.value())
			}
		case object.TypeList, object.TypeSet:
			for i := range 1 + w.IntN(4) {
				r.Elements = append(r.Elements, fmt.Append(nil, i))
			}
		case object.TypeZSet:
			for i := range 1 + w.IntN(4) {
				r.Members = append(r.Members, zset.Member{Member: fmt.Append(nil, i), Score: float64(w.IntN(9))})
			}
		case object.TypeToken:
			r.Numbers = [4]int64{w.Int64N(9), int64(w.Uint64()), w.now}
		case object.TypeFixed:
			r.Numbers = [4]int64{w.now / 1500 * 1500, 1500, w.Int64N(9)}
		}
		if w.IntN(2) == 0 {
			r.ExpireAt = w.now + w.Int64N(900) - 50
		}
		return w.write(w.any(1), func(k []Key) []any { return answer(w.tx.Restore(k[0], r)) })
	},
	"SetBit": func(w *walk) string {
		offset, on := w.Int64N(80), w.IntN(2) == 0
		return w.write(w.some("s", 1), func(k []Key) []any { return answer(w.tx.SetBit(k[0], offset, on)) })
	},
	"Reservations": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any {
			b, err := w.tx.Reservations(k[0])
			return answer(err, fmt.Sprint(slices.Collect(b.All(b.Over(w.now)))))
		})
	},
	"Held": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Held(k[0])) })
	},
	"SlideAs": func(w *walk) string {
		rules := []limit.Window{{Limit: 6, Length: 500}, {Limit: 12, Length: 2500}}[:1+w.IntN(2)]
		hold := reserve.Request{Call: fmt.Append(nil, "id", w.IntN(20)), TTL: 1 + w.Int64N(900)}
		l := Limit{Cost: 1 + w.Int64N(3), Hold: hold}
		if w.IntN(2) == 0 {
			l.Ban = &ban.Rule{After: 1 + w.Int64N(2), For: 1 + w.Int64N(400), Max: 400}
		}
		return w.write(w.some("z", 1), func(k []Key) []any {
			l.Key = k[0]
			return answer(w.tx.SlideAs(l, rules))
		})
	},
	"Settle": func(w *walk) string {
		actual, call := []int64{w.Int64N(3), w.Int64N(3)}, fmt.Append(nil, "id", w.IntN(20))
		keys := slices.Concat(w.some("zt"[w.IntN(2):][:1], 1), w.some("fc"[w.IntN(2):][:1], 1))[:1+w.IntN(2)]
		return w.write(keys, func(k []Key) []any { return answer(w.tx.Settle(k, actual, call)) })
	},
	"SettleChecked": func(w *walk) string {
		names := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}[w.IntN(4):]
		call := CheckCall{Names: names, Costs: []int64{w.Int64N(3)}, ID: fmt.Append(nil, "id", w.IntN(20))}
		return w.write(policyKeys(w.e, names, fmt.Append(nil, w.IntN(3))), func(k []Key) []any {
			call.Keys = k
			return answer(w.tx.SettleChecked(call))
		})
	},
	"See": func(w *walk) string {
		return w.write(w.any(1), func([]Key) []any {
			name := fmt.Sprintf("%040d", w.IntN(20))
			few := script.Limits{Evaled: 9, Bytes: 32 << 10}
			_, position := w.e.Scripts.Add(w.now, name, "return "+name, w.IntN(4) == 0, few)
			if w.IntN(30) == 0 {
				position = w.e.Scripts.Flush(w.now)
			}
			w.tx.See(Position(position))
			return nil
		})
	},
	"Share": func(w *walk) string {
		return w.read(w.some("s", 1), func(k []Key) []any { return answer(w.tx.Share(k[0])) })
	},
	"MayStretch": func(w *walk) string {
		return w.read(w.some("s", 1), func(k []Key) []any { return answer(w.tx.MayStretch(k[0], 9)) })
	},
	"Stretch": func(w *walk) string {
		length := 1 + w.Int64N(12)
		return w.write(w.some("s", 1), func(k []Key) []any { return answer(w.tx.Stretch(k[0], length)) })
	},
	"Charge": func(w *walk) string {
		b := limit.Bucket{Capacity: 4, Refill: 1, Period: 100}
		l := []Limit{{Rule: rule.Rule{Kind: rule.Token, Token: b}, Cost: w.Int64N(6)}}
		return w.write(w.some("t", 1), func(k []Key) []any {
			l[0].Key = k[0]
			return answer(w.tx.Charge(l))
		})
	},
	"Ban": func(w *walk) string {
		return w.read(policyKeys(w.e, [][]byte{{byte('a' + w.IntN(4))}}, fmt.Append(nil, w.IntN(3))),
			func(k []Key) []any { return answer(w.tx.Ban(k[0])) })
	},
	"Unban": func(w *walk) string {
		return w.write(policyKeys(w.e, [][]byte{{byte('a' + w.IntN(4))}}, fmt.Append(nil, w.IntN(3))),
			func(k []Key) []any { return answer(w.tx.Unban(k[0])) })
	},
	"Check": func(w *walk) string {
		names := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}
		w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:1+w.IntN(len(names))]
		if w.IntN(6) == 0 {
			w.setPolicies()
		}
		if w.IntN(30) == 0 {
			w.e.DeletePolicy(w.now, string(names[0]))
		}
		for range w.IntN(3) {
			w.override()
		}
		cost, _ := w.hits()
		call := CheckCall{Names: names, Costs: []int64{cost}, ID: fmt.Appendf(nil, "id%d", w.IntN(20)), TTL: w.ttl()}
		return w.write(policyKeys(w.e, names, fmt.Append(nil, w.IntN(3))), func(k []Key) []any {
			call.Keys = k
			return answer(w.tx.Check(call))
		})
	},
	"Copy": func(w *walk) string {
		return w.write(w.any(2), func(k []Key) []any {
			return answer(w.tx.Copy(k[0], k[1], w.IntN(walkDatabases), w.IntN(2) == 0))
		})
	},
	"Deadline": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Deadline(k[0])) })
	},
	"Delete": func(w *walk) string {
		return w.write(w.any(1), func(k []Key) []any { return answer(w.tx.Delete(k[0])) })
	},
	"Digest": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Digest(k[0])) })
	},
	"DigestAll": func(w *walk) string {
		return w.all(func() []any { return answer(w.tx.DigestAll()) })
	},
	"Encoding": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Encoding(k[0], object.DefaultPacking)) })
	},
	"Exists": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Exists(k[0])) })
	},
	"Expire": func(w *walk) string {
		return w.write(
			w.any(1),
			func(k []Key) []any { return answer(w.tx.Expire(k[0], w.deadline(), ExpireIf(w.IntN(16)))) },
		)
	},
	"Decide": func(w *walk) string {
		l := Limit{Rule: rule.Algorithms()[w.IntN(len(rule.Algorithms()))].Empty, ID: w.field()}
		l.Slide, l.Fixed = limit.Window{Limit: 4, Length: 900}, limit.Fixed{Limit: 5, Window: limit.Every(500)}
		l.Counter = limit.Counter{Limit: 5, Window: 500}
		l.Token = limit.Bucket{Capacity: 6, Refill: 2, Period: 1000}
		l.Lease = limit.Lease{Limit: 3, TTL: 300}
		l.Hold = reserve.Request{Call: fmt.Append(nil, "id", w.IntN(20)), TTL: w.ttl()}
		family := map[object.Type]string{
			object.TypeZSet: "z", object.TypeToken: "t", object.TypeFixed: "f", object.TypeCounter: "c",
		}[l.algorithm().holds]
		return w.write(w.some(family, 1), func(k []Key) []any {
			l.Key = k[0]
			return answer(w.tx.decideAt(&l, w.Int64N(3)))
		})
	},
	"Fixed": func(w *walk) string {
		return w.write(w.some("f", 1), func(k []Key) []any {
			return answer(w.tx.Fixed(k[0], limit.Fixed{Limit: 5, Window: limit.Every(1000)}, w.Int64N(3)))
		})
	},
	"Forget": func(w *walk) string { // one call is forgotten while another one is open
		k, said := w.some("t", 1), ""
		for _, ttl := range []int64{1, 5000, 0} {
			if ttl == 0 {
				w.now += 150
			}
			l := limited(k[0], tenASecond, 1, ttl, fmt.Sprint("id", ttl))
			said += w.write(k, func([]Key) []any { return answer(w.tx.Decide(l)) })
		}
		return said
	},
	"Flush": func(w *walk) string {
		return w.all(func() []any { w.tx.Flush(); return nil })
	},
	"FlushAll": func(w *walk) string {
		return w.all(func() []any { w.tx.FlushAll(); return nil })
	},
	"Get": func(w *walk) string {
		return w.read(w.some("s", 1), func(k []Key) []any { return answer(w.tx.Get(k[0])) })
	},
	"HDel": func(w *walk) string {
		return w.write(w.some("h", 1), func(k []Key) []any { return answer(w.tx.HDel(k[0], w.fields())) })
	},
	"HSet": func(w *walk) string {
		return w.write(w.some("h", 1), func(k []Key) []any {
			return answer(w.tx.HSet(k[0], [][]byte{w.field(), w.value(), w.field(), w.value()}))
		})
	},
	"Hash": func(w *walk) string {
		return w.read(w.some("h", 1), func(k []Key) []any {
			h, err := w.tx.Hash(k[0])
			list := answer(err, h.Len())
			for field, value := range h.All() {
				list = append(list, field, value)
			}
			return list
		})
	},
	"Denied": func(w *walk) string {
		return w.write(w.any(1), func(k []Key) []any { w.tx.Denied(k[0]); return nil })
	},
	"Frequency": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Frequency(k[0])) })
	},
	"Idle": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Idle(k[0])) })
	},
	"Insert": func(w *walk) string {
		if w.IntN(2) == 0 {
			return w.write(w.some("m", 1), func(k []Key) []any {
				if _, err := w.tx.Members(k[0]); err != nil {
					return answer(err)
				}
				return answer(w.tx.Insert(k[0], object.TypeSet, 0, w.fields()...).Kind())
			})
		}
		return w.write(w.some("q", 1), func(k []Key) []any {
			l, err := w.tx.List(k[0])
			if err != nil {
				return answer(err)
			}
			return answer(w.tx.Insert(k[0], object.TypeList, w.IntN(l.Len()+1), w.value(), w.value()).Kind())
		})
	},
	"List": func(w *walk) string {
		return w.read(w.some("q", 1), func(k []Key) []any {
			l, err := w.tx.List(k[0])
			list := answer(err, l.Len())
			for e := range l.Range(0, l.Len()) {
				list = append(list, string(e))
			}
			return list
		})
	},
	"Members": func(w *walk) string {
		return w.read(w.some("m", 1), func(k []Key) []any {
			s, err := w.tx.Members(k[0])
			return answer(err, slices.Sorted(s.All()))
		})
	},
	"SRem": func(w *walk) string {
		return w.write(w.some("m", 1), func(k []Key) []any {
			if s, err := w.tx.Members(k[0]); err != nil || s.Len() == 0 {
				return answer(err)
			}
			return answer(w.tx.SRem(k[0], w.fields()...))
		})
	},
	"RemoveSpan": func(w *walk) string {
		return w.write(w.some("q", 1), func(k []Key) []any {
			l, err := w.tx.List(k[0])
			if err == nil && l.Len() > 0 {
				lo := w.IntN(l.Len())
				w.tx.RemoveSpan(k[0], lo, lo+w.IntN(l.Len()-lo+1))
			}
			return answer(err)
		})
	},
	"Keys": func(w *walk) string {
		return w.all(func() (list []any) {
			for name, kind := range w.tx.Keys() {
				list = append(list, string(name), kind)
			}
			return list
		})
	},
	"MemoryUsage": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any {
			_, ok := w.tx.MemoryUsage(k[0]) // the number depends on the allocator
			return answer(ok)
		})
	},
	"Leaky": func(w *walk) string {
		return w.write(w.some("t", 1), func(k []Key) []any {
			return answer(w.tx.Leaky(k[0], limit.Bucket{Capacity: 4, Refill: 2, Period: 1000}, w.Int64N(3)))
		})
	},
	"Lease": func(w *walk) string {
		return w.write(w.some("l", 1), func(k []Key) []any {
			return answer(w.tx.Lease(k[0], limit.Lease{Limit: 4, TTL: 100 + w.Int64N(900)}, w.field()))
		})
	},
	"Move": func(w *walk) string {
		return w.write(w.any(1), func(k []Key) []any { return answer(w.tx.Move(k[0], w.IntN(walkDatabases))) })
	},
	"Persist": func(w *walk) string {
		return w.write(w.any(1), func(k []Key) []any { return answer(w.tx.Persist(k[0])) })
	},
	"RandomKey": func(w *walk) string {
		r := rand.New(rand.NewPCG(w.Uint64(), 0)) // how many numbers it draws depends on the shards
		return w.all(func() []any { return answer(w.tx.RandomKey(r)) })
	},
	"References": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.References(k[0])) })
	},
	"Refund": func(w *walk) string {
		var id []byte
		if w.IntN(2) == 0 {
			_, id = w.hits()
		}
		return w.write(
			w.some("ztf"[w.IntN(3):][:1], 1),
			func(k []Key) []any { return answer(w.tx.Refund(k[0], 1+w.Int64N(4), id)) },
		)
	},
	"Release": func(w *walk) string {
		return w.write(w.some("l", 1), func(k []Key) []any { return answer(w.tx.Release(k[0], w.field())) })
	},
	"Rename": func(w *walk) string {
		return w.write(w.any(2), func(k []Key) []any { return answer(w.tx.Rename(k[0], k[1])) })
	},
	"RenameNX": func(w *walk) string {
		return w.write(w.any(2), func(k []Key) []any { return answer(w.tx.RenameNX(k[0], k[1])) })
	},
	"Scan": func(w *walk) string {
		var list []any
		next, _ := w.tx.Scan(
			w.now,
			w.db,
			0,
			1+w.IntN(20),
			func(name []byte, kind object.Type) { list = append(list, string(name), kind) },
		)
		return fmt.Sprint(append(list, next)...)
	},
	"Set": func(w *walk) string {
		mode := SetMode{NX: w.IntN(4) == 0, XX: w.IntN(4) == 0, KeepTTL: w.IntN(3) == 0}
		if w.IntN(3) == 0 {
			mode.ExpireAt = w.deadline()
		}
		return w.write(w.some("s", 1), func(k []Key) []any { return answer(w.tx.Set(k[0], w.value(), mode)) })
	},
	"Replace": func(w *walk) string {
		return w.write(w.some("s", 1), func(k []Key) []any {
			s, err := w.tx.String(k[0])
			if s != nil {
				w.tx.Replace(k[0], s, w.value())
			}
			return answer(s != nil, err)
		})
	},
	"String": func(w *walk) string {
		return w.read(w.some("s", 1), func(k []Key) []any {
			s, err := w.tx.String(k[0])
			return answer(s != nil, err)
		})
	},
	"SetRange": func(w *walk) string {
		return w.write(
			w.some("s", 1),
			func(k []Key) []any { return answer(w.tx.SetRange(k[0], w.Int64N(10), w.value())) },
		)
	},
	"Size": func(w *walk) string {
		return w.all(func() []any { return answer(w.tx.Size()) })
	},
	"Slide": func(w *walk) string {
		rules := []limit.Window{{Limit: 6, Length: 500}, {Limit: 12, Length: 2500}}[:1+w.IntN(2)]
		cost, id := w.hits()
		n := w.Int64N(5)
		return w.write(w.some("z", 1), func(k []Key) []any {
			answers := answer(w.tx.Slide(k[0], rules, cost, id))
			if id != nil && n > 0 {
				answers = append(answers, answer(w.tx.Refund(k[0], n, id))...)
			}
			return answers
		})
	},
	"Swap": func(w *walk) string {
		return w.all(func() []any { w.tx.Swap(w.IntN(walkDatabases), w.IntN(walkDatabases)); return nil })
	},
	"Token": func(w *walk) string {
		return w.write(w.some("t", 1), func(k []Key) []any {
			return answer(w.tx.Token(k[0], limit.Bucket{Capacity: 7, Refill: 3, Period: 1000}, w.Int64N(4)))
		})
	},
	"Touch": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Touch(k[0])) })
	},
	"Type": func(w *walk) string {
		return w.read(w.any(1), func(k []Key) []any { return answer(w.tx.Type(k[0])) })
	},
	"ZAdd": func(w *walk) string {
		members := []zset.Member{
			{Member: w.field(), Score: float64(w.IntN(20))},
			{Member: w.field(), Score: float64(w.now)},
		}
		return w.write(
			w.some("z", 1),
			func(k []Key) []any { return answer(w.tx.ZAdd(k[0], zset.AddIf(w.IntN(16)), members)) },
		)
	},
	"ZDiff": func(w *walk) string {
		return w.read(w.some("z", 3), func(k []Key) []any { return answer(describe(w.tx.ZDiff(w.sets(k)))) })
	},
	"ZIncrBy": func(w *walk) string {
		return w.write(w.some("z", 1), func(k []Key) []any {
			return answer(w.tx.ZIncrBy(k[0], zset.AddIf(w.IntN(16)), w.field(), float64(w.IntN(5)-2)))
		})
	},
	"ZInter": func(w *walk) string {
		return w.read(
			w.some("z", 2),
			func(k []Key) []any { return answer(describe(w.tx.ZInter(w.sets(k), nil, zset.Sum))) },
		)
	},
	"ZInterCard": func(w *walk) string {
		return w.read(w.some("z", 2), func(k []Key) []any { return answer(w.tx.ZInterCard(w.sets(k), w.Int64N(4))) })
	},
	"ZPop": func(w *walk) string {
		return w.write(w.some("z", 2), func(k []Key) []any {
			var popped string
			found, err := w.tx.ZPop(
				k,
				1+w.Int64N(3),
				w.IntN(2) == 0,
				func(from Key, m zset.Members) { popped = string(from.Name) + describe(m) },
			)
			return answer(found, err, popped)
		})
	},
	"ZRem": func(w *walk) string {
		return w.write(w.some("z", 1), func(k []Key) []any { return answer(w.tx.ZRem(k[0], w.fields())) })
	},
	"ZRemRange": func(w *walk) string {
		return w.write(w.some("z", 1), func(k []Key) []any { return answer(w.tx.ZRemRange(k[0], w.zrange())) })
	},
	"ZSet": func(w *walk) string {
		return w.read(w.some("z", 1), func(k []Key) []any {
			z, err := w.tx.ZSet(k[0])
			return answer(err, describe(z.Range(&zset.Range{Stop: -1})))
		})
	},
	"ZSets": func(w *walk) string {
		return w.read(w.some("z", 2), func(k []Key) []any { return answer(len(w.sets(k))) })
	},
	"ZStore": func(w *walk) string {
		return w.write(w.some("z", 2), func(k []Key) []any {
			z, err := w.tx.ZSet(k[0])
			if err != nil {
				return answer(err)
			}
			return answer(w.tx.ZStore(k[1], z.Range(w.zrange())))
		})
	},
	"ZUnion": func(w *walk) string {
		return w.write(w.some("z", 3), func(k []Key) []any {
			sets := w.sets(k)
			if sets == nil {
				return nil
			}
			weights := []float64{1, 2, float64(w.IntN(3))}
			return answer(w.tx.ZStore(k[0], w.tx.ZUnion(sets, weights, zset.Aggregate(w.IntN(3)))))
		})
	},
}

// The tests below cover every method of Tx.
func TestWalkCallsEveryMethod(t *testing.T) {
	excluded := []string{
		"Begin",
		"BeginUnlessHeld",
		"Enter",
		"Hold",
		"Late",
		"Leave",
		"Resume",
		"SizeUnlessHeld",
		"Join",
		"BeginAll",
		"Prefetch",
		"Next",
		"Due",
		"End",
		"Now",
		"Watch",
		"Intact",
		"Unwatch",
		"Afterwards",
		"MakeRoom",
		"MakeRoomFor",
		"RoomToStore",
		"Count",
		"Stats",
		"ResetStats",
		"SeeAll",
		"Applied",
		"Pending",
		"CheckCountsOnce",
		"KeysHold",
		"Publish",
		"Prepare",
		"Address",
		"Reload",
		"DryRun",
		"Step",
		"NoTouch",
		"Name",
		"Unnamed",
		"Tell",
		"Rewrote",
		"ApplyTo",
	}
	for method := range reflect.TypeFor[*Tx]().Methods() {
		_, called := walkCalls[method.Name]
		assert.True(t, called || slices.Contains(excluded, method.Name), "walkCalls lacks %s", method.Name)
	}
}

const (
	walks     = 20
	walkSteps = 2000
)

// sumOf returns the digest of the state of an engine, which replicas compare.
func sumOf(e *Engine) [2]uint64 {
	var sum effect.Sum
	s := e.SnapshotAt(1, func() {})
	defer s.Close()
	for s.Step(func(effects []effect.Effect) {
		for i := range effects {
			sum.Add(&effects[i])
		}
	}) {
	}
	return sum.Sum
}

// The recorded effects of a run, applied to an empty engine, give the state of the run: with
// another number of shards and another hash seed, call by call or all at once.
func TestReplayGivesTheSameState(t *testing.T) {
	seen, keys := make(map[effect.Kind]int), 0
	for range walks {
		seed := rand.Uint64()
		t.Log("seed", seed)
		w := newWalk(seed, Options{Shards: 8}).steps(walkSteps)
		requireSound(t, w.e)

		want := dump(w.e)
		keys += len(want)
		replica := w.log.replayed(Options{Databases: walkDatabases, Shards: 4, Seed: [2]uint64{seed, 9}})
		require.Equal(t, want, dump(replica))
		require.Equal(t, sumOf(w.e), sumOf(replica))
		requireSound(t, replica)
		atOnce := New(Options{Databases: walkDatabases})
		require.NoError(t, atOnce.Apply(0, w.log.effects()))
		require.Equal(t, want, dump(atOnce))

		for _, f := range w.log.effects() {
			seen[f.Kind]++
		}
	}
	// not in each run: some end with FLUSHALL
	assert.Greater(t, keys, walks, "the runs leave keys to compare")
	// only in logs of earlier versions, and in snapshots
	others := []effect.Kind{effect.Tokens, effect.Count, effect.Runs}
	for _, kind := range effect.Kinds() {
		if slices.Contains(others, kind) {
			continue
		}
		assert.NotZero(t, seen[kind], "effects of kind %d do not occur", kind)
	}
}

// The same calls at the same times give the same answers, effects and state.
func TestRunsAreDeterministic(t *testing.T) {
	for range walks / 4 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		o := Options{Shards: 8, Seed: [2]uint64{seed, 2}}
		w, again := newWalk(seed, o).steps(walkSteps), newWalk(seed, o).steps(walkSteps)
		require.Equal(t, w.calls, again.calls)
		require.Equal(t, w.log.effects(), again.log.effects())
		require.Equal(t, dump(w.e), dump(again.e))
	}
}

// The content of keys does not depend on the number of shards nor on the hash seed. (Excluded: the
// names of hits without an id, once a key of the shard has lost hits in that millisecond, and when
// the sweeper deletes an expired key.)
func TestStateDoesNotDependOnShards(t *testing.T) {
	for range walks / 4 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		var first []string
		for _, o := range []Options{{Shards: 1}, {Shards: 2, Seed: [2]uint64{seed, 3}}, {Shards: 64}} {
			w := newWalk(seed, o)
			w.named = true
			w.steps(walkSteps)
			for end := w.sweeper.Rounds() + 1; w.sweeper.Rounds() < end; {
				w.sweeper.Step(w.now)
			}
			if first == nil {
				first = dump(w.e)
			}
			require.Equal(t, first, dump(w.e), "%d shards", o.Shards)
		}
	}
}

// No call sees half of an Apply, also if it does not hold the first of its keys.
func TestApplyIsAtomic(t *testing.T) {
	e := New(Options{Shards: 64})
	keys := []Key{e.Key([]byte("a")), e.Key([]byte("b")), e.Key([]byte("c"))}
	require.NotEqual(t, e.shardOf(keys[0]), e.shardOf(keys[1]))
	require.NotEqual(t, e.shardOf(keys[0]), e.shardOf(keys[2]))
	require.NotEqual(t, e.shardOf(keys[1]), e.shardOf(keys[2]))
	const times = 2000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range times {
			var effects []effect.Effect
			for _, k := range keys {
				effects = append(
					effects,
					effect.Effect{Kind: effect.String, Key: Key{Name: k.Name}, Value: fmt.Append(nil, i)},
				)
			}
			require.NoError(t, e.Apply(0, effects))
		}
	}()
	tx := e.NewTx()
	for applying := true; applying; {
		select {
		case <-done:
			applying = false
		default:
		}
		tx.Begin(0, 0, keys[1:], false)
		b, _, _ := tx.Get(keys[1])
		c, _, _ := tx.Get(keys[2])
		require.Equal(t, string(b), string(c))
		tx.End()
	}
	last := fmt.Sprintf("deadline 0: \"%d\"", times-1)
	assert.Equal(t, []string{`0 "a": string, ` + last, `0 "b": string, ` + last, `0 "c": string, ` + last}, dump(e))
}

func BenchmarkApply(b *testing.B) {
	log := new(recorder)
	e := New(Options{Journal: log})
	tokens(e, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		replica := New(Options{})
		for _, call := range log.calls {
			require.NoError(b, replica.Apply(0, call))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(log.calls)), "ns/effect")
}
