package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"rlserver/engine/limit"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
)

// lineError is an error in a line of the file. The first line is 1.
type lineError struct {
	line int
	what string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

func errorAt(at *yaml.Node, format string, args ...any) error {
	return &lineError{max(at.Line, 1), fmt.Sprintf(format, args...)}
}

// wholeFile is the position of errors that belong to no line.
var wholeFile = new(yaml.Node)

// parse parses a file of policies. The error is a *lineError.
func parse(text []byte) (list []*policy.Policy, err error) {
	defer func() {
		if panicked := recover(); panicked != nil { // the library panics on internal errors
			list, err = nil, errorAt(wholeFile, "this is not YAML: %.128s", fmt.Sprint(panicked))
		}
	}()
	if err := checkNodes(text); err != nil {
		return nil, err
	}
	document, err := onlyDocument(text)
	if err != nil {
		return nil, err
	}
	top, err := fieldsOf(document, "the file", "policies")
	if err != nil {
		return nil, err
	}
	if len(top) == 0 {
		return nil, errorAt(wholeFile, "policies: is missing")
	}
	policies, err := fieldsOf(top[0].value, "policies")
	if err != nil {
		return nil, err
	}
	for _, f := range policies {
		p, err := parsePolicy(f)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// maxNodes is the largest number of nodes of a file: names, values, mappings. The parser takes up
// to 250 bytes of memory and a microsecond for each. A policy has about 8.
const maxNodes = 2 << 20

// checkNodes returns an error if the text may have more than maxNodes nodes. It counts the
// characters that can begin a node, including those in quotes and comments.
func checkNodes(text []byte) error {
	nodes, line := 0, 1
	for i, c := range text {
		switch c {
		case '\n':
			line++
			nodes++
		case '\r', ',', ':', '[', '{', '?':
			nodes++
		case '-':
			if i+1 == len(text) || !isWord(text[i+1]) { // not a hyphen in a name
				nodes++
			}
		}
		if nodes > maxNodes {
			return &lineError{line, fmt.Sprintf("there are too many fields and values: at most %d are read", maxNodes)}
		}
	}
	return nil
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_'
}

// onlyDocument parses YAML with one document and any number of empty ones. It does not resolve
// aliases, so the tree is not larger than the text.
func onlyDocument(text []byte) (document *yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var next yaml.Node
		err := decoder.Decode(&next)
		switch {
		case err == io.EOF && document == nil:
			return nil, errorAt(wholeFile, "the file is empty: it must begin with policies:")
		case err == io.EOF:
			return document, nil
		case err != nil:
			return nil, syntaxError(text, err)
		}
		body := next.Content[0]
		switch {
		case body.Kind == yaml.ScalarNode && body.Value == "" && body.Style == 0:
		case document != nil:
			return nil, errorAt(body, "there may be only one document")
		default:
			document = body
		}
	}
}

// yamlError matches the library's errors.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)`)

// parserErrors matches the errors for which the library counts lines from 0.
var parserErrors = regexp.MustCompile(
	`^(did not find expected (node content|key|'-'|','|<)|found (duplicate|incompatible|undefined))`)

// unknownAnchor matches the only error without a line.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

func syntaxError(text []byte, err error) error {
	parts := yamlError.FindStringSubmatch(err.Error())
	if parts == nil {
		return errorAt(wholeFile, "%.256s", err.Error())
	}
	line, _ := strconv.Atoi(parts[1])
	if parserErrors.MatchString(parts[2]) {
		line++
	}
	if alias := unknownAnchor.FindStringSubmatch(parts[2]); alias != nil {
		before, _, _ := bytes.Cut(text, []byte("*"+alias[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	return &lineError{max(line, 1), fmt.Sprintf("%.256s", parts[2])}
}

// policyFields returns the possible fields of a policy: one for each algorithm, and its options.
func policyFields() (names []string) {
	for _, a := range rule.Algorithms() {
		names = append(names, strings.ToLower(a.Name))
	}
	return append(names, "ban", "ip4", "ip6", "overrides", "shadow")
}

// parsePolicy converts a field to a policy: it parses the fields as arguments of RL.POLICY SET.
func parsePolicy(f field) (*policy.Policy, error) {
	parts, err := fieldsOf(f.value, fmt.Sprintf("policy %.128s", f.name), policyFields()...)
	if err != nil {
		return nil, err
	}
	var words, options []word
	var algorithm, overrides field
	for _, part := range parts {
		switch {
		case part.name == "overrides":
			overrides = part
		case part.name == "shadow":
			shadow, err := boolean(part)
			if err != nil {
				return nil, err
			}
			if shadow {
				options = append(options, word{"SHADOW", part.at})
			}
		case part.name == "ban":
			ban, err := banOf(part)
			if err != nil {
				return nil, err
			}
			options = append(options, ban...)
		case part.name == "ip4", part.name == "ip6":
			value, err := scalar(part)
			if err != nil {
				return nil, err
			}
			options = append(options, word{part.name, part.at}, word{value, part.at})
		case words != nil:
			return nil, errorAt(part.at, "policy %.128s has two algorithms", f.name)
		default:
			if words, err = wordsOf(part); err != nil {
				return nil, err
			}
			algorithm = part
		}
	}
	if words == nil {
		return nil, errorAt(f.at, "policy %.128s has no algorithm: %s", f.name, strings.ToLower(rule.Names()))
	}
	d, err := definitionOf(f, append(words, options...))
	if err != nil {
		return nil, err
	}
	given, err := givenOf(f, algorithm.name, overrides)
	return policy.NewWith(d, given), err
}

// definitionOf parses the words of a policy's definition.
func definitionOf(f field, words []word) (rule.Definition, error) {
	var definition [][]byte
	for _, w := range words {
		definition = append(definition, []byte(w.text))
	}
	d, err := rule.ParsePolicy([]byte(f.name), definition)
	if err != nil {
		at := f.at
		if bad := (*rule.DefinitionError)(nil); errors.As(err, &bad) && bad.Word < len(words) {
			at = words[bad.Word].at
		}
		return d, errorAt(at, "policy %.128s: %s", f.name, strings.TrimPrefix(err.Error(), "ERR "))
	}
	return d, nil
}

// banOf converts a ban to the words of a definition.
func banOf(ban field) (words []word, err error) {
	given, err := fieldsOf(ban.value, "ban", "denials", "for", "max")
	if err != nil {
		return nil, err
	}
	words = []word{{"BAN", ban.at}}
	for _, name := range []string{"denials", "for", "max"} {
		at := slices.IndexFunc(given, func(g field) bool { return g.name == name })
		if at < 0 && name == "max" {
			break
		}
		if at < 0 {
			return nil, errorAt(ban.at, "ban lacks %s", name)
		}
		value, err := scalar(given[at])
		if err != nil {
			return nil, err
		}
		if name == "max" {
			if _, ok := limit.ParseDuration([]byte(value)); !ok {
				return nil, errorAt(given[at].at, "max must be a duration")
			}
		}
		words = append(words, word{value, given[at].at})
	}
	return words, nil
}

// givenOf converts the overrides of a policy: by id, the fields of its algorithm.
func givenOf(f field, algorithm string, overrides field) (list []policy.Given, err error) {
	if overrides.value == nil {
		return nil, nil
	}
	ids, err := fieldsOf(overrides.value, "overrides")
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if id.name == "" || len(id.name) > maxID || strings.ContainsAny(id.name, "{}") {
			return nil, errorAt(id.at, "overrides: an id is 1 to %d bytes without { and }", maxID)
		}
		words, err := wordsOf(field{algorithm, id.at, id.value})
		if err != nil {
			return nil, err
		}
		d, err := definitionOf(f, words)
		if err != nil {
			return nil, err
		}
		list = append(list, policy.Given{ID: id.name, Definition: d})
	}
	return list, nil
}

// maxID is the longest id of RL.CHECK, in bytes.
const maxID = 64 << 10

// word is a word of a definition, and its position in the file.
type word struct {
	text string
	at   *yaml.Node
}

// wordsOf converts an algorithm and its fields to the words of a definition.
func wordsOf(algorithm field) (words []word, err error) {
	a := rule.Find([]byte(algorithm.name))
	fields := slices.Concat(a.Fields, a.Options)
	var names []string
	for _, f := range fields {
		names = append(names, f.Key())
	}
	given, err := fieldsOf(algorithm.value, algorithm.name, names...)
	if err != nil {
		return nil, err
	}
	words = []word{{algorithm.name, algorithm.at}}
	for i, f := range fields {
		at := slices.IndexFunc(given, func(g field) bool { return g.name == names[i] })
		switch {
		case at < 0 && f.Word != "":
			continue
		case at < 0:
			return nil, errorAt(algorithm.at, "%s lacks %s", algorithm.name, names[i])
		case f.Word != "":
			words = append(words, word{f.Word, given[at].at})
		}
		value, err := scalar(given[at])
		if err != nil {
			return nil, err
		}
		words = append(words, word{value, given[at].at})
	}
	return words, nil
}

// field is a field of a mapping.
type field struct {
	name  string
	at    *yaml.Node
	value *yaml.Node
}

// fieldsOf returns the fields of a mapping; of is its name in errors. If names are given, other
// fields are errors.
func fieldsOf(node *yaml.Node, of string, names ...string) (list []field, err error) {
	if kind := kindOf(node); kind != "mapping" {
		return nil, errorAt(node, "%s must have fields, but is of type %s", of, kind)
	}
	seen := make(map[string]*yaml.Node)
	for i := 0; i < len(node.Content); i += 2 {
		at, name := node.Content[i], node.Content[i].Value
		switch {
		case at.Kind == yaml.AliasNode || at.Anchor != "" || at.Tag == "!!merge":
			return nil, errorAt(
				at,
				"%s must list its own fields: anchors, aliases and merge keys are not supported",
				of,
			)
		case at.Kind != yaml.ScalarNode:
			return nil, errorAt(at, "%s has a field whose name is of type %s", of, kindOf(at))
		case seen[name] != nil:
			return nil, errorAt(at, "%s has %.128s twice: first in line %d", of, name, seen[name].Line)
		case len(names) > 0 && !slices.Contains(names, name):
			return nil, errorAt(at, "%s has no field %.128s: there are %s", of, name, strings.Join(names, ", "))
		}
		seen[name] = at
		list = append(list, field{name, at, node.Content[i+1]})
	}
	return list, nil
}

// kindOf returns the kind of a node in the terms of YAML.
func kindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.AliasNode:
		return "alias"
	case node.Anchor != "":
		return "anchor"
	case node.Style&yaml.TaggedStyle != 0:
		return "tag"
	case node.Kind == yaml.MappingNode:
		return "mapping"
	case node.Kind == yaml.SequenceNode:
		return "sequence"
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return "block"
	}
	return strings.TrimPrefix(node.Tag, "!!")
}

// scalar returns the text of a plain value.
func scalar(f field) (string, error) {
	switch kindOf(f.value) {
	case "int", "float", "str", "timestamp":
		if text := f.value.Value; text != "" && !strings.ContainsAny(text, " \t\r\n") {
			return text, nil
		}
	}
	return "", errorAt(f.at, "%s must be a number or a word", f.name)
}

func boolean(f field) (yes bool, err error) {
	if kindOf(f.value) != "bool" || f.value.Decode(&yes) != nil {
		return false, errorAt(f.at, "%s must be true or false", f.name)
	}
	return yes, nil
}
