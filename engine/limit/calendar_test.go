package limit

import (
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata" // the tests' own, whatever the machine has
)

var units = []Unit{Minute, Hour, Day, Week, Month, Year}

// oddZones have skipped and repeated midnights, days and hours, offsets of half an hour, changes of
// 30 minutes, two hours and a day, and both permanent and irregular rules.
var oddZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Amsterdam", "Europe/Lisbon", "Europe/Moscow",
	"America/New_York", "America/Sao_Paulo", "America/St_Johns", "America/Goose_Bay", "America/Havana",
	"America/Caracas",
	"America/Asuncion", "America/Santiago", "America/Nuuk", "America/Scoresbysund", "America/Juneau",
	"America/Metlakatla",
	"Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Monrovia", "Africa/Khartoum",
	"Asia/Beirut", "Asia/Amman", "Asia/Gaza", "Asia/Tehran", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Pyongyang",
	"Asia/Manila",
	"Asia/Singapore", "Asia/Hong_Kong", "Australia/Adelaide", "Australia/Eucla", "Australia/Lord_Howe",
	"Antarctica/Troll",
	"Pacific/Apia", "Pacific/Chatham", "Pacific/Fakaofo", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Fiji",
	"Pacific/Norfolk",
}

// changes returns the moments from 1840 to 2100 at which the zone's offset changes, in Unix ms.
func changes(loc *time.Location) (moments []int64) {
	at := time.Date(1840, 1, 1, 0, 0, 0, 0, time.UTC).In(loc)
	for _, before := at.Zone(); at.Year() < 2100; {
		_, next := at.ZoneBounds()
		if next.IsZero() {
			break
		}
		if !next.After(at) { // it can be so on the last day of a leap year
			next = at.Add(time.Hour)
		}
		at = next
		if _, after := at.Zone(); after != before {
			moments, before = append(moments, at.UnixMilli()), after
		}
	}
	return moments
}

func TestBoundsAreAPartition(t *testing.T) {
	for _, name := range oddZones {
		loc := zone(t, name)
		moments := changes(loc)
		traces(t, 40, func(rnd *rand.Rand) {
			now := between(rnd, -62135596800000, year9999) // the years 1 to 9999
			switch rnd.IntN(4) {
			case 0:
				now = epoch + between(rnd, -100*365*dayMs, 100*365*dayMs)
			case 1, 2:
				if len(moments) > 0 {
					now = moments[rnd.IntN(len(moments))] + between(rnd, -1, 1)*between(rnd, 0, 3*dayMs>>rnd.IntN(30))
				}
			}
			for _, unit := range units {
				checkPartition(t, Calendar(unit, loc), now)
			}
			checkPartition(t, Every(between(rnd, 1, MaxDuration)), now)
		})
	}
}

// longestWindow is the longest that a window of each unit can be: the longest unit and, for dates,
// the day by which a zone can go back at most.
var longestWindow = map[Unit]int64{
	Minute: minuteMs, Hour: hourMs, Day: 2 * dayMs, Week: 8 * dayMs, Month: 32 * dayMs, Year: 367 * dayMs,
}

func checkPartition(t *testing.T, w Windows, now int64) {
	t.Helper()
	start, end := w.Bounds(now)
	if now < start || now >= end {
		t.Errorf("%+v %v: %d is not in [%d, %d)", w, w.Zone, now, start, end)
	}
	if w.Unit != 0 && end-start > longestWindow[w.Unit] {
		t.Errorf("%+v %v: [%d, %d) around %d is too long", w, w.Zone, start, end, now)
	}
	for _, in := range []int64{start, start + (end-start)/2, start + (end-start)/3, end - 1} {
		if s, e := w.Bounds(in); s != start || e != end {
			t.Errorf("%+v %v: [%d, %d) of %d, but [%d, %d) of %d", w, w.Zone, start, end, now, s, e, in)
		}
	}
	if _, e := w.Bounds(start - 1); e != start {
		t.Errorf("%+v %v: [%d, %d) follows one that ends at %d", w, w.Zone, start, end, e)
	}
	if s, _ := w.Bounds(end); s != end {
		t.Errorf("%+v %v: [%d, %d) is followed by one that starts at %d", w, w.Zone, start, end, s)
	}
}

