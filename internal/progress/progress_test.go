package progress

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withoutTime returns a logger whose lines have no time.
func withoutTime(out *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func TestLogLineEveryFewSecondsWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := New(nil, withoutTime(&out))
		m.Begin("loading", 4000)
		for range 120 {
			time.Sleep(100 * time.Millisecond)
			m.Add(10)
		}
		m.BeginCount("copying", "keys", 4000)
		time.Sleep(10 * time.Second)
		m.Add(1000)
		m.Begin("short", 10)
		m.Add(10)
		m.End()
		assert.Equal(t, "level=INFO msg=loading bytes=500 of=4000 bytes_per_second=100 percent=12 left=35s\n"+
			"level=INFO msg=loading bytes=1000 of=4000 bytes_per_second=100 percent=25 left=30s\n"+
			"level=INFO msg=copying keys=1000 of=4000 keys_per_second=100 percent=25 left=30s\n", out.String())
	})
}

// Files may grow while they are read.
func TestProgressBeyondTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, terminal bytes.Buffer
		m := New(nil, withoutTime(&out))
		m.Begin("loading", 10)
		time.Sleep(time.Minute)
		m.Add(600)
		m.Begin("loading", 0)
		time.Sleep(time.Minute)
		m.Add(600)
		m.End()
		assert.Equal(t, "level=INFO msg=loading bytes=600 of=10 bytes_per_second=10 percent=100 left=0s\n"+
			"level=INFO msg=loading bytes=600 of=0 bytes_per_second=10 left=0s\n", out.String())
		m = New(&terminal, nil)
		m.Begin("loading", 10)
		m.Add(600)
		m.Begin("loading", 0)
		m.Add(600)
		m.End()
	})
}

func TestBarOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, terminal bytes.Buffer
		m := New(&terminal, withoutTime(&out))
		m.Begin("loading", 40<<20)
		for range 20 {
			time.Sleep(time.Second)
			m.Add(1 << 20)
		}
		drawn := terminal.String()
		m.End()
		assert.Empty(t, out.String())
		last := drawn[strings.LastIndex(drawn, "\rloading"):]
		for _, part := range []string{"loading", " 50% ", "█", "MB/s", "s:20s]"} {
			assert.Contains(t, last, part)
		}
		end := terminal.String()[len(drawn):]
		assert.Empty(t, strings.Trim(end[strings.LastIndex(end, "\r \r")+1:], " \r"), "the bar is removed")
	})
}

func TestBarOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		m := New(&terminal, nil)
		m.BeginCount("copying", "keys", 4000)
		for range 20 {
			time.Sleep(time.Second)
			m.Add(100)
		}
		drawn := terminal.String()
		m.End()
		last := drawn[strings.LastIndex(drawn, "\rcopying"):]
		for _, part := range []string{" 50% ", "2000/4000", "100 keys/s", "s:20s]"} {
			assert.Contains(t, last, part)
		}
	})
}

func TestNilMeterShowsNothing(t *testing.T) {
	var m *Meter
	m.Begin("loading", 1)
	m.Add(1)
	m.End()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	assert.Nil(t, Terminal(file))
}
