package object

import (
	"fmt"
	"unsafe"

	"rlserver/engine/ban"
	"rlserver/engine/counts"
	"rlserver/engine/effect"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
	"rlserver/internal/rdb"
)

// Extension is what the key of a limiter has besides the limiter's state, if its calls need it. A
// nil Extension is empty, and can be read.
type Extension struct {
	Book *reserve.Book
	// the rules of the latest call that has reserved something; not to be changed
	Terms []rule.Rule
	Ban   *ban.State // and denials; nil: there are none
}

// Extended is a limiter without a log that has an Extension.
type Extended struct {
	State // in a record of its own
	Extension
}

// ExtensionOf returns the extension of an object; nil if it has none.
func ExtensionOf(o Object) *Extension {
	switch o := o.(type) {
	case *ZSet:
		return o.Ext
	case *Extended:
		return &o.Extension
	}
	return nil
}

// Extend returns an object in place of a limiter, which has an extension: that of a log is itself.
func Extend(o Object) (Object, *Extension) {
	switch o := o.(type) {
	case *ZSet:
		if o.Ext == nil {
			o.Ext = new(Extension)
		}
		return o, o.Ext
	case *Extended:
		return o, &o.Extension
	}
	x := &Extended{State: o.Clone(o.Name()).(State)}
	return x, &x.Extension
}

// Bare returns the limiter in an object that may be extended; otherwise the object.
func Bare(o Object) Object {
	if x, ok := o.(*Extended); ok {
		return x.State
	}
	return o
}

// TokenIn returns the token bucket in an object; nil if there is none.
func TokenIn(o Object) *Token { return bare[*Token](o) }

// FixedIn returns the fixed window in an object; nil if there is none.
func FixedIn(o Object) *Fixed { return bare[*Fixed](o) }

// CounterIn returns the counter in an object; nil if there is none.
func CounterIn(o Object) *Counter { return bare[*Counter](o) }

func bare[T Object](o Object) (t T) {
	t, ok := o.(T)
	if x, extended := o.(*Extended); !ok && extended {
		t, _ = x.State.(T)
	}
	return t
}

// Reservations returns the book; nil if there is none.
func (x *Extension) Reservations() *reserve.Book {
	if x == nil {
		return nil
	}
	return x.Book
}

// Held returns how many reservations there are, with those that are over, and their memory.
func (x *Extension) Held() (l counts.Load) {
	if x != nil && x.Book != nil {
		l = counts.Load{N: int64(x.Book.Len()), Bytes: x.Book.Weight()}
	}
	return l
}

// Bans returns the state of bans; nil if there is none.
func (x *Extension) Bans() *ban.State {
	if x == nil {
		return nil
	}
	return x.Ban
}

// Empty reports whether a key without hits needs the extension no more.
func (x *Extension) Empty() bool { return x.Reservations().Len() == 0 && x.Bans() == nil }

// ChangeExtension applies an effect that fits.
func ChangeExtension(x *Extension, f *effect.Effect) {
	if f.Kind == effect.Ban {
		x.Ban = x.Ban.Apply(f.Lo, f.Value)
		return
	}
	if x.Book == nil {
		x.Book = reserve.New()
	}
	switch f.Kind {
	case effect.Reserve:
		x.Book.Forget(f.Lo)
		x.Book.Put(reserve.Reservation{Call: f.Field, Amount: f.Hold.Amount, Until: f.Hold.Until})
	case effect.Forget:
		if x.Book.Forget(f.Lo); x.Book.Len() == 0 {
			x.Terms = nil
		}
	case effect.Terms:
		x.Terms, _ = rule.ParseRules(f.Value) // it fits
	}
}

func fitsExtension(f *effect.Effect, o Object) bool {
	_, state := o.(State)
	if f.Kind == effect.Ban {
		return (o == nil || state || is[*ZSet](o)) && 0 <= f.Hi && f.Hi < int(FormLog) &&
			ExtensionOf(o).Bans().Fits(f.Lo, f.Value)
	}
	known := ExtensionOf(o).Reservations().Len()
	switch {
	case o != nil && !state && !is[*ZSet](o) || f.Lo < 0 || f.Lo > known:
		return false
	case f.Kind == effect.Reserve:
		return isCount(f.Hold.Amount) && 0 <= f.Hi && f.Hi < int(FormLog)
	case f.Kind == effect.Forget:
		return f.Lo > 0
	}
	_, err := rule.ParseRules(f.Value)
	return o != nil && err == nil
}

