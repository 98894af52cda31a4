package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The exit code is 1 if the last snapshot fails, because changes are lost.
func TestFailedLastSnapshotIsAnError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o750))
	p := start(t, "--dir", dir, "--appendonly", "no", "--save", "900 1")
	conn := p.connect()
	fmt.Fprint(conn, "SET k v\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", line)
	require.NoError(t, os.RemoveAll(dir))
	p.Process.Signal(syscall.SIGTERM)
	require.Error(t, p.waitForExit())
	assert.Equal(t, 1, p.ProcessState.ExitCode())
	assert.Contains(t, p.stderr.String(),
		"rlserver: the last snapshot could not be taken, and changes since the one before are lost: ")
}

// SHUTDOWN SAVE loses nothing that was acknowledged before the connections were closed, with and
// without --save.
func TestShutdownSaveLosesNothing(t *testing.T) {
	for _, save := range []string{"", "900 1"} {
		t.Run(save, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--dir", filepath.Join(t.TempDir(), "data"), "--appendonly", "no", "--save", save}
			p := start(t, flags...)
			conn, other := p.connect(), p.connect()
			first := make(chan struct{})
			last := make(chan string)
			go func() {
				acknowledged := ""
				r := bufio.NewReader(conn)
				for {
					fmt.Fprint(conn, "INCR n\r\n")
					line, err := r.ReadString('\n')
					if err != nil {
						last <- acknowledged
						return
					}
					if acknowledged == "" {
						close(first)
					}
					acknowledged = line
				}
			}()
			<-first
			fmt.Fprint(other, "SHUTDOWN SAVE\r\n")
			require.NoError(t, p.waitForExit(), "%s", p.stderr.String())
			acknowledged := <-last

			p = start(t, flags...)
			conn = p.connect()
			fmt.Fprint(conn, "INCRBY n 0\r\n")
			line, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, acknowledged, line)
		})
	}
}

// SHUTDOWN SAVE takes one snapshot if nothing has changed since.
func TestShutdownSaveTakesOneSnapshot(t *testing.T) {
	t.Parallel()
	p := start(t, "--appendonly", "no")
	fmt.Fprint(p.connect(), "SET k v\r\nSHUTDOWN SAVE\r\n")
	require.NoError(t, p.waitForExit())
	assert.Equal(t, 1, strings.Count(p.stderr.String(), "snapshot taken"), "%s", p.stderr.String())
}

// The stop waits for a slow disk as long as it answers, and ends when it hangs.
func TestStopWaitsForADiskThatAnswers(t *testing.T) {
	failed := errors.New("failed")
	for _, test := range []struct {
		answers int // one per second
		hangs   time.Duration
		want    string
		least   time.Duration
	}{
		{1000, 0, "failed", 1000 * time.Second},
		{0, time.Hour, "the disk of /data has not answered for 10s", closeTime},
		{100, time.Hour, "the disk of /data has not answered for 10s", 100*time.Second + closeTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			start := time.Now()
			err := untilHung(t.Context(), "/data", n.Load, func() error {
				for range test.answers {
					time.Sleep(time.Second)
					n.Add(1)
				}
				time.Sleep(test.hangs)
				return failed
			})
			require.EqualError(t, err, test.want)
			require.GreaterOrEqual(t, time.Since(start), test.least)
			require.LessOrEqual(t, time.Since(start), test.least+closeTime)
			time.Sleep(test.hangs)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), stopTime)
		defer cancel()
		err := untilHung(ctx, "/data", new(atomic.Int64).Load, func() error {
			time.Sleep(time.Hour)
			return nil
		})
		require.EqualError(t, err, "a call that is still running holds a part of the data")
		time.Sleep(time.Hour)
	})
}
