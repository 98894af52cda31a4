package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
)

// banned returns an answer with a ban that lasts for so many ms; 0: there is none.
func banned(d limit.Decision, left int64) limit.Decision {
	if left == 0 {
		return d
	}
	d.Allowed, d.Free, d.Remaining = false, false, 0
	if d.RetryAfter != limit.Never {
		d.RetryAfter = max(d.RetryAfter, left)
	}
	d.ResetAfter = max(d.ResetAfter, left)
	return d
}

// anyBanned reports whether one of the limits denies by a ban.
func (tx *Tx) anyBanned(limits []Limit) bool {
	for i := range limits {
		if limits[i].Ban != nil && object.BannedAt(tx.find(tx.db, limits[i].Key), tx.now) {
			return true
		}
	}
	return false
}

// countDenial counts a denial of a limit that bans, unless a ban lasts.
func (tx *Tx) countDenial(l *Limit) {
	o := tx.e.unpacked(tx.db, l.Key, tx.find(tx.db, l.Key))
	x := object.ExtensionOf(o)
	if x.Bans().Left(tx.now) > 0 {
		return
	}
	forgotten, change, needed, until := x.Bans().Deny(*l.Ban, l.Length(tx.now), tx.now)
	tx.check.banned = tx.check.banned || until > 0
	f := effect.Effect{
		Kind: effect.Ban, Key: l.Key, Value: change, Lo: forgotten,
		Hi: int(object.FormNamed(l.algorithm().holds)), ExpireAt: needed,
	}
	if o != nil && o.Deadline() != 0 {
		f.ExpireAt = max(needed, o.Deadline())
	} else if o != nil {
		f.ExpireAt = 0
	}
	tx.apply(o, &f)
}

// Ban returns for how many ms a key is banned, 0 if it is not, and how many bans there were in a
// row.
func (tx *Tx) Ban(k Key) (left, bans int64) {
	s := object.ExtensionOf(tx.peek(k)).Bans()
	if left = s.Left(tx.now); left > 0 {
		bans = s.Bans
	}
	return left, bans
}

// Unban makes a key as if nothing had ever been denied, and reports whether it was banned.
func (tx *Tx) Unban(k Key) bool {
	o := tx.lookup(k)
	s := object.ExtensionOf(o).Bans()
	if s == nil {
		return false
	}
	lifted, f := s.Left(tx.now) > 0, effect.Effect{Kind: effect.Ban, Key: k, ExpireAt: o.Deadline()}
	f.Lo, f.Value = s.Lift()
	tx.apply(o, &f)
	return lifted
}