// Dates begin when the wall clock first shows their midnight or later. The test finds the
// beginnings by searching around changes of every odd zone.
func TestDaysBeginWhenTheWallClockFirstReachesThem(t *testing.T) {
	traces(t, 1, func(rnd *rand.Rand) {
		for _, name := range oddZones {
			loc := zone(t, name)
			moments := changes(loc)
			rnd.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
			for _, moment := range moments[:min(len(moments), 8)] {
				checkDays(t, loc, moment/1000)
			}
		}
	})
}

func checkDays(t *testing.T, loc *time.Location, change int64) {
	midnight := func(sec int64) int64 { // the last midnight before the wall clock's reading
		_, offset := time.Unix(sec, 0).In(loc).Zone()
		return floor((sec+int64(offset))*1000, dayMs)
	}
	const pace = 60 // some zones change at a minute past midnight
	from, to := change-26*3600, change+26*3600
	latest := midnight(from)
	for sec := from; sec < to; sec += pace {
		reached := midnight(sec)
		if reached <= latest {
			continue
		}
		latest = reached
		begin := sec
		for begin > sec-pace && midnight(begin-1) >= reached {
			begin--
		}
		if start, _ := Calendar(Day, loc).Bounds(sec * 1000); start != begin*1000 {
			t.Errorf(
				"the day of %v begins at %v, not at %v",
				time.Unix(sec, 0).In(loc),
				time.Unix(begin, 0).In(loc),
				time.UnixMilli(start).In(loc),
			)
		}
	}
}

// reaches requires that a zone changes its offset at most once within two days.
func TestNoZoneChangesTwiceInTwoDays(t *testing.T) {
	for _, name := range oddZones {
		moments := changes(zone(t, name))
		for i := 1; i < len(moments); i++ {
			if moments[i]-moments[i-1] <= 2*dayMs {
				t.Errorf("%s: %v and %v", name, time.UnixMilli(moments[i-1]).UTC(), time.UnixMilli(moments[i]).UTC())
			}
		}
	}
}

