package persistence

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
)

// dumped returns the lines of a dump in JSON, as objects.
func dumped(t *testing.T, dir string) (lines []map[string]any, err error) {
	var out bytes.Buffer
	err = Dump(dir, &out, true, NoProgress{})
	for s := bufio.NewScanner(&out); s.Scan(); {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal(s.Bytes(), &line), s.Text())
		lines = append(lines, line)
	}
	return lines, err
}

// Every kind of effect is printed with all of its fields.
func TestDumpPrintsEveryKind(t *testing.T) {
	names := map[effect.Fields][]string{
		effect.HasToDB: {"to_db"}, effect.HasTo: {"to"}, effect.HasField: {"field_base64"}, effect.HasValue: {"value"},
		effect.HasScore: {"score"},
		effect.HasLo:    {"from"}, effect.HasHi: {"until"}, effect.HasExpireAt: {"expires"},
		effect.HasHits:   {"hit_at", "first", "hits"},
		effect.HasTokens: {"missing", "earned", "since"}, effect.HasCount: {"window", "used"},
		effect.HasBucket: {"missing", "fraction", "since"}, effect.HasWindow: {"window", "length", "used"},
		effect.HasCounter: {"window", "length", "current", "previous"},
		effect.HasForgets: {"forgets"}, effect.HasForm: {"form"}, effect.HasHold: {"amount", "lapses"},
		effect.HasRuns: {"hits"},
	}
	for _, kind := range effect.Kinds() {
		f := sample(kind)
		want := []string{"file", "offset", "at", "effect", "db", "key"}
		for bit, list := range names {
			if kind.Fields()&bit != 0 {
				want = append(want, list...)
			}
		}
		var out bytes.Buffer
		for _, asJSON := range []bool{true, false} {
			p := printer{out: bufio.NewWriter(&out), json: asJSON}
			p.begin("f", 1)
			p.time("at", 2)
			p.effect(&f)
			require.NoError(t, p.end())
			require.NoError(t, p.out.Flush())
		}
		first, second, _ := strings.Cut(out.String(), "\n")
		line := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(first), &line))
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(line)), "%s", kind)
		require.Equal(t, kind.String(), line["effect"])
		require.Equal(t, "key\r\n", line["key"])
		for _, name := range want {
			require.Contains(t, " "+second, " "+strings.TrimSuffix(name, "_base64")+"=", "%s", kind)
		}
	}
}

func TestDumpWritesJSON(t *testing.T) {
	d := newDataset(t)
	lines, err := dumped(t, d.put(t))
	require.NoError(t, err)
	binary := base64.StdEncoding.EncodeToString([]byte{0, 255, '\r', '\n', ' ', 'k', 'e', 'y'})
	require.True(t, slices.ContainsFunc(lines, func(line map[string]any) bool { return line["key_base64"] == binary }))
	require.True(t, slices.ContainsFunc(lines, func(line map[string]any) bool { return line["score"] == "+Inf" }))
	var text bytes.Buffer
	require.NoError(t, Dump(d.put(t), &text, false, NoProgress{}))
	require.Equal(t, len(lines), strings.Count(text.String(), "\n"), "a line of text for each object")
	last := lines[len(lines)-1]
	require.Equal(t, "last", last["key"])
	require.Equal(t, d.stateBefore(last["file"].(string), len(d.offsets[last["file"].(string)])), d.last())
}

// A dump ends where the readable data ends: a torn tail is reported in a line, damage as an error.
func TestDumpStopsAtDamage(t *testing.T) {
	d := newDataset(t)
	segments := d.ofKind(logFile)
	last := segments[len(segments)-1]
	content, offsets := d.files[last], d.offsets[last]
	end := offsets[len(offsets)-1]
	whole, err := dumped(t, d.put(t))
	require.NoError(t, err)

	lines, err := dumped(t, d.with(last, content[:end+5]).put(t))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"file": last, "offset": float64(end), "torn": 5.0}, lines[len(lines)-1])
	require.Equal(t, whole[:len(whole)-1], lines[:len(lines)-1])
	var text bytes.Buffer
	require.NoError(t, Dump(d.with(last, content[:7]).put(t), &text, false, NoProgress{}))
	require.True(t, strings.HasSuffix(text.String(), fmt.Sprintf("\nfile=%s offset=0 torn=7\n", last)))

	lines, err = dumped(t, d.with(last, flip(content, end+headerSize)).put(t))
	require.ErrorContains(t, err, fmt.Sprintf("%s, offset %d: ", last, end))
	require.Equal(t, whole[:len(whole)-1], lines)

	lines, err = dumped(t, d.with(segments[1], nil).put(t))
	require.ErrorContains(t, err, segments[1]+" is missing")
	require.NotEmpty(t, lines)
	require.Equal(t, segments[0], lines[len(lines)-1]["file"])
}
