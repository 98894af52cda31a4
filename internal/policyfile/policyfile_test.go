package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/policy"
)

func TestParsePolicies(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"policies: {}", nil},
		{"policies:\n  login:\n    slide:\n      limit: 5\n      window: 1m\n", []string{"login SLIDE 5 1m"}},
		{"policies:\n  login: {slide: {window: 60, limit: 5}, shadow: true}\n", []string{"login SLIDE 5 1m SHADOW"}},
		{"policies: {c: {counter: {window: 60, limit: 1000000}}, l: {leaky: {rate: 2, period: 1s, queue: 3}}}",
			[]string{"c COUNTER 1000000 1m", "l LEAKY 2 1s QUEUE 3"}},
		{"policies: {b: {token: {capacity: 100, refill: 10, period: 0.5}}, a: {lease: {limit: 3, ttl: \"30s\"}}}",
			[]string{"b TOKEN 100 10 500ms", "a LEASE 3 30s"}},
		{"# ours\npolicies: # all\n  q:\n    # so much\n    fixed: {limit: 9, window: month, tz: Europe/Berlin}\n",
			[]string{"q FIXED 9 month TZ Europe/Berlin"}},
		{"---\npolicies:\n  q: {fixed: {limit: 9, window: 1d}, shadow: false}\n", []string{"q FIXED 9 1d"}},
		{"policies:\n  q: {ip6: 64, fixed: {limit: 9, window: 1d}, ip4: 24}\n", []string{"q FIXED 9 1d IP4 24 IP6 64"}},
		{"{\"policies\": {\"json\": {\"slide\": {\"limit\": 5, \"window\": \"1m\"}}}}", []string{"json SLIDE 5 1m"}},
		{"policies:\r\n  1.5: {slide: {limit: 5, window: 1m}}\r\n  true: {slide: {limit: 5, window: 1h}}\r\n",
			[]string{"1.5 SLIDE 5 1m", "true SLIDE 5 1h"}},
	} {
		list, err := parse([]byte(test.text))
		require.NoError(t, err, test.text)
		var got []string
		for _, p := range list {
			got = append(got, p.Name()+" "+p.Definition())
		}
		assert.Equal(t, test.want, got, test.text)
	}
}

func TestReadReportsTheLineOfAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	const three = "policies:\n  login:\n    "
	for _, test := range []struct {
		text, want string
	}{
		{"", "1: the file is empty: it must begin with policies:"},
		{"# nothing\n", "1: the file is empty: it must begin with policies:"},
		{"{}", "1: policies: is missing"},
		{"limits: {}", "1: the file has no field limits: there are policies"},
		{"policies:\n", "1: policies must have fields, but is of type null"},
		{"policies: 5", "1: policies must have fields, but is of type int"},
		{"- policies", "1: the file must have fields, but is of type sequence"},
		{"policies: {}\nmore: 1", "2: the file has no field more: there are policies"},
		{"policies: {}\n---\npolicies: {}\n", "3: there may be only one document"},
		{"policies:\n  login:\n  api: {}\n", "2: policy login must have fields, but is of type null"},
		{three + "slide: {limit: 5, window: 1x}",
			"3: policy login: invalid duration '1x': use seconds, or a number with ms, s, m, h, d or w"},
		{three + "slide: {limit: 0, window: 1s}", "3: policy login: limit must be from 1 to 9007199254740991"},
		{three + "slide: {limit: 5}", "3: slide lacks window"},
		{"policies:\n  login:\n    fixed:\n      tz: Mars\n      window: day\n      limit: 0\n",
			"6: policy login: limit must be from 1 to 9007199254740991"},
		{"policies:\n  login:\n    fixed:\n      tz: Mars\n      window: day\n      limit: 1\n",
			"4: policy login: unknown time zone 'Mars': TZ takes an IANA name such as UTC or Europe/Berlin"},
		{"policies:\n  login:\n    fixed:\n      tz: UTC\n      limit: 1\n      window: 1h\n",
			"4: policy login: TZ goes with a window of the calendar: minute, hour, day, week, month or year"},
		{three + "slide: 5", "3: slide must have fields, but is of type int"},
		{three + "slide: {limit: [5], window: 1s}", "3: limit must be a number or a word"},
		{three + "slide: {limit: 5 6, window: 1s}", "3: limit must be a number or a word"},
		{three + "slide: {limit: 0x10, window: 1s}",
			"3: policy login: value is not an integer or out of range: limit must be from 1 to 9007199254740991"},
		{three + "slide: {limit: 5, windw: 1s}", "3: slide has no field windw: there are limit, window"},
		{three + "slide: {limit: 5, window: 1s}\n    shadw: true",
			"4: policy login has no field shadw: there are slide, token, fixed, lease, leaky, counter, " +
				"ban, ip4, ip6, overrides, shadow"},
		{three + "slide: {limit: 5, window: 1s}\n    shadow: yes", "4: shadow must be true or false"},
		{three + "slide: {limit: 5, window: 1s}\n    fixed: {limit: 5, window: 1s}",
			"4: policy login has two algorithms"},
		{three + "slide: {limit: 5, window: 1s}\n    ip4: 33", "4: policy login: IP4 must be from 0 to 32"},
		{three + "slide: {limit: 5, window: 1s}\n    ip6: [64]", "4: ip6 must be a number or a word"},
		{three + "slide: {limit: 5, window: 1s}\n    overrides: {ann: {limit: 0, window: 1s}}",
			"4: policy login: limit must be from 1 to 9007199254740991"},
		{three + "slide: {limit: 5, window: 1s}\n    overrides: {ann: {limit: 7}}", "4: slide lacks window"},
		{three + "slide: {limit: 5, window: 1s}\n    overrides: {ann: {rate: 7, window: 1s}}",
			"4: slide has no field rate: there are limit, window"},
		{three + "slide: {limit: 5, window: 1s}\n    overrides: {'{ann}': {limit: 7, window: 1s}}",
			"4: overrides: an id is 1 to 65536 bytes without { and }"},
		{three + "slide: {limit: 5, window: 1s}\n    overrides: 5",
			"4: overrides must have fields, but is of type int"},
		{three + "shadow: true", "2: policy login has no algorithm: slide, token, fixed, lease, leaky or counter"},
		{three + "slide: {limit: 5, window: 1s, tz: UTC}", "3: slide has no field tz: there are limit, window"},
		{three + "fixed: {limit: 5, window: 1d, tz: UTC}",
			"3: policy login: TZ goes with a window of the calendar: minute, hour, day, week, month or year"},
		{three + "fixed: {limit: 5, window: day, tz: Mars}",
			"3: policy login: unknown time zone 'Mars': TZ takes an IANA name such as UTC or Europe/Berlin"},
		{"policies:\n\n  a b: {slide: {limit: 5, window: 1s}}",
			"3: policy a b: a policy's name is 1 to 64 letters, digits and ._-/:@, not 'a b'"},
		{"policies:\n  COST: {slide: {limit: 5, window: 1s}}",
			"2: policy COST: a policy cannot be called 'COST': that is an option of RL.CHECK"},
		{"policies:\n  a: {slide: {limit: 5, window: 1s}}\n  a: {slide: {limit: 5, window: 2s}}",
			"3: policies has a twice: first in line 2"},
		{"policies:\n  a: &x {slide: {limit: 5, window: 1s}}\n",
			"2: policy a must have fields, but is of type anchor"},
		{"policies:\n  a: {slide: {limit: 5, window: 1s}}\n  b: *a\n", "3: unknown anchor 'a' referenced"},
		{"policies:\n  a: &x {slide: {limit: 5, window: 1s}}\n  b: *x\n",
			"2: policy a must have fields, but is of type anchor"},
		{"policies: {&x a: {slide: {limit: 5, window: 1s}}}",
			"1: policies must list its own fields: anchors, aliases and merge keys are not supported"},
		{"policies:\n  a:\n    <<: {slide: {limit: 5, window: 1s}}",
			"3: policy a must list its own fields: anchors, aliases and merge keys are not supported"},
		{"policies:\n  [a, b]: {}", "2: policies has a field whose name is of type sequence"},
		{"policies:\n  a: {slide: {limit: !!int 5, window: 1s}}", "2: limit must be a number or a word"},
		{"policies:\n  a: {slide: {limit: 5, window: |\n 1s\n}}", "2: found character that cannot start any token"},
		{"policies:\n  a: {slide: {limit: 5, window: }}", "2: window must be a number or a word"},
		{"policies:\n  a: {slide: {limit: 5, window: 1s}}\n b: {}\n", "3: did not find expected key"},
		{"policies:\n  a: \"x\n", "2: found unexpected end of stream"},
		{"\x00", "1: control characters are not allowed"},
		{"policies:\n  a: {slide: {limit: 5, window: 1s}\n", "2: did not find expected ',' or '}'"},
		{"policies:\n\ta: 1\n", "2: found character that cannot start any token"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
		_, err := Read(path)
		assert.EqualError(t, err, path+":"+test.want, "%s", test.text)
	}
	_, err := Read(path + "x")
	assert.EqualError(t, err, "open "+path+"x: no such file or directory")
}

