package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/clock"
)

// machine runs servers in this process, one after the other, with a system clock that the test
// controls.
type machine struct {
	t       *testing.T
	dir     string
	ahead   atomic.Int64 // difference from the real clock, µs
	stopped atomic.Int64 // constant time of the system clock, Unix µs; 0: the real clock
}

func newMachine(t *testing.T) *machine { return &machine{t: t, dir: t.TempDir()} }

func (m *machine) source() clock.Source {
	s := clock.System()
	return clock.Source{Elapsed: s.Elapsed, Read: func() (int64, time.Duration) {
		wall, elapsed := s.Read()
		if at := m.stopped.Load(); at != 0 {
			wall = at
		}
		return wall + m.ahead.Load(), elapsed
	}}
}

// withServer runs a server and calls do with a connection to it.
func (m *machine) withServer(do func(c *client)) {
	m.t.Helper()
	socket := filepath.Join(m.t.TempDir(), "s")
	flags := []string{"--port", "0", "--unixsocket", socket, "--dir", m.dir, "--loglevel", "warning"}
	c, _, err := parse(flags, io.Discard)
	require.NoError(m.t, err)
	ctx, stop := context.WithCancel(m.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, c, m.source()) }()
	p := &child{t: m.t, socket: socket}
	conn := p.connect()
	do(&client{m.t, conn, bufio.NewReader(conn)})
	stop()
	require.NoError(m.t, <-ended)
}

// repair runs repair --clock, with the real clock, on the directory and returns its output.
func (m *machine) repair() string {
	m.t.Helper()
	var out bytes.Buffer
	require.NoError(m.t, run([]string{"repair", "--clock", m.dir}, &out), out.String())
	return out.String()
}

// client returns replies as the texts of their elements, separated by spaces.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (c *client) do(line string) string {
	c.t.Helper()
	fmt.Fprintf(c, "%s\r\n", line)
	return c.read()
}

func (c *client) read() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	require.NoError(c.t, err)
	text := strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '$':
		body := make([]byte, max(0, n+2))
		_, err := io.ReadFull(c.r, body)
		require.NoError(c.t, err)
		return strings.TrimSuffix(string(body), "\r\n")
	case '*':
		var parts []string
		for range n {
			parts = append(parts, c.read())
		}
		return strings.Join(parts, " ")
	}
	return text
}

func (c *client) number(line string) int64 {
	c.t.Helper()
	text := c.do(line)
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(c.t, err, "%s: %s", line, text)
	return n
}

// difference returns clock_difference_ms.
func (c *client) difference() int64 {
	_, after, _ := strings.Cut(c.do("INFO server"), "clock_difference_ms:")
	value, _, _ := strings.Cut(after, "\r")
	n, err := strconv.ParseInt(value, 10, 64)
	require.NoError(c.t, err)
	return n
}

// requireRefills requires that a bucket refills, which takes 50 ms.
func (c *client) requireRefills() {
	c.t.Helper()
	const call = "RL.TOKEN bucket 1000 1000 50ms COST 1000"
	for _, what := range []string{"full", "refilled"} {
		full := func() bool { return strings.HasPrefix(c.do(call), "1 ") }
		require.Eventually(c.t, full, patience, 10*time.Millisecond, what)
	}
}

const (
	hour = int64(time.Hour / time.Microsecond)
	year = 365 * 24 * hour
)

// A system clock that is wrong for a short time has no lasting effect on the server or the
// directory.
func TestShortClockErrorHasNoLastingEffect(t *testing.T) {
	for _, step := range []int64{hour, -hour, 10 * year, -10 * year} {
		m := newMachine(t)
		m.withServer(func(c *client) {
			c.requireRefills()
			m.ahead.Store(step)
			c.requireRefills()
			assert.InDelta(t, step/1000, c.difference(), 1000)
			m.ahead.Store(0)
			c.requireRefills()
			assert.InDelta(t, 0, c.difference(), 1000)
		})
		m.withServer(func(c *client) {
			c.requireRefills()
			assert.InDelta(t, 0, c.difference(), 1000)
		})
		assert.Contains(t, m.repair(), "nothing was changed")
	}
}

