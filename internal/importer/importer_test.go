package importer

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// miniature is a source whose replies a test decides.
type miniature struct {
	sync.Mutex
	addr    string
	runID   string
	now     time.Time // zero: that of this machine
	keys    []string
	missing map[string]bool // keys that have expired when they are read
	old     bool            // the server knows no PEXPIRETIME
	reply   func(words []string) string
	dumped  int // calls of DUMP
}

func startMiniature(t *testing.T, m *miniature) *miniature {
	t.Helper()
	m.runID = "first"
	s := redcon.NewServer("127.0.0.1:0", m.serve, func(redcon.Conn) bool { return true }, nil)
	listening := make(chan error, 1)
	go func() { _ = s.ListenServeAndSignal(listening) }()
	require.NoError(t, <-listening)
	t.Cleanup(func() { s.Close() })
	m.addr = s.Addr().String()
	return m
}

// serve answers a command. Commands after MULTI are kept until EXEC.
func (m *miniature) serve(conn redcon.Conn, command redcon.Command) {
	m.Lock()
	defer m.Unlock()
	var words []string
	for _, word := range command.Args {
		words = append(words, string(word))
	}
	words[0] = strings.ToUpper(words[0])
	queue, queuing := conn.Context().([][]string)
	switch {
	case words[0] == "MULTI":
		conn.SetContext([][]string{})
		conn.WriteString("OK")
	case words[0] == "EXEC":
		conn.SetContext(nil)
		conn.WriteArray(len(queue))
		for _, call := range queue {
			m.write(conn, m.answer(call))
		}
	case queuing:
		conn.SetContext(append(queue, words))
		conn.WriteString("QUEUED")
	default:
		m.write(conn, m.answer(words))
	}
}

func (m *miniature) write(conn redcon.Conn, text string) {
	text, ends := strings.CutSuffix(text, closed)
	conn.WriteRaw([]byte(text))
	if ends {
		conn.Close()
	}
}

// closed at the end of a reply closes the connection.
const closed = "closed"

func (m *miniature) answer(words []string) string {
	if m.reply != nil {
		if text := m.reply(words); text != "" {
			return text
		}
	}
	now := m.now
	if now.IsZero() {
		now = time.Now()
	}
	switch words[0] {
	case "HELLO":
		return "-ERR unknown command 'HELLO'\r\n"
	case "INFO":
		return bulk("# Server\r\nrun_id:" + m.runID + "\r\n")
	case "SCAN":
		return "*2\r\n" + bulk("0") + list(m.keys)
	case "DBSIZE":
		return fmt.Sprintf(":%d\r\n", len(m.keys))
	case "TYPE":
		return "+string\r\n"
	case "MEMORY":
		return ":50\r\n"
	case "TIME":
		return list([]string{fmt.Sprint(now.Unix()), fmt.Sprint(now.Nanosecond() / 1000)})
	case "PEXPIRETIME":
		if m.old {
			return "-ERR unknown command 'PEXPIRETIME'\r\n"
		}
		return ":-1\r\n"
	case "PTTL":
		return ":60000\r\n"
	case "DUMP":
		m.dumped++
		if m.missing[words[1]] {
			return "$-1\r\n"
		}
		return bulk("payload of " + words[1])
	case "CLUSTER":
		return "-ERR This instance has cluster support disabled\r\n"
	}
	return "+OK\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func list(words []string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += bulk(word)
	}
	return text
}

// startTarget starts a miniature as a target. restored is what it has got by RESTORE.
func startTarget(t *testing.T, reply func(words []string) string) (m *miniature, restored *[][]string) {
	t.Helper()
	restored = new([][]string)
	m = startMiniature(t, &miniature{reply: func(words []string) string {
		if words[0] != "RESTORE" {
			return ""
		}
		*restored = append(*restored, words)
		if reply != nil {
			return reply(words)
		}
		return ""
	}})
	m.runID = "target"
	return m, restored
}

// run imports, and returns the report, the notices and the error.
func run(t *testing.T, from, to *miniature, change ...func(*Options)) (report, notices string, err error) {
	t.Helper()
	o := Options{
		From: Endpoint{URL: "redis://" + from.addr}, To: Endpoint{URL: "redis://" + to.addr},
		State: filepath.Join(t.TempDir(), "state"),
	}
	for _, c := range change {
		c(&o)
	}
	var out, told bytes.Buffer
	err = Run(t.Context(), o, &out, nil, func(format string, args ...any) { fmt.Fprintf(&told, format+"\n", args...) })
	return out.String(), told.String(), err
}

