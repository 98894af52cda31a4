package logins

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/clock"
)

// bench is a Limiter with a clock that the test sets.
type bench struct {
	*Limiter
	settings Settings
	now      time.Duration
	checked  int
}

func newBench() *bench {
	b := new(bench)
	b.settings.Init()
	b.Limiter = New(&b.settings, by(func() time.Duration { return b.now }), slog.New(slog.DiscardHandler))
	return b
}

func (b *bench) try(address string, result Result) (wait time.Duration) {
	return b.Try(address, func() Result { b.checked++; return result })
}

// by returns a clock with a monotonic clock of the test.
func by(elapsed func() time.Duration) *clock.Clock {
	read := func() (int64, time.Duration) { return elapsed().Microseconds(), elapsed() }
	return clock.New(clock.Source{Read: read, Elapsed: elapsed}, slog.New(slog.DiscardHandler))
}

// v4 returns the i-th of many addresses.
func v4(i int) string { return fmt.Sprintf("10.%d.%d.%d:5000", i>>16, i>>8&255, i&255) }

func TestAnAddressHasItsFailuresPerMinute(t *testing.T) {
	b := newBench()
	for range DefaultPerAddress {
		require.Zero(t, b.try("192.0.2.1:1", Wrong))
	}
	require.Equal(t, 2*time.Second, b.try("192.0.2.1:2", Wrong))
	require.Equal(t, 2*time.Second, b.try("192.0.2.1:3", Right), "a right password is not checked either")
	require.Equal(t, DefaultPerAddress, b.checked)
	require.EqualValues(t, 2, b.Refused())
	require.Zero(t, b.try("192.0.2.2:1", Right), "another address")

	b.now += 2*time.Second - time.Millisecond
	require.Equal(t, time.Millisecond, b.try("192.0.2.1:1", Wrong))
	b.now += time.Millisecond
	require.Zero(t, b.try("192.0.2.1:1", Right), "it takes no token")
	require.Zero(t, b.try("192.0.2.1:1", Wrong), "and gives none back")
	require.Equal(t, 2*time.Second, b.try("192.0.2.1:1", Wrong))
	b.now += time.Minute
	for range DefaultPerAddress {
		require.Zero(t, b.try("192.0.2.1:1", Wrong))
	}
	require.NotZero(t, b.try("192.0.2.1:1", Wrong))
}

// Guessing at any speed gives the burst and the rate, from one address.
func TestGuessingIsBoundedOverTime(t *testing.T) {
	b := newBench()
	for ; b.now < 2*time.Hour; b.now += 100 * time.Millisecond {
		b.try("[2001:db8::"+strconv.Itoa(int(b.now/time.Second%9000))+"]:1", Wrong)
	}
	assert.Equal(t, DefaultPerAddress+120*DefaultPerAddress-1, b.checked)
}

func TestSources(t *testing.T) {
	for _, same := range [][]string{
		{"192.0.2.1:1", "192.0.2.1:2", "[::ffff:192.0.2.1]:1"},
		{"[2001:db8::1]:1", "[2001:db8::ffff:ffff:ffff:ffff]:2", "[2001:db8::1%eth0]:1"},
		{"127.0.0.1:1", "127.99.0.7:1", "[::ffff:127.0.0.2]:1"},
		{"[fe80::1%eth0]:1", "[fe80::2%eth1]:1"},
		{"/run/rlserver.sock", "", "@", "pipe"},
	} {
		b := newBench()
		b.settings.PerAddress.Store(int64(len(same)))
		for _, address := range same {
			require.Zero(t, b.try(address, Wrong))
		}
		for _, address := range same {
			require.NotZero(t, b.try(address, Wrong), address)
		}
		for _, other := range []string{"192.0.2.2:1", "[2001:db8:0:1::1]:1", "[::1]:1", "[fe80:0:0:1::1]:1"} {
			require.Zero(t, b.try(other, Wrong), "%s is not %s", other, same[0])
		}
		require.Equal(t, SourceOf(same[0]), SourceOf(same[1]))
	}
	for address, local := range map[string]bool{
		"127.9.9.9:1": true, "[::1]:1": true, "/run/s": true, "[::ffff:127.0.0.1]:1": true,
		"192.0.2.1:1": false, "[2001:db8::1]:1": false, "[::2]:1": false,
	} {
		require.Equal(t, local, SourceOf(address).Local(), address)
	}
}