// A server continues from a directory that is ahead of the clock. repair --clock moves it back to
// the present.
func TestRestartWithDataAheadOfTheClock(t *testing.T) {
	for _, step := range []int64{1e6, hour, 10 * year} {
		t.Run(fmt.Sprint(time.Duration(step)*time.Microsecond), func(t *testing.T) {
			m := newMachine(t)
			m.ahead.Store(step)
			var last int64
			m.withServer(func(c *client) {
				c.do("RL.SLIDE log 5 30d COST 3")
				c.do("RL.SLIDE ids 5 30d ID a")
				c.do("RL.TOKEN token 5 1 30d COST 3")
				c.do("RL.FIXED fixed 5 year COST 3")
				c.do("RL.LEASE lease 5 30d a")
				c.do("SET key value EX 2592000")
				c.do("SET stays value")
				c.requireRefills()
				last = c.number("EXPIRETIME key")
				if step > hour {
					assert.Equal(t, "OK", c.do("SAVE")) // all keys are in a snapshot
				}
			})
			m.ahead.Store(0)
			require.True(t, m.requireData(func(c *client) {
				assert.InDelta(t, -step/1000, c.difference(), 20_000, "it continues after the latest time in the data")
				c.requireRefills()
				assert.Equal(t, last, c.number("EXPIRETIME key"))
			}))
			if step < hour {
				return // the data may not be ahead any more
			}
			output := m.repair()
			assert.Contains(t, output, "keys were moved back by")
			assert.Contains(t, output, "copies of all files are in")
			require.True(t, m.requireData(func(c *client) {
				assert.InDelta(t, 0, c.difference(), 1000)
				c.requireRefills()
				assert.InDelta(t, time.Now().Add(30*24*time.Hour).Unix(), c.number("EXPIRETIME key"), 60)
			}))
			assert.Contains(t, m.repair(), "the data is not ahead: nothing was changed")
			var out bytes.Buffer
			assert.NoError(t, run([]string{"check", m.dir}, &out), out.String())
		})
	}
}

// requireData requires all keys of the test above, and calls do.
func (m *machine) requireData(do func(c *client)) bool {
	m.withServer(func(c *client) {
		assert.Regexp(m.t, "^1 5 2 0 ", c.do("RL.SLIDE log 5 30d COST 0"))
		assert.Regexp(m.t, "^1 5 4 0 ", c.do("RL.SLIDE ids 5 30d ID a"))
		assert.Regexp(m.t, "^1 5 2 0 ", c.do("RL.TOKEN token 5 1 30d COST 0"))
		assert.Regexp(m.t, "^1 5 2 0 ", c.do("RL.FIXED fixed 5 year COST 0"))
		assert.Regexp(m.t, "^1 5 4 0 ", c.do("RL.LEASE lease 5 30d a"))
		assert.InDelta(m.t, 2592000, c.number("TTL key"), 60)
		assert.EqualValues(m.t, -1, c.number("TTL stays"))
		do(c)
	})
	return !m.t.Failed()
}

// A server whose clock is far ahead of the data does not follow it for a minute, so that a short
// error of the clock expires no keys.
func TestStartWithClockFarAheadKeepsKeys(t *testing.T) {
	m := newMachine(t)
	m.withServer(func(c *client) { c.do("SET key value EX 3600") })
	m.ahead.Store(10 * year)
	m.withServer(func(c *client) {
		assert.Equal(t, "value", c.do("GET key"))
		c.requireRefills()
	})
	m.ahead.Store(0)
	m.withServer(func(c *client) {
		assert.Equal(t, "value", c.do("GET key"))
		assert.InDelta(t, 0, c.difference(), 60_000)
	})
}

// Names of hits are unique even if hits are refunded before a restart and the clock does not
// advance.
func TestNamesOfHitsAreUniqueAcrossRestarts(t *testing.T) {
	m := newMachine(t)
	m.stopped.Store(time.Now().UnixMicro())
	given := make(map[string]bool)
	for range 4 {
		m.withServer(func(c *client) {
			for range 3 {
				c.do("RL.SLIDE log 100 1h COST 3")
				for _, name := range strings.Fields(c.do("ZRANGE log 0 -1")) {
					assert.False(t, given[name], name)
					given[name] = true
				}
				c.do("RL.REFUND log 3")
			}
		})
	}
	assert.Len(t, given, 36)
}

func TestRepairClockRequiresAReadableDirectory(t *testing.T) {
	out := new(bytes.Buffer)
	assert.ErrorContains(t, run([]string{"repair", "--clock"}, out), "rlserver repair [--clock] DIR")
	assert.ErrorContains(t, run([]string{"repair", "--cluck", t.TempDir()}, out), "rlserver repair [--clock] DIR")
	assert.NoError(t, run([]string{"repair", "--clock", t.TempDir()}, out))
	assert.Contains(t, out.String(), "nothing was changed")

	damaged := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(damaged, "0000000001.log"), make([]byte, 1000), 0o600))
	assert.ErrorContains(t, run([]string{"repair", "--clock", damaged}, out), "without --clock first")
}
