package engine

import (
	"cmp"
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
)

// anyBanned reports whether one of the limits denies by a ban.
func (tx *Tx) anyBanned(limits []Limit, peek bool) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool {
		return l.Ban != nil && (l.Cost > 0 || peek) && object.BannedAt(tx.find(tx.db, l.Key), tx.now)
	})
}

// decideBanning decides a call against limits on one key, and counts a denial if they ban.
func (tx *Tx) decideBanning(limits []Limit) (limit.Decision, error) {
	d, err := tx.All(limits)
	if err != nil || d.Allowed || limits[0].Ban == nil || limits[0].Cost == 0 || tx.dryRun {
		return d, err
	}
	longest := slices.MaxFunc(limits, func(a, b Limit) int { return cmp.Compare(a.Length(tx.now), b.Length(tx.now)) })
	if tx.countDenial(&longest) { // the answer is that of the ban
		tx.DryRun(func() { d, err = tx.All(limits) })
	}
	return d, err
}

// countDenial counts a denial of a limit that bans, unless a ban lasts. It reports whether it has
// caused one.
func (tx *Tx) countDenial(l *Limit) (banned bool) {
	o := tx.e.unpacked(tx.db, l.Key, tx.find(tx.db, l.Key))
	if !l.algorithm().fits(o) { // what another definition has left, see former
		tx.delete(l.Key, o)
		o = nil
	}
	x := object.ExtensionOf(o)
	if x.Bans().Left(tx.now) > 0 {
		return false
	}
	forgotten, change, needed, until := x.Bans().Deny(*l.Ban, l.Length(tx.now), tx.now)
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
	if until > 0 {
		tx.e.shardOf(l.Key).stats.Bans.Add(1)
	}
	return until > 0
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
