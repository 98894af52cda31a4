package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/internal/process"
	"rlserver/persistence"
)

func TestClientsAreAcceptedWhenTheDataIsLoaded(t *testing.T) {
	for _, test := range []struct{ loading, accepted time.Duration }{
		{0, 0},
		{time.Second, time.Second},
		{1999 * time.Millisecond, 1999 * time.Millisecond},
		{3 * time.Second, maxLoadWait},
		{time.Hour, maxLoadWait},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var loaded atomic.Bool
			accepted := make(chan time.Duration, 2)
			loadedBefore := make(chan bool, 2)
			err := loadThenAccept(maxLoadWait, func() error {
				time.Sleep(test.loading)
				loaded.Store(true)
				return nil
			}, func() {
				accepted <- time.Since(start)
				loadedBefore <- loaded.Load()
			})
			time.Sleep(time.Hour)
			require.NoError(t, err)
			require.Len(t, accepted, 1, "clients are accepted once")
			assert.Equal(t, test.accepted, <-accepted)
			assert.Equal(t, test.loading <= maxLoadWait, <-loadedBefore)
		})
	}
}

func TestNoClientIsAcceptedWhenTheDataCannotBeLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damaged := errors.New("damaged")
		err := loadThenAccept(maxLoadWait, func() error {
			time.Sleep(time.Second)
			return damaged
		}, func() { t.Error("clients were accepted") })
		time.Sleep(time.Hour)
		assert.Equal(t, damaged, err)
	})
}

// The first call of a client that connects as early as possible is served, not answered with
// LOADING.
func TestFirstCallIsNotAnsweredWithLoading(t *testing.T) {
	for served := 0; served < 10; {
		begun := time.Now()
		p := start(t)
		var conn net.Conn
		require.Eventually(t, func() (ok bool) {
			var err error
			conn, err = net.Dial("unix", p.socket)
			return err == nil
		}, patience, time.Millisecond)
		fmt.Fprint(conn, "GET k\r\n")
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		if took := time.Since(begun); took < maxLoadWait || line == "$-1\r\n" {
			require.Equal(t, "$-1\r\n", line)
			served++
		} else {
			t.Logf("in %v the server could not load its data: %s", took, line)
		}
		conn.Close()
		p.Process.Kill()
	}
}

// A start has all processors, although one is left free until there is load.
func TestDataIsLoadedOnAllProcessors(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	c := clock.New(clock.System(), slog.New(slog.DiscardHandler))
	data, err := persistence.Open(persistence.Options{Dir: t.TempDir(), AppendOnly: true, Clock: c.Now,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	p := &parts{
		processors: process.FitProcessors(), clock: c, data: data,
		engine: engine.New(engine.Options{Journal: data}),
	}
	require.Equal(t, 2, runtime.GOMAXPROCS(0))
	require.NoError(t, standalone{}.restore(t.Context(), p))
	assert.Equal(t, 3, runtime.GOMAXPROCS(0), "until a tick with enough load")
	require.NoError(t, data.Close())
}
