package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"rlserver/engine"
)

// policyFile is the file of --policies, and the engine that keeps what it says.
type policyFile struct {
	path string
	e    *engine.Engine
	now  func() int64
	log  *slog.Logger

	refusal func() string // why nothing may be changed now; "" while it may
	changed func()        // is told that policies were set

	mu sync.Mutex // held from reading to setting: what was read last is set last
}

// reloader is reload for the server; nil if there is no file.
func (f *policyFile) reloader() func() (engine.Position, error) {
	if f.path == "" {
		return nil
	}
	return f.reload
}

// reloadOn reads the file again with each signal until the function that it returns is called.
func (f *policyFile) reloadOn(hangups chan os.Signal) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			_, _ = f.reload() // the log tells
		}
	}()
	return func() {
		signal.Ignore(syscall.SIGHUP) // rather than let one end the process while it ends in order
		close(hangups)
		<-done
	}
}

// reload reads the file again and sets all of its policies, or with an error none.
func (f *policyFile) reload() (engine.Position, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, err := readPolicies(f.path)
	if why := f.refusal(); err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		f.log.Warn("no policy was changed", "error", err)
		return 0, err
	}
	return f.set(list), nil
}

// set puts the policies of the file in the place of those of the same names. Those of other names stay.
func (f *policyFile) set(list []*engine.Policy) engine.Position {
	changes := f.e.SetPolicies(f.now(), list)
	f.changed()
	f.log.Info("policies set", "file", f.path, "policies", len(list), "changed", strings.Join(changes.Names, " "),
		"switched", strings.Join(changes.Switched, " "), "dropped", changes.Dropped)
	return changes.Position
}

// readPolicies reads a file of policies. The error names the file, and the line if it is to blame.
//
//	policies:
//	  login: {slide: {limit: 5, window: 1m}, shadow: true}
//	  api:   {token: {capacity: 100, refill: 10, period: 1s}}
//	  quota: {fixed: {limit: 10000, window: month, tz: Europe/Berlin}}
//	  jobs:  {lease: {limit: 3, ttl: 30s}}
//
// No field may be missing but shadow and tz, and none be there that has no meaning.
func readPolicies(path string) ([]*engine.Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parsePolicies(text)
	if at := (*lineError)(nil); errors.As(err, &at) {
		return nil, fmt.Errorf("%s:%d: %s", path, at.line, at.what)
	}
	return list, err
}

