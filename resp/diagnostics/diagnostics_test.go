package diagnostics

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func split(call string) (words [][]byte) {
	for word := range strings.FieldsSeq(call) {
		words = append(words, []byte(word))
	}
	return words
}

func TestSlowlogKeepsTheLatestCalls(t *testing.T) {
	var s Slowlog
	assert.Empty(t, s.Last(-1))
	for i := range 10 {
		s.Add(SlowCall{Time: int64(i), Took: time.Second, Address: "a:1", Name: "n"}, split("GET k"), 3)
	}
	assert.Equal(t, 3, s.Len())
	assert.Equal(t, []SlowCall{
		{ID: 9, Time: 9, Took: time.Second, Args: []string{"GET", "k"}, Address: "a:1", Name: "n"},
		{ID: 8, Time: 8, Took: time.Second, Args: []string{"GET", "k"}, Address: "a:1", Name: "n"},
	}, s.Last(2))
	assert.Empty(t, s.Last(0))
	assert.Len(t, s.Last(100), 3)
	s.Add(SlowCall{}, split("GET k"), 0)
	assert.Zero(t, s.Len())
	s.Add(SlowCall{}, split("GET k"), 1)
	assert.EqualValues(t, 11, s.Last(1)[0].ID)
	s.Reset()
	assert.Zero(t, s.Len())
	assert.Zero(t, s.bytes)
}

func TestSlowlogTrimsArguments(t *testing.T) {
	var s Slowlog
	words := split("SADD k" + strings.Repeat(" m", 40))
	words[1] = []byte(strings.Repeat("k", 129))
	s.Add(SlowCall{Name: strings.Repeat("n", 200)}, words, 1)
	call := s.Last(1)[0]
	require.Len(t, call.Args, 32)
	assert.Equal(t, strings.Repeat("k", 128)+"... (1 more bytes)", call.Args[1])
	assert.Equal(t, "... (11 more arguments)", call.Args[31])
	assert.Equal(t, strings.Repeat("n", 128)+"... (72 more bytes)", call.Name)
	s.Add(SlowCall{}, words[:32], 1)
	assert.Equal(t, "m", s.Last(1)[0].Args[31])
}

func TestSlowlogIsLimitedInBytes(t *testing.T) {
	var s Slowlog
	words := split("X" + strings.Repeat(" "+strings.Repeat("a", 128), 31))
	for range 6000 {
		s.Add(SlowCall{}, words, 1<<60)
	}
	assert.LessOrEqual(t, s.bytes, maxSlowBytes)
	assert.Greater(t, s.Len(), 3000)
	assert.EqualValues(t, 5999, s.Last(1)[0].ID)
}

func TestLatencyKeepsTheMaximumPerSecond(t *testing.T) {
	var l Latency
	assert.Nil(t, l.Event(SlowCommand))
	for i, latency := range []int64{20, 50, 30} {
		l.Add(SlowCommand, 100+int64(i/2), latency)
	}
	l.Add(SlowSync, 100, 7)
	assert.Equal(t, []Event{
		{Name: SlowSync, Samples: []Sample{{100, 7}}, Max: 7},
		{Name: SlowCommand, Samples: []Sample{{100, 50}, {101, 30}}, Max: 50},
	}, l.Events())
	assert.Equal(t, Sample{101, 30}, l.Event(SlowCommand).Last())
	for i := range int64(maxSamples) {
		l.Add(SlowCommand, 200+i, 1)
	}
	assert.Len(t, l.Event(SlowCommand).Samples, maxSamples)
	assert.EqualValues(t, 50, l.Event(SlowCommand).Max, "the maximum is kept")

	assert.Zero(t, l.Reset("nope"))
	assert.Equal(t, 1, l.Reset("COMMAND", "nope", "command"))
	assert.Equal(t, 1, l.Reset())
	assert.Empty(t, l.Events())
}

// The graph is that of redis-server 7.0.15 for the same samples.
func TestGraph(t *testing.T) {
	var l Latency
	for i, latency := range []int64{10, 20, 30, 40, 100, 50} {
		l.Add(SlowCommand, 1000+int64(i), latency)
	}
	assert.Equal(t, "command - high 100 ms, low 10 ms (all time high 100 ms)\n"+strings.Repeat("-", 80)+"\n"+
		"    # \n    | \n   o|#\n_o#|||\n      \n654321\nssssss\n", l.Event(SlowCommand).Graph(1006))
	for i := range int64(100) {
		l.Add(SlowSync, 1000+i*3600, i)
	}
	graph := l.Event(SlowSync).Graph(1000 + 100*3600)
	assert.Contains(t, graph, "\n\n", "there are two rows of columns")
	for _, line := range strings.Split(graph, "\n") {
		assert.LessOrEqual(t, len(line), graphColumns)
	}
}