func TestKeysThatExpireMeanwhileAreCounted(t *testing.T) {
	from := startMiniature(t, &miniature{keys: []string{"a", "b", "a"}, missing: map[string]bool{"b": true}})
	to, restored := startTarget(t, nil)
	report, _, err := run(t, from, to)
	require.NoError(t, err)
	assert.Equal(t, "copied 1 key, 0.0 MB: 1 string\n1 key expired or were deleted before they were read\n", report)
	assert.Equal(t, [][]string{{"RESTORE", "a", "0", "payload of a", "ABSTTL"}}, *restored)
}

// The remaining time stays the same, whatever the clocks show, also from servers before Redis 7.
func TestDeadlinesAreShiftedIfClocksDiffer(t *testing.T) {
	hour := time.UnixMilli(1763800000000)
	from := startMiniature(t, &miniature{keys: []string{"a"}, old: true, now: hour})
	to, restored := startTarget(t, nil)
	to.now = hour.Add(time.Hour)
	_, notices, err := run(t, from, to, func(o *Options) { o.Replace = true })
	require.NoError(t, err)
	_, after, _ := strings.Cut(notices, "the clock of the target is ahead of the source's by ")
	text, _, _ := strings.Cut(after, ":")
	ahead, err := time.ParseDuration(text)
	require.NoError(t, err, notices)
	assert.InDelta(t, time.Hour, ahead, float64(time.Minute), "wrong by half of what it took to ask both")
	require.Len(t, *restored, 1)
	var deadline int64
	_, err = fmt.Sscan((*restored)[0][2], &deadline)
	require.NoError(t, err)
	assert.InDelta(t, hour.Add(time.Hour+time.Minute).UnixMilli(), deadline, 60_000)
	assert.Equal(t, []string{"ABSTTL", "REPLACE"}, (*restored)[0][4:])
}

func TestTheSourceIsAwaitedWhileItLoads(t *testing.T) {
	left := 3
	from := startMiniature(t, &miniature{keys: []string{"a"}, reply: func(words []string) string {
		if words[0] == "PING" && left > 0 {
			left--
			return "-LOADING Redis is loading the dataset in memory\r\n"
		}
		return ""
	}})
	to, restored := startTarget(t, nil)
	_, notices, err := run(t, from, to)
	require.NoError(t, err)
	assert.Equal(t, "waits: the source is loading its data\n", notices)
	assert.Len(t, *restored, 1)
}

// A new connection to another process ends the run: its positions of SCAN are others.
func TestARestartOfTheSourceIsNoticed(t *testing.T) {
	from := startMiniature(t, &miniature{})
	from.reply = func(words []string) string {
		if words[0] != "SCAN" {
			return ""
		}
		if words[1] == "0" {
			return "*2\r\n" + bulk("7") + list([]string{"a"})
		}
		from.runID = "second"
		return closed
	}
	to, _ := startTarget(t, nil)
	state := filepath.Join(t.TempDir(), "state")
	keep := func(o *Options) { o.State = state }
	_, _, err := run(t, from, to, keep)
	require.ErrorContains(t, err, "the source: EOF; run this command again to go on")
	require.FileExists(t, state)

	from.reply, from.keys = nil, []string{"a", "b"}
	report, notices, err := run(t, from, to, keep)
	require.NoError(t, err)
	assert.Equal(t, "begins again: the source has restarted since, or its slots have moved\n", notices)
	assert.Contains(t, report, "copied 2 keys")
	assert.NoFileExists(t, state)
}

// A target that has restarted, or one node of it, may have lost the keys that it had taken.
func TestARestartOfTheTargetIsNoticed(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		from := startMiniature(t, &miniature{keys: []string{"a", "b"}})
		to, restored := startTarget(t, nil)
		restarts := to
		if nodes == 2 {
			restarts, _ = startTarget(t, nil)
			takes := to.reply
			to.reply = func(words []string) string {
				if words[0] == "CLUSTER" {
					return "*2\r\n" + slots(0, 100, to.addr) + slots(101, 16383, restarts.addr)
				}
				return takes(words)
			}
		}
		state := filepath.Join(t.TempDir(), "state")
		keep := func(o *Options) { o.State = state }
		from.reply = func(words []string) string {
			switch {
			case words[0] != "SCAN":
				return ""
			case words[1] == "0":
				return "*2\r\n" + bulk("7") + list([]string{"a"})
			}
			return closed
		}
		_, _, err := run(t, from, to, keep)
		require.ErrorContains(t, err, "the source: EOF; run this command again to go on")

		restarts.Lock()
		restarts.runID = "another"
		restarts.Unlock()
		from.Lock()
		from.reply = nil
		from.Unlock()
		*restored = nil
		_, notices, err := run(t, from, to, keep)
		require.NoError(t, err)
		assert.Equal(t, "begins again: the target has restarted since, or has other nodes, and may have lost keys\n",
			notices)
		assert.Len(t, *restored, 2)
	}
}

