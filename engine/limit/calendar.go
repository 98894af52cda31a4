package limit

import "time"

// Unit is a calendar unit. The zero value is no unit.
type Unit uint8

const (
	Minute Unit = iota + 1
	Hour
	Day
	Week // from Monday on
	Month
	Year
)

var unitNames = [...]string{Minute: "minute", Hour: "hour", Day: "day", Week: "week", Month: "month", Year: "year"}

// String returns the unit's name as ParseCalendar reads it, or "" for none.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return ""
}

const (
	minuteMs = 60 * 1000
	hourMs   = 60 * minuteMs
	dayMs    = 24 * hourMs
)

// Windows divides time into windows, without gap or overlap. With a Unit the
// windows are calendar units in Zone; without one they last Length ms each (at least 1) and are
// aligned to the Unix epoch.
type Windows struct {
	Length int64
	Unit   Unit
	Zone   *time.Location // nil is UTC
}

// Every returns windows of ms milliseconds each, aligned to the Unix epoch.
func Every(ms int64) Windows { return Windows{Length: ms} }

// Calendar returns the calendar windows of unit in zone; nil is UTC.
func Calendar(unit Unit, zone *time.Location) Windows { return Windows{Unit: unit, Zone: zone} }

// Bounds returns the window that contains the Unix millisecond now, for any now of the years 0 to
// 9999: start <= now < end, and end is the start of the next window.
//
// A day, week, month or year begins when the wall clock first reaches or skips its first midnight.
// So a day is 23 or 25 hours long if clocks change on it; if its midnight is skipped, it begins
// with the change; if its midnight occurs twice, it begins at the first; and a day that a zone
// skipped completely (Pacific/Apia, 30 December 2011) has no window.
//
// A window of a minute or an hour is never longer than that: when clocks go back, the hour that the
// wall clock repeats is a window of its own, and a change within an hour (Australia/Lord_Howe moves
// by 30 minutes) ends a window.
func (w Windows) Bounds(now int64) (start, end int64) {
	switch w.Unit {
	case 0:
		start = floor(now, w.Length)
		return start, start + w.Length
	case Minute:
		return w.clockBounds(now, minuteMs)
	case Hour:
		return w.clockBounds(now, hourMs)
	}
	return w.dateBounds(now)
}

// floor returns the largest multiple of step that is not above t, which may be negative.
func floor(t, step int64) int64 {
	m := t % step
	if m < 0 {
		m += step
	}
	return t - m
}

// clockBounds divides time by the offset in effect at now, and at changes of the offset.
func (w Windows) clockBounds(now, unit int64) (start, end int64) {
	offset := w.offset(now)
	start = floor(now+offset, unit) - offset
	end = start + unit
	if w.offset(start) != offset {
		start = w.change(start, now)
	}
	if w.offset(end-1) != offset {
		end = w.change(now, end)
	}
	return start, end
}

// dateBounds divides time at the first moments of local dates.
func (w Windows) dateBounds(now int64) (start, end int64) {
	date := w.dateOf(now + w.offset(now))
	start = w.reaches(date)
	date = w.next(date)
	end = w.reaches(date)
	for end <= now { // the clock went back over a midnight: the new date had begun already
		start = end
		date = w.next(date)
		end = w.reaches(date)
	}
	return start, end
}

// dateOf returns the first midnight of the day, week, month or year of wall. Both are wall clock
// readings: the Unix milliseconds at which a clock in UTC would show the same time.
func (w Windows) dateOf(wall int64) int64 {
	switch w.Unit {
	case Day:
		return floor(wall, dayMs)
	case Week:
		const monday = 4 * dayMs // 5 January 1970
		return floor(wall-monday, 7*dayMs) + monday
	}
	year, month, _ := time.UnixMilli(wall).UTC().Date()
	if w.Unit == Year {
		month = time.January
	}
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// next returns the wall clock reading one day, week, month or year after wall, which is a first
// midnight.
func (w Windows) next(wall int64) int64 {
	switch w.Unit {
	case Day:
		return wall + dayMs
	case Week:
		return wall + 7*dayMs
	case Month:
		return w.dateOf(wall + 31*dayMs)
	}
	return w.dateOf(wall + 366*dayMs)
}

// reaches returns the first time at which the wall clock shows wall or later. It does not
// decrease as wall increases, so windows neither overlap nor leave gaps. No offset is as large as a
// day, so the moment is less than a day from wall, and no zone changes its offset twice in those
// two days.
func (w Windows) reaches(wall int64) int64 {
	from, to := wall-dayMs, wall+dayMs
	before, after := w.offset(from), w.offset(to)
	if before == after {
		return wall - before
	}
	change := w.change(from, to)
	if wall-before < change {
		return wall - before
	}
	return max(change, wall-after)
}

// change returns the moment in (from, to] at which the offset of from changes. Offsets change on
// whole seconds. It does not use Time.ZoneBounds, whose bounds end with years, and on the last day
// of a leap year do not contain the given time.
func (w Windows) change(from, to int64) int64 {
	offset := w.offset(from)
	lo, hi := floor(from, 1000)/1000, floor(to+999, 1000)/1000
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if w.offset(mid*1000) == offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi * 1000
}

// offset returns how far the wall clock is ahead of UTC at Unix millisecond t, in ms.
func (w Windows) offset(t int64) int64 {
	if w.Zone == nil || w.Zone == time.UTC {
		return 0
	}
	_, seconds := time.UnixMilli(t).In(w.Zone).Zone()
	return int64(seconds) * 1000
}