// Guesses from many addresses share a limit, which never delays an address that has not failed, nor
// one that has logged in.
func TestAllAddressesShareALimit(t *testing.T) {
	b := newBench()
	b.try("192.0.2.1:1", Right)
	for i := range DefaultTotal {
		require.Zero(t, b.try(v4(i), Wrong))
	}
	require.Equal(t, 100*time.Millisecond, b.try(v4(0), Wrong))
	require.Equal(t, 100*time.Millisecond, b.try(v4(1), Right))
	for i := range 3000 {
		require.Zero(t, b.try(v4(1e6+i), Right), "it has not failed")
	}
	require.Zero(t, b.try(v4(1e6), Wrong))
	require.Zero(t, b.try(v4(1e6), Right), "it has logged in")
	require.Zero(t, b.try("192.0.2.1:1", Wrong))
	require.Zero(t, b.try("192.0.2.1:1", Right), "it has logged in")
	require.Zero(t, b.try(v4(1e7), Wrong), "the first login of an address is checked")
	require.NotZero(t, b.try(v4(1e7), Right))

	for range 100 {
		b.now += 100 * time.Millisecond
		require.Zero(t, b.try(v4(0), Wrong), "one more")
		require.NotZero(t, b.try(v4(1), Wrong))
		require.Zero(t, b.try(v4(2e6+int(b.now)), Right))
		if b.now > time.Second {
			break
		}
	}
}

func TestFailuresAreForgotten(t *testing.T) {
	b := newBench()
	for i := range DefaultTotal {
		b.try(v4(i), Wrong)
	}
	require.Equal(t, DefaultTotal, b.Sources())
	b.now += Memory
	b.try("192.0.2.1:1", Wrong)
	require.Equal(t, DefaultTotal+1, b.Sources())
	b.now += time.Millisecond
	b.try("192.0.2.1:1", Wrong)
	require.Equal(t, 1, b.Sources())
}

// If there is no place to remember a failure, guesses from new addresses share the limit of their
// wider network. Other networks, this machine and addresses that have logged in are not affected.
func TestTheListsAreBounded(t *testing.T) {
	b := newBench()
	b.settings.Addresses.Store(1000)
	for i := range 3000 {
		require.Zero(t, b.try(v4(3e6+i), Right))
	}
	require.Equal(t, 1000, b.Sources(), "the last 1,000 that logged in")
	network := func(high, low int) string { return fmt.Sprintf("[2001:%x:0:%x::1]:1", high, low) }
	for i := range 1000 {
		require.Zero(t, b.try(network(1, i), Wrong))
	}
	require.Equal(t, 2000, b.Sources())
	checked := b.checked
	for i := range 5000 {
		b.try(network(1, 1000+i), Wrong)
	}
	require.Equal(t, DefaultPerAddress, b.checked-checked, "one /32 has the limit of one address")
	require.NotZero(t, b.try(network(1, 7000), Right))
	for _, address := range []string{network(2, 0), "198.51.100.1:1", "127.0.0.1:1", "[::1]:1", ""} {
		require.Zero(t, b.try(address, Right), address)
	}
	for i := range 990 {
		require.Zero(t, b.try(v4(3e6+2010+i), Right), "who has logged in is not delayed")
	}
	for i := range 3000 {
		b.try(network(3+i, 0), Wrong)
	}
	require.LessOrEqual(t, b.Sources(), 3000)
	b.now += Memory + time.Millisecond
	require.Zero(t, b.try(network(9000, 0), Wrong))
	require.LessOrEqual(t, b.Sources(), 1001)
}

func TestUsersWithoutAPasswordChangeNothing(t *testing.T) {
	b := newBench()
	for i := range 5000 {
		require.Zero(t, b.try(v4(i), Unproven))
	}
	require.Zero(t, b.Sources())
	for range DefaultPerAddress {
		require.Zero(t, b.try(v4(0), Unproven))
		require.Zero(t, b.try(v4(0), Wrong))
	}
	require.NotZero(t, b.try(v4(0), Wrong))
	for i := range DefaultTotal {
		b.try(v4(1+i), Wrong)
	}
	require.Zero(t, b.try(v4(1e6), Unproven))
	require.Zero(t, b.try(v4(1e6), Wrong))
	require.NotZero(t, b.try(v4(1e6), Wrong), "it has not proven anything")
}