func TestBoundsOfCalendarUnits(t *testing.T) {
	for _, c := range []struct {
		why        string
		unit       Unit
		zone, now  string
		start, end string
	}{
		{"minute", Minute, "UTC", "2026-03-01T12:34:56.789Z", "2026-03-01T12:34:00Z", "2026-03-01T12:35:00Z"},
		{"hour", Hour, "UTC", "2026-03-01T12:34:56.789Z", "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"},
		{"day", Day, "UTC", "2026-03-01T12:34:56.789Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"week from Monday", Week, "UTC", "2026-03-01T12:34:56.789Z", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"month", Month, "UTC", "2026-02-28T12:34:56.789Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"month of a leap year", Month, "UTC", "2028-02-29T12:34:56.789Z", "2028-02-01T00:00:00Z",
			"2028-03-01T00:00:00Z"},
		{"year", Year, "UTC", "2028-12-31T23:59:59.999Z", "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z"},
		{"the first moment", Day, "UTC", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"the last moment", Day, "UTC", "2026-03-01T23:59:59.999Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"before 1970", Week, "UTC", "1969-12-31T23:59:59.999Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},

		{"hour of a half-hour zone", Hour, "Asia/Kolkata", "2026-03-01T12:34:00Z", "2026-03-01T12:30:00Z",
			"2026-03-01T13:30:00Z"},
		{"day of a half-hour zone", Day, "Asia/Kolkata", "2026-03-01T12:34:00Z", "2026-02-28T18:30:00Z",
			"2026-03-01T18:30:00Z"},
		{"day of 23 hours", Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z",
			"2026-03-29T22:00:00Z"},
		{"day of 25 hours", Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z",
			"2026-10-25T23:00:00Z"},
		{"month with both", Month, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-09-30T22:00:00Z",
			"2026-10-31T23:00:00Z"},
		{"last day of a leap year", Day, "America/New_York", "2028-12-31T20:00:00Z", "2028-12-31T05:00:00Z",
			"2029-01-01T05:00:00Z"},

		{"midnight skipped", Day, "America/Sao_Paulo", "2017-10-15T12:00:00Z", "2017-10-15T03:00:00Z",
			"2017-10-16T02:00:00Z"},
		{"the day before", Day, "America/Sao_Paulo", "2017-10-15T02:59:59.999Z", "2017-10-14T03:00:00Z",
			"2017-10-15T03:00:00Z"},
		{"midnight repeated", Day, "America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z",
			"2018-02-18T03:00:00Z"},
		{"midnight skipped in Cairo", Day, "Africa/Cairo", "2023-04-28T12:00:00Z", "2023-04-27T22:00:00Z",
			"2023-04-28T21:00:00Z"},
		{"midnight skipped in Beirut", Day, "Asia/Beirut", "2022-03-27T12:00:00Z", "2022-03-26T22:00:00Z",
			"2022-03-27T21:00:00Z"},
		{"midnight twice, begins at the first", Day, "America/St_Johns", "2010-11-07T03:00:00Z",
			"2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"the day before a skipped day", Day, "Pacific/Apia", "2011-12-30T09:59:59.999Z", "2011-12-29T10:00:00Z",
			"2011-12-30T10:00:00Z"},
		{"the day after a skipped day", Day, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z",
			"2011-12-31T10:00:00Z"},
		{"a week of six days", Week, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z",
			"2012-01-01T10:00:00Z"},
		{"a year without a day", Year, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-01-01T10:00:00Z",
			"2011-12-31T10:00:00Z"},

		{"the hour before it is repeated", Hour, "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z",
			"2026-10-25T01:00:00Z"},
		{"the repeated hour", Hour, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z",
			"2026-10-25T02:00:00Z"},
		{"half an hour forward: a short hour", Hour, "Australia/Lord_Howe", "2026-10-03T15:45:00Z",
			"2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"half an hour back: a repeated half hour", Hour, "Australia/Lord_Howe", "2026-04-04T15:10:00Z",
			"2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"day of 24 1/2 hours", Day, "Australia/Lord_Howe", "2026-04-04T15:10:00Z", "2026-04-04T13:00:00Z",
			"2026-04-05T13:30:00Z"},
	} {
		t.Run(c.why, func(t *testing.T) {
			start, end := Calendar(c.unit, zone(t, c.zone)).Bounds(ms(t, c.now))
			if start != ms(t, c.start) || end != ms(t, c.end) {
				t.Errorf("%v in %s at %s: [%v, %v), want [%s, %s)", c.unit, c.zone, c.now,
					time.UnixMilli(start).UTC(), time.UnixMilli(end).UTC(), c.start, c.end)
			}
		})
	}
}

func TestBoundsOfDurations(t *testing.T) {
	for _, c := range []struct{ length, now, start int64 }{
		{10, 0, 0}, {10, 9, 0}, {10, 10, 10}, {10, -1, -10}, {10, -10, -10}, {10, -11, -20},
		{1, 5, 5}, {1, -5, -5}, {MaxDuration, year9999, 803 * MaxDuration},
	} {
		if start, end := Every(c.length).Bounds(c.now); start != c.start || end != c.start+c.length {
			t.Errorf("%d of %d: [%d, %d), want start %d", c.now, c.length, start, end, c.start)
		}
	}
}

func TestParseCalendarReadsUnitNames(t *testing.T) {
	for _, unit := range units {
		if got, ok := ParseCalendar([]byte(unit.String())); !ok || got != unit {
			t.Errorf("%v is read as %v, %v", unit, got, ok)
		}
	}
	for _, unit := range []Unit{0, Year + 1, 255} {
		if unit.String() != "" {
			t.Errorf("unit %d is called %q", uint8(unit), unit.String())
		}
	}
}
