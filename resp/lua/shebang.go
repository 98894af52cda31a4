package lua

import "strings"

// Flags are the flags that a script declares in its first line, such as #!lua flags=no-writes.
type Flags uint8

// The flags of scripts.
const (
	NoWrites Flags = 1 << iota
	AllowOOM
	AllowStale
	NoCluster
	AllowCrossSlot
	Declared // the script has such a line
)

var flagsByName = map[string]Flags{
	"no-writes": NoWrites, "allow-oom": AllowOOM, "allow-stale": AllowStale, "no-cluster": NoCluster,
	"allow-cross-slot-keys": AllowCrossSlot,
}

// fault is an error in the words of Redis, which begin with a capital letter.
type fault string

func (f fault) Error() string { return string(f) }

// parseShebang returns the flags of a script, and those that are unknown.
func parseShebang(text string) (flags Flags, unknown []string, err error) {
	if !strings.HasPrefix(text, "#!") {
		return 0, nil, nil
	}
	line, _, found := strings.Cut(text, "\n")
	if !found {
		return 0, nil, fault("Invalid script shebang")
	}
	words := strings.Fields(line)
	if words[0] != "#!lua" {
		return 0, nil, fault("Unexpected engine in script shebang: " + words[0])
	}
	flags = Declared
	for _, word := range words[1:] {
		list, found := strings.CutPrefix(word, "flags=")
		if !found {
			return 0, nil, fault("Unknown lua shebang option: " + word)
		}
		for name := range strings.SplitSeq(list, ",") {
			if f, known := flagsByName[name]; known {
				flags |= f
			} else if name != "" {
				unknown = append(unknown, name)
			}
		}
	}
	return flags, unknown, nil
}

// DeclaredFlags returns the flags that the text of a script declares.
func DeclaredFlags(text string) (flags Flags, err error) {
	flags, _, err = parseShebang(text)
	return flags, err
}

// Read reads the flags of a script and compiles it. unknown are flags that have no effect.
func Read(sha, text string) (e *Entry, unknown []string, err error) {
	e = &Entry{SHA: sha, Text: text}
	if e.Flags, unknown, err = parseShebang(text); err != nil {
		return nil, nil, err
	}
	if e.Script, err = Compile(text); err != nil {
		return nil, nil, fault("Error compiling script (new function): " + err.Error())
	}
	return e, unknown, nil
}
