package limit

import "testing"

// hotPaths returns every call of the hot path, for the test below and the benchmarks.
func hotPaths(t testing.TB) []struct {
	name string
	call func()
} {
	bucket := Bucket{Capacity: 100, Refill: 7, Period: 1000}
	other := Bucket{Capacity: 100, Refill: 70, Period: 9999}
	empty := bucketState(100, 3, 1000, epoch)
	day := Fixed{100, Calendar(Day, zone(t, "Europe/Berlin"))}
	hour := Fixed{100, Calendar(Hour, zone(t, "Asia/Kolkata"))}
	month := Fixed{100, Calendar(Month, zone(t, "America/New_York"))}
	length := Fixed{100, Every(60_000)}
	log := logOf()
	for i := range 100 {
		log.add(float64(epoch+int64(i)), 1)
	}
	slide, full := []Window{{1000, 60_000}}, []Window{{50, 60_000}}
	rules := []Window{{1000, 60_000}, {2000, 3_600_000}, {3000, dayMs}}
	fullRules := []Window{{50, 60_000}, {60, 3_600_000}, {70, dayMs}}
	seconds, calendar := []byte("60"), []byte("month")
	decimal := []byte("1.5h")

	now, tokens, count, counts := epoch, Tokens{}, Count{}, Counts{}
	take := func(f Fixed) func() {
		return func() {
			now++
			count, _, _ = f.Take(count, now, 1)
		}
	}
	return []struct {
		name string
		call func()
	}{
		{"Token/admitted", func() { now += 200; tokens, _ = bucket.Take(tokens, now, 1) }},
		{
			"Token/turns",
			func() { now += 200; tokens, _ = bucket.Take(tokens, now, 1); tokens, _ = other.Take(tokens, now, 1) },
		},
		{"Token/denied", func() { tokens, _ = bucket.Take(empty, epoch+1, 1) }},
		{"Fixed/duration", take(length)},
		{"Fixed/hour", take(hour)},
		{"Fixed/day", take(day)},
		{"Fixed/month", take(month)},
		{"Slide/admitted", func() { DecideAll(slide, log, epoch+100, 1) }},
		{"Slide/denied", func() { DecideAll(full, log, epoch+100, 1) }},
		{"Slide/repeated", func() { RepeatedAll(full, log, epoch+100) }},
		{"Leaky/admitted", func() { now += 200; tokens, _ = bucket.Pace(tokens, now, 1) }},
		{"Counter/admitted", func() { now += 200; counts, _ = Counter{1 << 40, 60_000}.Take(counts, now, 1) }},
		{"Lease/admitted", func() { Lease{1000, 1000}.Decide(log, -1, epoch+50, 1) }},
		{"Lease/denied", func() { Lease{10, 1000}.Decide(log, -1, epoch+50, 1) }},
		{"Multi/admitted", func() { DecideAll(rules, log, epoch+100, 1) }},
		{"Multi/denied", func() { DecideAll(fullRules, log, epoch+100, 1) }},
		{"Multi/repeated", func() { RepeatedAll(rules, log, epoch+100) }},
		{"ParseDuration/whole", func() { ParseDuration(seconds) }},
		{"ParseDuration/decimal", func() { ParseDuration(decimal) }},
		{"ParseCalendar", func() { ParseCalendar(calendar) }},
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	for _, p := range hotPaths(t) {
		if n := testing.AllocsPerRun(100, p.call); n != 0 {
			t.Errorf("%s: %v allocations", p.name, n)
		}
	}
}

func BenchmarkLimit(b *testing.B) {
	for _, p := range hotPaths(b) {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.call()
			}
		})
	}
}
