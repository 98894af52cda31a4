package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A transcript is a file of commands and the replies of Redis to them. Its format:
//
//	# a comment
//	@ unordered
//	> HKEYS h
//	*2
//	  $"a"
//	  $"b"
//
// A line "> …" is a command, quoted as for redis-cli. The lines below it are the reply: + - : , # (
// _ as on the wire, a bulk string as $"text" without its length, an aggregate as its header
// followed by its indented items. Only the lengths of bulk strings are not stored; readReply checks
// them.
//
// A line ">> …" sends one quoted string raw, on a new connection. The lines below it are all
// replies, and "open" or "closed": whether the server has closed the connection.
//
// A line "@ …" applies to the next command. It says how a reply may differ from the recorded one:
//
//	unordered         the order of items, or of the pairs of a map, may differ
//	pairs             the same for a flat list of pairs
//	scan, scan pairs  the same for the list that follows a cursor
//	within N          an integer at most N away
//	pick X …          the same number of leaves, each one of X …
//	pick distinct     the same, and no leaf twice
//	pick pairs        the same with pairs of leaves
//	only P …          compare only the nodes at these paths: "0.3" is item 3 of item 0
//	except P …        compare all but the nodes at these paths
//	shape             compare only kinds and lengths
//
// What is not compared is not recorded either: items are stored sorted, and leaves blank.
//
// Two more apply to the connection:
//
//	reconnect         open a new connection first
//	server F …        (before the first command) a server for this file alone, with these flags
type transcript struct {
	path  string
	flags []string // of a server of its own
	lines []string // everything but replies, in order
	steps []step
}

// A step is one request and its recorded reply.
type step struct {
	line      int // in the file
	after     int // the index in transcript.lines of the request
	raw       bool
	args      []string // the command, or the one raw string
	reconnect bool
	note      []string // the words after "@"; if empty, replies are compared byte by byte
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

// add reads one line; next collects the "@" lines for the next step.
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
		// a push reply begins with > and a digit
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

// write stores the transcript with the replies of its steps.
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

// splitArgs splits a line as redis-cli does: at blanks outside quotes. "…" may contain the escapes
// \n \r \t \b \a \xHH, and '…' only \'.
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