// slots is an element of the reply to CLUSTER SLOTS.
func slots(first, last int, addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n*3\r\n%s:%s\r\n%s", first, last, bulk(host), port, bulk(addr))
}

// A run does not go on with another process of the target, which it may notice when it connects
// again, or at the end.
func TestARestartOfTheTargetEndsTheRun(t *testing.T) {
	for _, reply := range []string{closed, "+OK\r\n"} {
		from := startMiniature(t, &miniature{keys: []string{"a"}})
		from.reply = func(words []string) string {
			if words[0] == "DUMP" { // large, so that it is sent again on a new connection
				return bulk(strings.Repeat("x", restoreBytes))
			}
			return ""
		}
		var to *miniature
		to, _ = startTarget(t, func([]string) string {
			to.runID = "another"
			return reply
		})
		state := filepath.Join(t.TempDir(), "state")
		_, _, err := run(t, from, to, func(o *Options) { o.State = state })
		require.EqualError(t, err, "the target: it has restarted; run this command again to begin again")
		require.NoFileExists(t, state)
	}
}

// A run does not send keys to a node of the target that has come since it began.
func TestAnotherNodeOfTheTargetEndsTheRun(t *testing.T) {
	from := startMiniature(t, &miniature{keys: []string{"a"}})
	another, restored := startTarget(t, nil)
	another.runID = "another"
	var to *miniature
	to, _ = startTarget(t, func([]string) string { return "-MOVED 15495 " + another.addr + "\r\n" })
	takes, asked := to.reply, 0
	to.reply = func(words []string) string {
		if words[0] == "CLUSTER" {
			if asked++; asked > 1 {
				return "*1\r\n" + slots(0, 16383, another.addr)
			}
			return "*1\r\n" + slots(0, 16383, to.addr)
		}
		return takes(words)
	}
	_, _, err := run(t, from, to)
	require.EqualError(t, err, "the target: it has restarted; run this command again to begin again")
	assert.Empty(t, *restored)
}

// Nothing of a value is restored whose source dies while it sends it; the next run goes on there.
func TestASourceThatDiesHalfwayThroughAValue(t *testing.T) {
	for _, half := range []string{"$1000\r\nhalf", "$10", ""} {
		dead := false
		from := startMiniature(t, &miniature{keys: []string{"a", "b", "c"}})
		from.reply = func(words []string) string {
			switch {
			case dead:
				return closed
			case words[0] == "DUMP" && words[1] == "b":
				dead = true
				return half + closed
			}
			return ""
		}
		to, restored := startTarget(t, nil)
		state := filepath.Join(t.TempDir(), "state")
		keep := func(o *Options) { o.State = state }
		_, _, err := run(t, from, to, keep)
		require.ErrorContains(t, err, "the source: ", half)
		require.ErrorContains(t, err, "run this command again to go on")
		assert.Empty(t, *restored, "of this page")

		from.Lock()
		from.reply = nil
		from.Unlock()
		report, _, err := run(t, from, to, keep)
		require.NoError(t, err)
		assert.Contains(t, report, "copied 3 keys")
		assert.Len(t, *restored, 3)
		assert.NoFileExists(t, state)
	}
}