// lineError says what is wrong in a line of a file, from 1 on.
type lineError struct {
	line int
	what string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

func wrong(at *token.Token, format string, args ...any) error {
	line := 1
	if at != nil && at.Position != nil {
		line = at.Position.Line
	}
	return &lineError{line, fmt.Sprintf(format, args...)}
}

// parsePolicies reads the text of a file of policies. The error is a *lineError.
func parsePolicies(text []byte) (list []*engine.Policy, err error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		if syntax := yaml.Error(nil); errors.As(err, &syntax) {
			return nil, wrong(syntax.GetToken(), "%s", syntax.GetMessage())
		}
		return nil, wrong(nil, "%v", err)
	}
	documents := slices.DeleteFunc(file.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch len(documents) {
	case 0:
		return nil, wrong(nil, "the file is empty: it begins with policies:")
	case 1:
	default:
		return nil, wrong(documents[1].Body.GetToken(), "one document is enough")
	}
	top, err := fieldsOf(documents[0].Body, "the file", "policies")
	if err != nil {
		return nil, err
	}
	if len(top) == 0 {
		return nil, wrong(nil, "policies: is missing")
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

// algorithms are the fields of each algorithm, in the order in which a definition has their values.
var algorithms = map[string][]string{
	"slide": {"limit", "window"},
	"token": {"capacity", "refill", "period"},
	"fixed": {"limit", "window", "tz"},
	"lease": {"limit", "ttl"},
}

// parsePolicy makes a policy of a field: its words are those of RL.POLICY SET.
func parsePolicy(f field) (*engine.Policy, error) {
	parts, err := fieldsOf(f.value, "policy "+f.name, "slide", "token", "fixed", "lease", "shadow")
	if err != nil {
		return nil, err
	}
	var words []word
	shadow := false
	for _, part := range parts {
		switch {
		case part.name == "shadow":
			if shadow, err = truth(part); err != nil {
				return nil, err
			}
		case words != nil:
			return nil, wrong(part.at, "policy %s has two algorithms", f.name)
		default:
			if words, err = wordsOf(part); err != nil {
				return nil, err
			}
		}
	}
	if words == nil {
		return nil, wrong(f.at, "policy %s has no algorithm: slide, token, fixed or lease", f.name)
	}
	var definition [][]byte
	for _, w := range words {
		definition = append(definition, []byte(w.text))
	}
	if shadow {
		definition = append(definition, []byte("SHADOW"))
	}
	p, err := engine.ParsePolicy([]byte(f.name), definition)
	if err != nil {
		at := f.at
		if bad := (*engine.DefinitionError)(nil); errors.As(err, &bad) && bad.Word < len(words) {
			at = words[bad.Word].at
		}
		return nil, wrong(at, "policy %s: %s", f.name, strings.TrimPrefix(err.Error(), "ERR "))
	}
	return p, nil
}

// word is one of a definition, and where it comes from.
type word struct {
	text string
	at   *token.Token
}

// wordsOf writes an algorithm and its fields as the words of a definition.
func wordsOf(algorithm field) (words []word, err error) {
	names := algorithms[algorithm.name]
	given, err := fieldsOf(algorithm.value, algorithm.name, names...)
	if err != nil {
		return nil, err
	}
	words = []word{{algorithm.name, algorithm.at}}
	for _, name := range names {
		i := slices.IndexFunc(given, func(f field) bool { return f.name == name })
		switch {
		case i < 0 && name == "tz":
			continue
		case i < 0:
			return nil, wrong(algorithm.at, "%s lacks %s", algorithm.name, name)
		case name == "tz":
			words = append(words, word{"TZ", given[i].at})
		}
		value, err := scalar(given[i])
		if err != nil {
			return nil, err
		}
		words = append(words, word{value, given[i].at})
	}
	return words, nil
}

// field is one of a mapping.
type field struct {
	name  string
	at    *token.Token
	value ast.Node
}

// fieldsOf gives the fields of a mapping; of says whose. Only those named may be there, if any are.
func fieldsOf(node ast.Node, of string, names ...string) (list []field, err error) {
	var values []*ast.MappingValueNode
	switch node := node.(type) {
	case *ast.MappingNode:
		values = node.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{node}
	default:
		return nil, wrong(node.GetToken(), "%s must have fields, but is of type %s", of, strings.ToLower(node.Type().YAMLName()))
	}
	for _, value := range values {
		at := value.Key.GetToken()
		if value.Key.IsMergeKey() {
			return nil, wrong(at, "%s must name its fields itself: there is no merging", of)
		}
		name := at.Value
		if len(names) > 0 && !slices.Contains(names, name) {
			return nil, wrong(at, "%s has no field %s: there are %s", of, name, strings.Join(names, ", "))
		}
		list = append(list, field{name, at, value.Value})
	}
	return list, nil
}

// scalar is the text of a plain value as it stands in the file.
func scalar(f field) (string, error) {
	switch node := f.value.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		if text := node.GetToken().Value; text != "" && !strings.ContainsAny(text, " \t\r\n") {
			return text, nil
		}
	}
	return "", wrong(f.at, "%s must be a number or a word", f.name)
}

func truth(f field) (bool, error) {
	if node, ok := f.value.(*ast.BoolNode); ok {
		return node.Value, nil
	}
	return false, wrong(f.at, "%s must be true or false", f.name)
}