func TestLimitsCanBeChanged(t *testing.T) {
	b := newBench()
	b.settings.PerAddress.Store(0)
	for range 1000 {
		b.try("192.0.2.1:1", Wrong)
	}
	require.Equal(t, DefaultTotal, b.checked, "the limit of all remains")
	b.settings.Total.Store(0)
	for range 1000 {
		require.Zero(t, b.try("192.0.2.1:1", Wrong))
	}
	b.settings.PerAddress.Store(5)
	for range 5 {
		require.Zero(t, b.try("192.0.2.1:1", Wrong))
	}
	require.Equal(t, 12*time.Second, b.try("192.0.2.1:1", Wrong))
	b.settings.PerAddress.Store(2)
	require.NotZero(t, b.try("192.0.2.1:1", Wrong))

	networks, err := ParseNetworks("192.0.2.1, 2001:db8::/32 10.0.0.9/8")
	require.NoError(t, err)
	b.settings.SetExempt(networks)
	require.Equal(t, "192.0.2.1/32 2001:db8::/32 10.0.0.0/8", b.settings.Exempt())
	for _, address := range []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", "[2001:db8:7::1]:1", "10.255.0.1:1"} {
		for range 100 {
			require.Zero(t, b.try(address, Wrong), address)
		}
	}
	require.NotZero(t, New(&b.settings, b.clock, b.log).limitOf(t, "192.0.2.2:1"))
	networks, err = ParseNetworks("::ffff:10.0.0.0/104 ::ffff:192.0.2.1 ::ffff:192.0.2.9/128")
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.0/8 192.0.2.1/32 192.0.2.9/32]", fmt.Sprint(networks))
	_, err = ParseNetworks("::ffff:10.0.0.0/90")
	require.ErrorContains(t, err, "is neither a network of IPv4 nor one of IPv6")
	for _, bad := range []string{"10.0.0.0/33", "x", "10.0.0", "fe80::1%eth0", "10.0.0.0/-1"} {
		_, err := ParseNetworks(bad)
		require.ErrorContains(t, err, "'"+bad+"' is not an address or a network such as 10.0.0.0/8")
	}
}

// limitOf returns after how many failures an address is refused.
func (l *Limiter) limitOf(t *testing.T, address string) (n int) {
	for l.Try(address, func() Result { return Wrong }) == 0 {
		n++
		require.Less(t, n, 1000)
	}
	return n
}

// Checks that run at the same time cannot all use the last tokens, and right passwords do not
// refuse each other.
func TestChecksAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var settings Settings
		settings.Init()
		start := time.Now()
		l := New(&settings, by(func() time.Duration { return time.Since(start) }), slog.New(slog.DiscardHandler))
		var checked, refused atomic.Int64
		try := func(result Result) {
			wait := l.Try("192.0.2.1:1", func() Result {
				checked.Add(1)
				time.Sleep(time.Millisecond)
				return result
			})
			if wait > 0 {
				refused.Add(1)
			}
		}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { try(Right) })
		}
		all.Wait()
		require.EqualValues(t, 1000, checked.Load())
		require.Zero(t, refused.Load())
		for range 1000 {
			all.Go(func() { try(Wrong) })
		}
		all.Wait()
		require.EqualValues(t, 1000+DefaultPerAddress, checked.Load())
		require.EqualValues(t, 1000-DefaultPerAddress, refused.Load())

		time.Sleep(time.Minute)
		checked.Store(0)
		func() {
			defer func() { recover() }()
			l.Try("192.0.2.1:1", func() Result { panic("a check fails") })
		}()
		for range 100 {
			all.Go(func() { try(Wrong) })
			all.Go(func() { try(Right) })
		}
		all.Wait()
		require.Less(t, checked.Load(), int64(DefaultPerAddress+100))
	})
}

// A clock that goes back neither admits more nor waits forever.
func TestAClockThatGoesBack(t *testing.T) {
	b := newBench()
	b.now = time.Hour
	n := b.limitOf(t, "192.0.2.1:1")
	b.now = 0
	require.NotZero(t, b.try("192.0.2.1:1", Wrong))
	b.now = time.Hour + 2*time.Second
	require.Zero(t, b.try("192.0.2.1:1", Wrong))
	require.Equal(t, DefaultPerAddress, n)
}

func TestRefusalNamesTheTime(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Millisecond: "0.1 s", 2 * time.Second: "2.0 s", 1999 * time.Millisecond: "2.0 s", time.Minute: "60.0 s",
	} {
		require.Contains(t, Refusal(wait), "try again in "+want)
	}
}

func BenchmarkTry(b *testing.B) {
	l := newBench()
	for b.Loop() {
		l.try("192.0.2.1:5000", Right)
	}
}