func TestErrorsOfTheTargetEndTheRunUnlessTheyAreAboutAValue(t *testing.T) {
	from := startMiniature(t, &miniature{keys: []string{"a", "b"}})
	for reply, want := range map[string]string{
		"-ERR Bad data format\r\n":               "2 keys of the source were left out",
		"-BUSYKEY Target key exists\r\n":         "",
		"-MISCONF the disk is full\r\n":          "the target: MISCONF the disk is full; run this command again",
		"-NOPERM no permission\r\n":              "the target: NOPERM no permission; run this command again",
		"-OOM command not allowed\r\n":           "the target had no room for 2 keys: raise its maxmemory",
		"-CLUSTERDOWN The cluster is down\r\n":   "the target: CLUSTERDOWN ",
		"-UNCERTAIN the outcome is unknown\r\n":  "the target: UNCERTAIN ",
		"-LOADING the data is being loaded\r\n":  "the target: LOADING ",
		"-READONLY You can't write here now\r\n": "the target: READONLY ",
	} {
		to, _ := startTarget(t, func([]string) string { return reply })
		_, _, err := run(t, from, to)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// Keys that found no room are tried again by the next run, and only these.
func TestKeysThatFoundNoRoomAreTriedAgain(t *testing.T) {
	from := startMiniature(t, &miniature{keys: []string{"a", "b", "c"}})
	full := true
	to, restored := startTarget(t, func(words []string) string {
		if full && words[1] != "b" {
			return "-OOM command not allowed\r\n"
		}
		return ""
	})
	state := filepath.Join(t.TempDir(), "state")
	keep := func(o *Options) { o.State = state }
	report, _, err := run(t, from, to, keep)
	require.ErrorContains(t, err, "the target had no room for 2 keys")
	assert.Contains(t, report, "refused 2 keys for lack of memory: raise maxmemory of the target\n")

	full, *restored = false, nil
	report, notices, err := run(t, from, to, keep)
	require.NoError(t, err)
	assert.Equal(t, "goes on after 1 key\n", notices)
	assert.Contains(t, report, "copied 3 keys")
	var names []string
	for _, call := range *restored {
		names = append(names, call[1])
	}
	slices.Sort(names)
	assert.Equal(t, []string{"a", "c"}, names)
}

func TestASourceThatIsNoRedisIsRefused(t *testing.T) {
	for what, reply := range map[string]string{"TIME": "+now\r\n", "DUMP": ":1\r\n", "PTTL": "+soon\r\n"} {
		from := startMiniature(t, &miniature{keys: []string{"a"}, old: true, reply: func(words []string) string {
			if words[0] == what {
				return reply
			}
			return ""
		}})
		to, _ := startTarget(t, nil)
		_, _, err := run(t, from, to)
		if what != "DUMP" { // as if it had none
			require.Error(t, err, what)
		}
	}
}

func TestANodeOfAClusterWhoseSlotsMoveEndsTheRun(t *testing.T) {
	from := startMiniature(t, &miniature{keys: []string{"a"}, reply: func(words []string) string {
		if words[0] == "TYPE" {
			return "-MOVED 15495 127.0.0.1:1\r\n"
		}
		return ""
	}})
	to, _ := startTarget(t, nil)
	_, _, err := run(t, from, to)
	assert.EqualError(t, err, "the source: its slots have moved, or its user may not call CLUSTER SLOTS (MOVED 15495 "+
		"127.0.0.1:1); run this command again to begin again")
}

func TestInvalidOptions(t *testing.T) {
	from := startMiniature(t, &miniature{})
	for want, change := range map[string]func(o *Options){
		"the address of a server must be redis://": func(o *Options) { o.From.URL = "localhost:6379" },
		"must be redis://[[user]":                  func(o *Options) { o.To.URL = "redis://:se%cret@h:1" },
		"invalid database number":                  func(o *Options) { o.To.URL = "redis://h/x" },
		"certificates are for rediss://":           func(o *Options) { o.From.CA = "ca.crt" },
		"give the certificate of the client and its key": func(o *Options) {
			o.From = Endpoint{URL: "rediss://localhost", Cert: "c"}
		},
		"a rate must be from 0":                  func(o *Options) { o.KeysPerSecond = -1 },
		"name the state file":                    func(o *Options) { o.State = "" },
		"the source and the target are the same": func(o *Options) { o.To = o.From },
		"cannot be read: open no: no such file":  func(o *Options) { o.From.PasswordFile = "no" },
		"cannot be used: unexpected end of JSON input": func(o *Options) {
			require.NoError(t, os.WriteFile(o.State, nil, 0o600))
		},
	} {
		_, _, err := run(t, from, from, change)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "se%cret")
	}
}

func TestReportIsBounded(t *testing.T) {
	var r Report
	for i := range 1000 {
		r.leaveOut(&value{kind: fmt.Sprint("module", i), key: strings.Repeat("k", 1000)}, strings.Repeat("why", 1000))
	}
	assert.Len(t, r.LeftOut, maxReasons)
	assert.EqualValues(t, 1000, r.leftOut())
	assert.NoError(t, r.write(io.Discard, 0))
	assert.Equal(t, "any", r.LeftOut[0].Type)
}
