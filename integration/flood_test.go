package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

// flood is an attack with new keys from many connections at once.
type flood struct {
	s     *server
	keys  atomic.Int64 // sent so far
	conns []net.Conn
}

const floodClients = 50

// The calls that an application might make for each visitor.
var floodCalls = []string{
	"RL.SLIDE flood:%d 10 1h",
	"RL.TOKEN flood:%d 5 1 1h",
	"RL.FIXED flood:%d 3 1d",
	"RL.MULTI flood:%d 1 1m 10 1d",
}

func newFlood(t *testing.T, s *server) *flood {
	t.Helper()
	f := &flood{s: s}
	for range floodClients {
		conn, err := dial(s.addr)
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*patience)))
		t.Cleanup(func() { conn.Close() })
		f.conns = append(f.conns, conn)
	}
	return f
}

// send makes calls with n new keys over all connections, in pipelines of a given length, at most
// perSecond calls per second (0: no limit). It returns the latency of each batch, from the time at
// which it was due.
func (f *flood) send(t *testing.T, n int64, pipeline int, perSecond float64) (took []time.Duration) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	last, start := f.keys.Load()+n, time.Now()
	for i, conn := range f.conns {
		clients.Go(func() {
			var own []time.Duration
			in, out := bufio.NewReaderSize(conn, 64<<10), new(bytes.Buffer)
			every := time.Duration(0)
			due := start
			if perSecond > 0 {
				every = time.Duration(float64(time.Second) * floodClients * float64(pipeline) / perSecond)
				due = start.Add(every * time.Duration(i) / floodClients)
			}
			for {
				out.Reset()
				sent := 0
				for ; sent < pipeline; sent++ {
					key := f.keys.Add(1)
					if key > last {
						f.keys.Add(-1)
						break
					}
					fmt.Fprintf(out, floodCalls[key%int64(len(floodCalls))]+"\r\n", key)
				}
				if sent == 0 {
					break
				}
				time.Sleep(time.Until(due))
				if every == 0 {
					due = time.Now()
				}
				if _, err := conn.Write(out.Bytes()); !assert.NoError(t, err) {
					return
				}
				for range sent {
					if !assert.NoError(t, admitted(in)) {
						return
					}
				}
				own = append(own, time.Since(due))
				due = due.Add(every)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	clients.Wait()
	return took
}

// admitted reads a decision and returns an error unless it admits.
func admitted(in *bufio.Reader) error {
	header, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if header[0] != '*' {
		return fmt.Errorf("%q", header)
	}
	n := int(header[1] - '0')
	for i := range n {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if i == 0 && string(line) != ":1\r\n" {
			return fmt.Errorf("not admitted")
		}
	}
	return nil
}

// resident returns a field of /proc/PID/status about the memory of a process, in bytes; ok is false
// on other systems.
func resident(pid int, line string) (n int64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	match := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if err != nil || match == nil {
		return 0, false
	}
	n, err = strconv.ParseInt(string(match[1]), 10, 64)
	return n << 10, err == nil
}

// infoCount returns a field of INFO.
func infoCount(t *testing.T, s *server, field string) (n int64) {
	t.Helper()
	match := regexp.MustCompile(`(?m)^` + field + `:(\d+)\r$`).
		FindStringSubmatch(s.connect(t).Info(context.Background()).Val())
	require.NotNil(t, match, field)
	n, err := strconv.ParseInt(match[1], 10, 64)
	require.NoError(t, err)
	return n
}

// A flood of new keys evicts no limiter that is denying, and the process stays within its memory
// limit. The default is small; FLOOD_KEYS=5000000 FLOOD_MAXMEMORY=256 (MB) is large. FLOOD_FLAGS
// are further flags of the server. The test logs throughput and latency.
func TestFloodKeepsDenyingLimiters(t *testing.T) {
	clustertest.Long(t)
	keys, megabytes := floodSize(t, "FLOOD_KEYS", 500_000), floodSize(t, "FLOOD_MAXMEMORY", 32)
	limit := megabytes << 20
	flags := strings.Fields(os.Getenv("FLOOD_FLAGS"))
	s := startServer(t, append([]string{"--maxmemory", fmt.Sprint(megabytes, "mb")}, flags...)...)
	client := s.connect(t)
	decide := func(words ...any) int64 {
		d, err := client.Do(t.Context(), words...).Int64Slice()
		require.NoError(t, err)
		return d[0]
	}
	blocked := [][]any{
		{"RL.SLIDE", "blocked:slide", 5, "1d"}, {"RL.TOKEN", "blocked:token", 5, 1, "1d"},
		{"RL.FIXED", "blocked:fixed", 5, "7d"}, {"RL.MULTI", "blocked:multi", 5, "1h", 6, "1d"},
	}
	for _, call := range blocked {
		for range 5 {
			require.EqualValues(t, 1, decide(call...))
		}
		require.EqualValues(t, 0, decide(call...))
	}

	f := newFlood(t, s)
	start := time.Now()
	f.send(t, keys*8/10, 100, 0)
	t.Logf("%d keys, pipelines of 100: %.0f calls/s", keys*8/10, float64(keys*8/10)/time.Since(start).Seconds())
	start = time.Now()
	took := f.send(t, keys/10, 1, 0)
	full := float64(keys/10) / time.Since(start).Seconds()
	t.Logf("one at a time: %.0f calls/s, p50 %v, p99 %v", full, percentile(took, 50), percentile(took, 99))
	took = f.send(t, keys/10, 1, full/2)
	t.Logf("at half that rate: p50 %v, p99 %v, p99.9 %v, longest %v", percentile(took, 50), percentile(took, 99),
		percentile(took, 99.9), percentile(took, 100))

	for _, call := range blocked {
		assert.EqualValues(t, 0, decide(call...), "%v is still denied", call)
	}
	evicted, used := infoCount(t, s, "evicted_keys"), infoCount(t, s, "used_memory")
	t.Logf("%d of %d keys were evicted; used_memory %d MB", evicted, keys, used>>20)
	assert.Greater(t, evicted, keys/10)
	assert.Greater(t, used, limit-limit/10, "the flood fills the memory")
	assert.Less(t, used, limit+limit/10)
	assert.Zero(t, infoCount(t, s, "maxmemory_refused_calls"))
	if peak, ok := resident(s.pid, "VmHWM"); ok && !withRaceDetector() {
		t.Logf("peak RSS of the process: %d MB", peak>>20)
		program, _ := resident(s.pid, "RssFile")
		assert.Less(t, peak, limit+limit/2+program, "1.5 times maxmemory and the binary")
	}
}

func floodSize(t *testing.T, variable string, otherwise int64) int64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

func percentile(took []time.Duration, p float64) time.Duration {
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[min(int(float64(len(took))*p/100), len(took)-1)].Round(10 * time.Microsecond)
}