func TestDoctor(t *testing.T) {
	var l Latency
	assert.Contains(t, l.Doctor(0, Advice{}), "not monitored")
	assert.Contains(t, l.Doctor(0, Advice{Threshold: 100}), "No latency spike")
	l.Add(SlowCommand, 100, 10)
	l.Add(SlowCommand, 104, 30)
	text := l.Doctor(110, Advice{Threshold: 100, Slowlog: 200_000})
	assert.Contains(t, text, "1. command: 2 latency spikes (average 20ms, mean deviation 10ms, period 5.00 sec). "+
		"Worst all time event 30ms.\n")
	assert.Contains(t, text, "CONFIG SET slowlog-log-slower-than 100000")
	assert.Contains(t, l.Doctor(110, Advice{Threshold: 100, Slowlog: -1}), "Switch the slow log on")
	l.Add(SlowFastCommand, 100, 1)
	l.Add(SlowSync, 100, 1)
	assert.Contains(t, l.Doctor(110, Advice{}), "machine")
	assert.Contains(t, l.Doctor(110, Advice{}), "everysec")
}

func TestPasswordsAreRedacted(t *testing.T) {
	const x = "(redacted)"
	for _, test := range []struct{ command, call, want string }{
		{"auth", "AUTH secret", "AUTH " + x},
		{"auth", "AUTH user secret", "AUTH " + x + " " + x},
		{"hello", "HELLO", "HELLO"},
		{"hello", "HELLO 3 SETNAME me", "HELLO 3 SETNAME me"},
		{"hello", "hello 3 auth u secret SETNAME me", "hello 3 auth " + x + " " + x + " SETNAME me"},
		{"hello", "HELLO 3 SETNAME AUTH AUTH u secret", "HELLO 3 SETNAME AUTH " + x + " " + x + " " + x},
		{"hello", "HELLO 3 AUTH secret", "HELLO 3 AUTH " + x},
		{"acl|setuser", "ACL SETUSER ann on >secret ~*", "ACL SETUSER " + x + " " + x + " " + x + " " + x},
		{"acl|getuser", "ACL GETUSER ann", "ACL GETUSER ann"},
		{"acl|dryrun", "ACL DRYRUN ann AUTH u secret", "ACL DRYRUN ann AUTH " + x + " " + x},
		{"command|getkeys", "COMMAND GETKEYS AUTH secret", "COMMAND GETKEYS AUTH " + x},
		{"command|getkeysandflags", "COMMAND GETKEYSANDFLAGS AUTH secret", "COMMAND GETKEYSANDFLAGS AUTH " + x},
		{"config|set", "CONFIG SET requirepass secret", "CONFIG SET requirepass " + x},
		{"config|set", "CONFIG SET timeout 1 RequirePass secret maxmemory 0",
			"CONFIG SET timeout 1 RequirePass " + x + " maxmemory 0"},
		{"config|set", "CONFIG SET masterauth secret", "CONFIG SET masterauth " + x},
		{"config|set", "CONFIG SET require-pass secret timeout 1", "CONFIG SET require-pass " + x + " timeout 1"},
		{"set", "SET auth secret", "SET auth secret"},
	} {
		words := split(test.call)
		shown := Redacted(test.command, words)
		assert.Equal(t, test.want, joined(shown))
		assert.Equal(t, test.call, joined(words), "the words are unchanged")
	}
}

func joined(words [][]byte) string {
	var list []string
	for _, word := range words {
		list = append(list, string(word))
	}
	return strings.Join(list, " ")
}

func TestAppendCall(t *testing.T) {
	line := AppendCall(
		nil,
		1339518083107,
		3,
		"127.0.0.1:60866",
		[][]byte{[]byte("keys"), []byte("*\n\r\t\a\b\\\"\x01é"), nil},
	)
	assert.Equal(
		t,
		`+1339518083.107000 [3 127.0.0.1:60866] "keys" "*\n\r\t\a\b\\\"\x01\xc3\xa9" ""`+"\r\n",
		string(line),
	)
}