func TestByteOrderMarkIsIgnored(t *testing.T) {
	list, err := parse([]byte("\ufeffpolicies:\r\n  a: {slide: {limit: 5, window: 1s}}\r\n"))
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// Files that try to make the parser take more time or memory than in proportion to their length.
// Allocated bytes measure both.
func TestHostileFilesTakeLinearMemory(t *testing.T) {
	const size = 200_000
	laughs := "a0: &a0 lol\n"
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	for name, text := range map[string]string{
		"sequences in sequences":  strings.Repeat("[", size),
		"mappings in mappings":    strings.Repeat("{a: ", size/4),
		"blocks in blocks":        strings.Repeat("- ", size/2),
		"keys of keys":            strings.Repeat("? ", size/2),
		"a billion laughs":        laughs,
		"documents":               strings.Repeat("---\n", size/4) + "x",
		"fields without a value":  "{" + strings.Repeat("a, ", size/3),
		"anchors":                 "[" + strings.Repeat("&a b, ", size/6) + "]",
		"one long word":           strings.Repeat("a", size),
		"a name that is too long": "policies:\n  " + strings.Repeat("a", 1000) + ": {slide: {limit: 5, window: 1s}}",
		"a long unknown field":    "policies:\n  a: {" + strings.Repeat("a", 1000) + ": 5}",
	} {
		var err error
		taken := bytesAllocated(func() { _, err = parse([]byte(text)) })
		assert.ErrorAs(t, err, new(*lineError), name)
		assert.Less(t, len(err.Error()), 500, name)
		assert.Less(t, taken, uint64(300*size), name)
	}
}

// Files of the largest size whose nodes would take gigabytes are rejected before they are parsed.
func TestTooManyNodesAreRejectedBeforeParsing(t *testing.T) {
	for _, unit := range []string{"-\n", "- \r", "a, ", "[],", "{},", "'',", "a: 1\n", "? a\n", "---\n", "-\u0085"} {
		text := []byte(strings.Repeat(unit, maxSize/len(unit)))
		var err error
		taken := bytesAllocated(func() { _, err = parse(text) })
		assert.ErrorContains(t, err, "there are too many fields and values: at most 2097152 are read", unit)
		assert.Less(t, taken, uint64(1<<20), unit)
	}
	policies := strings.Repeat("  policy-1: {slide: {limit: 5, window: 15m}}\n", 200_000)
	assert.NoError(t, checkNodes([]byte(policies)))
	assert.NoError(t, checkNodes([]byte(strings.Repeat("  policy-1:\n    token:\n      capacity: 5\n", 200_000))))
}

func TestManyPoliciesAreReadInLinearMemory(t *testing.T) {
	read := func(n int) uint64 {
		text := []byte("policies:\n")
		for i := range n {
			text = fmt.Appendf(text, "  p%d:\n    token: {capacity: 5, refill: 1, period: 1m}\n", i)
		}
		return bytesAllocated(func() {
			list, err := parse(text)
			require.NoError(t, err)
			require.Len(t, list, n)
		})
	}
	few, many := read(1000), read(4000)
	assert.Less(t, many, 6*few)
}

func bytesAllocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The first signal reloads at once; the others within the next second reload once.
func TestSignalsWithinAnIntervalReloadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, quit := make(chan os.Signal, 1), make(chan struct{})
		var reloads atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			throttle(reloadInterval, signals, quit, func() { reloads.Add(1) })
		}()
		for range 3000 { // like package signal, drop a signal if the channel is full
			select {
			case signals <- syscall.SIGHUP:
			default:
			}
			synctest.Wait()
		}
		require.EqualValues(t, 1, reloads.Load())
		time.Sleep(reloadInterval)
		synctest.Wait()
		require.EqualValues(t, 2, reloads.Load())
		time.Sleep(time.Hour)
		require.EqualValues(t, 2, reloads.Load())
		signals <- syscall.SIGHUP
		synctest.Wait()
		require.EqualValues(t, 3, reloads.Load())
		signals <- syscall.SIGHUP
		close(quit)
		<-done // it does not wait for the end of the interval
	})
}

func FuzzPolicyFile(f *testing.F) {
	f.Add("policies:\n  login: {slide: {limit: 5, window: 1m}, shadow: true}\n")
	f.Add("a: &x [*x, <<: {b: !!int 5}, ? c : |\n d]\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parse([]byte(text))
		if err != nil {
			require.Greater(t, err.(*lineError).line, 0)
			require.Empty(t, list)
		}
	})
}

func TestLargeFileIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, maxSize+1))
	_, err := Read(path)
	assert.EqualError(t, err, path+" is too large: at most 16777216 bytes are read")
}

// A file whose policies are refused, as those of a cluster beyond their bound, says why.
func TestRefusedPoliciesAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(path, []byte("policies: {q: {fixed: {limit: 9, window: 1d}}}"), 0o600))
	var log bytes.Buffer
	refused := errors.New("ERR the policies of a cluster may take 4 bytes")
	f := New(Options{
		Path: path, Refusal: func() string { return "" }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Set: func([]*policy.Policy) (engine.PolicyChanges, error) { return engine.PolicyChanges{}, refused },
	})
	assert.Equal(t, refused, f.Reload())
	f.SetAgain()
	assert.Equal(t, 2, strings.Count(log.String(), refused.Error()))
}
