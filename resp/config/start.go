package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rlserver/resp/config/conffile"
)

// Given is the value of a setting at the start.
type Given struct {
	Value  string
	Origin string   // a flag, an environment variable, or file and line; empty: the default
	Over   []string // the origins of values that it takes precedence over
	As     string   // origin and setting, for errors
}

// GivenValues maps the names of parameters to their values at the start.
type GivenValues map[string]Given

// Give adds a value, which takes precedence over one that was added before.
func (g GivenValues) Give(name string, value Given) {
	if before, given := g[name]; given {
		value.Over = append(slices.Clone(before.Over), before.Origin)
	}
	g[name] = value
}

// errUnknownDirective is the error of a directive that is not a parameter.
type errUnknownDirective struct{ name string }

// Error implements error.
func (e errUnknownDirective) Error() string {
	if slices.Contains(redisDirectives, e.name) {
		return e.name + " is a directive of Redis that rlserver does not have"
	}
	return e.name + " is not a directive"
}

// ReadFile adds the values of a configuration file. Directives that rlserver does not have are
// errors, or if ignored is given, it is called for each of them. All errors are returned, joined.
func (g GivenValues) ReadFile(path string, ignored func(why error)) error {
	list, err := conffile.Read(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range list {
		switch err := g.directive(d); {
		case err == nil:
		case ignored != nil && isUnknown(err):
			ignored(err)
		default:
			errs = append(errs, err)
		}
	}
	if slices.ContainsFunc(errs, isUnknown) {
		errs = append(errs,
			errors.New("--ignore-unknown-config starts without the directives that rlserver does not have"))
	}
	return errors.Join(errs...)
}

func isUnknown(err error) bool {
	_, unknown := errors.AsType[errUnknownDirective](err)
	return unknown
}

func (g GivenValues) directive(d conffile.Directive) error {
	origin := fmt.Sprintf("%s:%d", d.File, d.Line)
	p := Lookup(d.Name)
	if p == nil || p.Group == "" && !strings.EqualFold(strings.Join(d.Args, " "), p.Default) {
		return fmt.Errorf("%s: %w", origin, errUnknownDirective{d.Name})
	}
	if len(d.Args) == 0 || p.Words == OneWord && len(d.Args) > 1 {
		return fmt.Errorf("%s: %s has the wrong number of arguments", origin, d.Name)
	}
	value := Given{Value: strings.Join(d.Args, " "), Origin: origin, As: origin + ": " + d.Name}
	if before := g[p.Name]; p.addsUp() && before.Value != "" && value.Value != "" {
		value.Value = before.Value + p.separator() + value.Value
		value.Origin = before.Origin + ", " + value.Origin
		delete(g, p.Name)
	}
	g.Give(p.Name, value)
	return nil
}

// Start returns the settings of a server that starts with these values, and with the defaults of
// the table for all other parameters. All errors are returned, joined.
func (g GivenValues) Start() (*Settings, error) {
	s := empty()
	var errs []error
	for i := range Parameters {
		p := &Parameters[i]
		given, ok := g[p.Name]
		if !ok {
			given = Given{Value: p.Default, As: "default of " + p.Name}
		}
		if err := p.start(s, given.Value); err != nil {
			errs = append(errs, given.refuse(p, err))
		}
	}
	return s, errors.Join(errs...)
}

// start applies a value before the server runs.
func (p *Parameter) start(s *Settings, value string) error {
	set := p.Start
	if set == nil {
		set = p.Set
	}
	apply, err := set(s, value)
	if err == nil {
		apply()
	}
	return err
}

func (g *Given) refuse(p *Parameter, why error) error {
	text := why.Error()
	if p.Example != "" {
		text = strings.TrimSuffix(text, ".") + "; an example is " + p.Example
	}
	if p.Secret {
		return fmt.Errorf("%s: %s", g.As, text)
	}
	return fmt.Errorf("%s %q: %s", g.As, g.Value, text)
}
