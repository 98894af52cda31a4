package integration

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A reply is one RESP reply. Kind is its first byte on the wire: + - : $ * and, in RESP3, _ , # ( =
// % ~ >.
type reply struct {
	kind  byte
	null  bool    // $-1 or *-1
	blank bool    // its contents are not compared
	text  string  // of a leaf
	items []reply // of an aggregate; a map's keys and values alternate
}

func (r reply) aggregate() bool { return strings.IndexByte("*%~>", r.kind) >= 0 && !r.null }

// readReply reads one reply. It accepts canonical lengths only, so that replies with equal lines
// are equal bytes.
func readReply(in *bufio.Reader) (reply, error) {
	header, err := in.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	line, ok := strings.CutSuffix(header, "\r\n")
	if !ok || line == "" {
		return reply{}, fmt.Errorf("line %q does not end in CR LF", header)
	}
	r := reply{kind: line[0]}
	switch r.kind {
	case '+', '-', ':', '_', ',', '#', '(':
		r.text = line[1:]
		return r, nil
	case '$', '=', '*', '%', '~', '>':
	default:
		return reply{}, fmt.Errorf("line %q does not begin a reply", header)
	}
	if line[1:] == "-1" && (r.kind == '$' || r.kind == '*') {
		r.null = true
		return r, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 || strconv.Itoa(n) != line[1:] {
		return reply{}, fmt.Errorf("bad length in %q", header)
	}
	if r.kind == '$' || r.kind == '=' {
		return readBulk(in, r, n)
	}
	if r.kind == '%' {
		n *= 2
	}
	for range n {
		item, err := readReply(in)
		if err != nil {
			return reply{}, err
		}
		r.items = append(r.items, item)
	}
	return r, nil
}

func readBulk(in *bufio.Reader, r reply, n int) (reply, error) {
	body := make([]byte, n+2)
	if _, err := io.ReadFull(in, body); err != nil {
		return reply{}, err
	}
	if string(body[n:]) != "\r\n" {
		return reply{}, fmt.Errorf("a bulk of %d bytes ends in %q", n, body[n:])
	}
	r.text = string(body[:n])
	return r, nil
}

// lines returns a reply as text: one line per leaf and per header of an aggregate, whose items are
// indented below it.
func (r reply) lines(indent string) []string {
	mark := indent + string(r.kind)
	switch {
	case r.null:
		return []string{mark + "-1"}
	case r.blank:
		return []string{mark + "?"}
	case r.kind == '$' || r.kind == '=':
		return []string{mark + quote(r.text)}
	case !r.aggregate():
		return []string{mark + r.text}
	}
	n := len(r.items)
	if r.kind == '%' {
		n /= 2
	}
	out := []string{mark + strconv.Itoa(n)}
	for _, item := range r.items {
		out = append(out, item.lines(indent+"  ")...)
	}
	return out
}

func (r reply) String() string { return strings.Join(r.lines(""), "\n") }

// at returns the node at a path such as "0.3".
func (r reply) at(path string) (reply, bool) {
	for index := range strings.SplitSeq(path, ".") {
		i, err := strconv.Atoi(index)
		if err != nil || i < 0 || i >= len(r.items) {
			return reply{}, false
		}
		r = r.items[i]
	}
	return r, true
}

// without returns the reply with the node at path blank.
func (r reply) without(path string) reply {
	first, rest, deeper := strings.Cut(path, ".")
	i, err := strconv.Atoi(first)
	if err != nil || i < 0 || i >= len(r.items) {
		return r
	}
	r.items = slices.Clone(r.items)
	if deeper {
		r.items[i] = r.items[i].without(rest)
	} else {
		r.items[i] = reply{kind: r.items[i].kind, blank: true}
	}
	return r
}

// leaves returns the texts of all leaves, in order.
func (r reply) leaves() []string {
	if !r.aggregate() {
		return []string{r.text}
	}
	var out []string
	for _, item := range r.items {
		out = append(out, item.leaves()...)
	}
	return out
}

// shape returns the reply with every leaf blank.
func (r reply) shape() reply {
	if !r.aggregate() {
		return reply{kind: r.kind, null: r.null, blank: true}
	}
	r.items = slices.Clone(r.items)
	for i := range r.items {
		r.items[i] = r.items[i].shape()
	}
	return r
}

// sorted returns the reply with its items sorted in groups of the given size.
func (r reply) sorted(group int) reply {
	groups := slices.Collect(slices.Chunk(r.items, group))
	slices.SortFunc(groups, func(a, b []reply) int {
		return strings.Compare(reply{kind: '*', items: a}.String(), reply{kind: '*', items: b}.String())
	})
	r.items = slices.Concat(groups...)
	return r
}

// quote returns s in double quotes in the format of redis-cli. unquote in transcript_file_test.go
// is its inverse.
func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
