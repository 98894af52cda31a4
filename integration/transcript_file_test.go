package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A transcript is a file of commands and the replies Redis gave to them. It reads
//
//	# a comment
//	@ unordered
//	> HKEYS h
//	*2
//	  $"a"
//	  $"b"
//
// A line "> …" is a command, quoted as for redis-cli. The lines below it are the reply: + - : , # (
// _ as on the wire, a bulk as $"text" without its length, an aggregate as its header with its items
// indented. Nothing of the raw bytes is lost but the lengths, which the reader checks.
//
// A line ">> …" sends one quoted string raw, on a connection of its own, and lists every reply
// until the server closes; the last line says "open" or "closed".
//
// A line "@ …" is about the next command. Where a reply may rightly differ from Redis' it says how
// far:
//
//	unordered         the items are in no particular order; of a map, the pairs
//	pairs             the same for a flat list of pairs
//	scan, scan pairs  the same for the list a cursor comes with
//	within N          an integer at most N away
//	pick X …          as many leaves, each one of X …
//	pick distinct     the same, and no leaf twice
//	pick pairs        the same with pairs of leaves
//	only P …          only the nodes at these paths count: "0.3" is the fourth item of the first
//	except P …        all but the nodes at these paths count
//	shape             only kinds and lengths count
//
// What does not count is not recorded either: the items are stored sorted, the leaves blank.
//
// Two more are about the connection:
//
//	reconnect         begin a new connection first
//	server F …        (before the first command) a server for this file alone, with these flags
type transcript struct {
	path  string
	flags []string // of a server of its own
	lines []string // everything but replies, in order
	steps []step
}

// A step is one request and what is known of its reply.
type step struct {
	line      int // in the file
	after     int // the index in transcript.lines of the request
	raw       bool
	args      []string // the command, or the one raw string
	reconnect bool
	note      []string // how to compare, in words; empty for byte by byte
	want      []string // the recorded reply
}

func readTranscript(path string) (*transcript, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &transcript{path: path}
	var next step
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if err := t.add(line, i+1, &next); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	return t, nil
}

// add reads one line; next collects what "@" lines say about the next step.
func (t *transcript) add(line string, number int, next *step) error {
	switch {
	case line == "" || line[0] == '#':
	case line[0] == '@':
		words, err := splitArgs(line[1:])
		if err != nil || len(words) == 0 {
			return fmt.Errorf("bad annotation %q", line)
		}
		switch words[0] {
		case "reconnect":
			next.reconnect = true
		case "server":
			t.flags = words[1:]
		default:
			next.note = words
		}
	case strings.HasPrefix(line, "> ") || strings.HasPrefix(line, ">> "):
		// and not the header of a push
		mark, request, _ := strings.Cut(line, " ")
		args, err := splitArgs(request)
		if err != nil || len(args) == 0 || mark == ">>" && len(args) != 1 {
			return fmt.Errorf("bad request %q", line)
		}
		next.line, next.after, next.raw, next.args = number, len(t.lines), mark == ">>", args
		t.steps = append(t.steps, *next)
		*next = step{}
	default:
		if len(t.steps) == 0 {
			return fmt.Errorf("a reply without a request: %q", line)
		}
		last := &t.steps[len(t.steps)-1]
		last.want = append(last.want, line)
		return nil
	}
	t.lines = append(t.lines, line)
	return nil
}

// write stores the transcript with the replies its steps now hold.
func (t *transcript) write() error {
	var out strings.Builder
	steps := t.steps
	for i, line := range t.lines {
		out.WriteString(line + "\n")
		if len(steps) > 0 && steps[0].after == i {
			for _, reply := range steps[0].want {
				out.WriteString(reply + "\n")
			}
			steps = steps[1:]
		}
	}
	return os.WriteFile(t.path, []byte(out.String()), 0o644)
}

// splitArgs splits a line as redis-cli does: at blanks outside quotes; "…" knows \n \r \t \b \a
// \xHH, '…' only \'.
func splitArgs(line string) ([]string, error) {
	var args []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return args, nil
		}
		var arg string
		var err error
		switch line[0] {
		case '"':
			arg, line, err = unquote(line)
		case '\'':
			arg, line, err = unquoteSingle(line)
		default:
			end := strings.IndexAny(line+" ", " \t")
			arg, line = line[:end], line[end:]
		}
		if err != nil {
			return nil, err
		}
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			return nil, fmt.Errorf("no blank after a quote: %q", line)
		}
		args = append(args, arg)
	}
}

func unquote(line string) (arg, rest string, err error) {
	var out strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return out.String(), line[i+1:], nil
		case c != '\\' || i+1 == len(line):
			out.WriteByte(c)
		default:
			i++
			if line[i] == 'x' && i+2 < len(line) {
				if b, err := strconv.ParseUint(line[i+1:i+3], 16, 8); err == nil {
					out.WriteByte(byte(b))
					i += 2
					continue
				}
			}
			out.WriteByte(unescape(line[i]))
		}
	}
	return "", "", fmt.Errorf("unbalanced quotes: %s", line)
}

func unescape(c byte) byte {
	if i := strings.IndexByte("nrtba", c); i >= 0 {
		return "\n\r\t\b\a"[i]
	}
	return c
}

func unquoteSingle(line string) (arg, rest string, err error) {
	var out strings.Builder
	for i := 1; i < len(line); i++ {
		if line[i] == '\'' {
			return out.String(), line[i+1:], nil
		}
		if line[i] == '\\' && i+1 < len(line) && line[i+1] == '\'' {
			i++
		}
		out.WriteByte(line[i])
	}
	return "", "", fmt.Errorf("unbalanced quotes: %s", line)
}