// Weight returns how many bytes it takes.
func (x *Extension) Weight() int64 {
	if x == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*x)) + x.Book.Weight() + x.Ban.Weight() +
		int64(len(x.Terms))*int64(unsafe.Sizeof(rule.Rule{}))
}

func (x *Extension) clone() *Extension {
	if x == nil {
		return nil
	}
	return &Extension{Book: x.Book.Clone(), Terms: x.Terms, Ban: x.Ban.Clone()}
}

// save adds the effects that rebuild the extension, as a group of their own: the form is that of
// the limiter. A large book is postponed.
func (x *Extension) save(b *Batch, form Form, expireAt int64) {
	b.f.Hi, b.f.ExpireAt = int(form), expireAt
	if s := x.Bans(); s != nil {
		b.f.Value = s.Append(nil)
		b.put(effect.Ban)
		b.End()
	}
	if x.Reservations().Len() == 0 {
		return
	}
	next := x.saving(form, expireAt)
	if x.Book.Len() > SmallCount {
		b.postpone(expireAt, next)
		return
	}
	next(b)
	b.End()
}

// saving returns how a Large adds the reservations as they are now, and then the terms.
func (x *Extension) saving(form Form, expireAt int64) func(b *Batch) (more bool) {
	book, terms, rank := x.Book.Clone(), x.Terms, 0
	return func(b *Batch) (more bool) {
		b.f.Hi, b.f.ExpireAt = int(form), expireAt
		for r := range book.All(rank) {
			if b.Full() {
				return true
			}
			b.f.Field, b.f.Hold = r.Call, effect.Hold{Amount: r.Amount, Until: r.Until}
			b.put(effect.Reserve)
			rank++
		}
		if len(terms) > 0 {
			b.f.Value = rule.AppendRules(nil, terms)
			b.put(effect.Terms)
		}
		return false
	}
}

func (x *Extension) content(c *Content) {
	if x.Empty() {
		return
	}
	book, terms, inner := x.Book.Clone(), rule.AppendRules(nil, x.Terms), c.Append
	state := x.Ban.Clone()
	c.Append = func(b []byte) []byte {
		if state != nil {
			b = rdb.AppendBan(b, state.Append(nil))
		}
		if book.Len() == 0 {
			return inner(b)
		}
		b = rdb.AppendReservations(b, terms, book.Len())
		for r := range book.All(0) {
			b = rdb.AppendReservation(b, rdb.Reservation(r))
		}
		return inner(b)
	}
}

func (x *Extension) digest(d *Digest) {
	if x.Empty() {
		return
	}
	if x.Ban != nil {
		d.pair([]byte("ban"), x.Ban.Append(nil))
	}
	if x.Book.Len() == 0 {
		return
	}
	d.Mix([]byte("reservations"))
	for r := range x.Book.All(0) {
		d.pair(r.Call, fmt.Appendf(nil, "%d %d", r.Amount, r.Until))
	}
	d.pair([]byte("terms"), rule.AppendRules(nil, x.Terms))
}

// BannedAt reports whether an object has a ban that lasts at now, Unix ms.
func BannedAt(o Object, now int64) bool { return ExtensionOf(o).Bans().Left(now) > 0 }

func (x *Extended) setName(name string) { x.State = x.State.Clone(name).(State) }

func (*Extended) overhead() int64 { return entryWeight }

func (x *Extended) Weight() int64 {
	return int64(unsafe.Sizeof(*x)-unsafe.Sizeof(x.Extension)) + x.State.Weight() + x.Extension.Weight()
}

func (x *Extended) Clone(name string) Object {
	return &Extended{State: x.State.Clone(name).(State), Extension: *x.clone()}
}

func (x *Extended) save(b *Batch) (whole bool) {
	whole = x.State.save(b)
	b.End()
	x.Extension.save(b, FormOf(x.State), x.Deadline())
	return whole
}

func (x *Extended) Content(c *Content) {
	x.State.Content(c)
	x.content(c)
}

func (x *Extended) digest(d *Digest) {
	x.State.digest(d)
	x.Extension.digest(d)
}
