package wire

import (
	"io"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// referenceStream is the framing of Redis in its simplest form: it has the whole stream at once,
// and ignores time and memory.
type referenceStream struct {
	in            string
	authenticated bool
	commands      [][]string
	refusal       string
}

func (r *referenceStream) run() {
	for r.in != "" && r.refusal == "" {
		words, ok := r.command()
		if !ok {
			return
		}
		if len(words) == 0 {
			continue
		}
		r.commands = append(r.commands, words)
		if isAuth(words) {
			r.authenticated = true
		}
	}
}

func isAuth(words []string) bool {
	return len(words) == 2 && strings.EqualFold(words[0], "AUTH") && words[1] == guardPassword
}

func (r *referenceStream) command() (words []string, ok bool) {
	if strings.HasPrefix(r.in, "\x16\x03") {
		return nil, r.refuse(string(errTLS))
	}
	if r.in[0] != '*' {
		line, ok := r.line("\n", 0, "too big inline request")
		if !ok {
			return nil, false
		}
		if words, ok = referenceSplit(strings.TrimSuffix(line, "\r")); !ok {
			return nil, r.refuse("unbalanced quotes in request")
		}
		return words, true
	}
	line, ok := r.line("\r", 1, "too big mbulk count string")
	if !ok {
		return nil, false
	}
	n, ok := referenceNumber(line[1:])
	switch {
	case !ok || n > 1<<31-1:
		return nil, r.refuse("invalid multibulk length")
	case n > 10 && !r.authenticated:
		return nil, r.refuse("unauthenticated multibulk length")
	case n > 1<<30/24:
		return nil, r.refuse("invalid multibulk length")
	}
	for ; n > 0; n-- {
		word, ok := r.bulk()
		if !ok {
			return nil, false
		}
		words = append(words, word)
	}
	return words, true
}

func (r *referenceStream) bulk() (word string, ok bool) {
	whole := r.in
	line, ok := r.line("\r", 1, "too big bulk count string")
	if !ok {
		return "", false
	}
	if whole[0] != '$' {
		return "", r.refuse("expected '$', got '" + strings.NewReplacer("\r", " ", "\n", " ").Replace(whole[:1]) + "'")
	}
	n, ok := referenceNumber(line[1:])
	switch {
	case !ok || n < 0 || n > 512<<20:
		return "", r.refuse("invalid bulk length")
	case n > 16384 && !r.authenticated:
		return "", r.refuse("unauthenticated bulk length")
	case int64(len(r.in)) < n+2:
		return "", false
	}
	word, r.in = r.in[:n], r.in[n+2:]
	return word, true
}

func (r *referenceStream) refuse(why string) bool {
	r.refusal = why
	return false
}

// line consumes a line up to end and more bytes behind it, if they have arrived.
func (r *referenceStream) line(end string, more int, tooBig string) (line string, ok bool) {
	visible, _, _ := strings.Cut(r.in, "\x00")
	at := strings.Index(visible, end)
	if at < 0 || at > 65536 {
		if len(r.in) > 65536 {
			r.refuse(tooBig)
		}
		return "", false
	}
	if len(r.in) < at+1+more {
		return "", false
	}
	line, r.in = r.in[:at], r.in[at+1+more:]
	return line, true
}

var referenceInteger = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func referenceNumber(s string) (int64, bool) {
	if !referenceInteger.MatchString(s) {
		return 0, false
	}
	n, _ := new(big.Int).SetString(s, 10)
	return n.Int64(), n.IsInt64()
}

var referenceEscape = regexp.MustCompile(`^\\x[0-9a-fA-F]{2}`)

// referenceSplit splits an inline command, one byte and one state at a time.
func referenceSplit(line string) (words []string, ok bool) {
	const (
		between = iota
		bare
		double
		single
		closed
	)
	state, word := between, []byte{}
	for i := 0; i <= len(line); i++ {
		end := i == len(line)
		c := byte(' ') // also stands for the end of the line
		if !end {
			c = line[i]
		}
		space := strings.IndexByte(" \t\n\v\f\r", c) >= 0
		switch state {
		case double:
			switch {
			case end:
				return nil, false
			case referenceEscape.MatchString(line[i:]):
				n, _ := new(big.Int).SetString(line[i+2:i+4], 16)
				word = append(word, byte(n.Int64()))
				i += 3
			case c == '\\' && i+1 < len(line):
				i++
				if at := strings.IndexByte("nrtba", line[i]); at >= 0 {
					word = append(word, "\n\r\t\b\a"[at])
				} else {
					word = append(word, line[i])
				}
			case c == '"':
				state = closed
			default:
				word = append(word, line[i])
			}
			continue
		case single:
			switch {
			case end:
				return nil, false
			case strings.HasPrefix(line[i:], `\'`):
				word = append(word, '\'')
				i++
			case c == '\'':
				state = closed
			default:
				word = append(word, line[i])
			}
			continue
		case closed:
			if !space {
				return nil, false
			}
			words, word, state = append(words, string(word)), nil, between
		case bare:
			if space && c != '\v' && c != '\f' {
				words, word, state = append(words, string(word)), nil, between
			}
		}
		switch {
		case state == between && space:
		case c == '"':
			state = double
		case c == '\'':
			state = single
		default:
			state = bare
			word = append(word, line[i])
		}
	}
	return words, true
}

// collectGuarded returns the commands that a guard hands out.
func collectGuarded(g *Guard) (commands [][]string, err error) {
	err = readGuarded(g, func(words [][]byte) {
		var command []string
		for _, w := range words {
			command = append(command, string(w))
		}
		commands = append(commands, command)
		if isAuth(command) {
			g.SetAuthenticated(true)
		}
	})
	return commands, err
}

// checkGuard sends a stream through a guard, in random chunks, and compares the commands with the
// reference.
func checkGuard(t *testing.T, stream []byte, authenticated bool, seed uint64) {
	want := referenceStream{in: string(stream), authenticated: authenticated}
	want.run()

	rnd := rand.New(rand.NewPCG(seed, 0))
	conn := &scriptedConn{}
	for rest := slices.Clone(stream); len(rest) > 0; {
		n := min(1+rnd.IntN(1<<rnd.IntN(16)), len(rest))
		conn.chunks = append(conn.chunks, rest[:n])
		rest = rest[n:]
	}
	g := NewGuard(conn, config.NewConnectionLimits(), nil)
	g.SetAuthenticated(authenticated)
	got, err := collectGuarded(g)
	require.Equal(t, want.commands, got)
	if want.refusal == "" {
		require.ErrorIs(t, err, io.EOF)
		require.Zero(t, conn.sent.Len())
	} else {
		require.Equal(t, protocolError(want.refusal), err)
		require.Equal(t, "-ERR Protocol error: "+want.refusal+"\r\n", conn.sent.String())
	}
}

// framingScraps are the parts of random streams. The first eight are well-formed.
var framingScraps = []string{
	"*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n", "PING\r\n",
	"ECHO \"a b\" 'c'\n",
	"*0\r\n", "*-1\r\n", "\r\n", " \n", "*", "$", "\r", "\n", "\r\n", "*3\r\n", "*11\r\n", "*12", "$1\r\nx\r\n",
	"$3\rXabcYZ", "0", "1", "10", "-", "'", "\"", "\\",
	"\\x41",
	"\x00", "x", "$16384\r\n", "$16385\r\n", "*1\r\n$20000\r\n" + strings.Repeat("y", 20000) + "\r\n",
	"*2147483648\r\n",
	strings.Repeat("z", 40000),
	"$9223372036854775807\r\n", "\v", " ",
}

func TestGuardAgainstReference(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		var stream []byte
		for range rnd.IntN(12) {
			scrap := framingScraps[rnd.IntN(len(framingScraps))]
			if rnd.IntN(2) == 0 { // mostly well-formed, or most streams would end soon
				scrap = framingScraps[rnd.IntN(8)]
			}
			stream = append(stream, scrap...)
		}
		checkGuard(t, stream, rnd.IntN(4) > 0, rnd.Uint64())
	}
}

func FuzzGuard(f *testing.F) {
	for i, c := range slices.Concat(framings, framingsBeforeAuth) {
		f.Add([]byte(c.in), i%2 == 0, uint64(i))
	}
	f.Fuzz(checkGuard)
}
