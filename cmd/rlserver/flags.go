package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"rlserver/resp/config"
)

// options are the flags that are no settings.
type options struct {
	File                string           `arg:"" optional:"" env:"-"`
	Config              string           `group:"Configuration" placeholder:"FILE"`
	IgnoreUnknownConfig bool             `group:"Configuration"`
	CheckConfig         bool             `group:"Configuration" env:"-"`
	Version             kong.VersionFlag `short:"v" env:"-"`
}

// arguments are the parsed command line.
type arguments struct {
	options
	file string // configuration file; empty: none
	// values by setting; a flag that is given several times has several
	settings map[string][]string
}

// parseFlags reads the command line and, for options, the environment. done reports that a flag
// such as --help has printed its text to out.
func parseFlags(argv []string, out io.Writer) (a arguments, done bool, err error) {
	settings := settingFlags()
	parser, err := kong.New(&a.options, kong.Name("rlserver"), kong.Description(description), kong.Writers(out, out),
		kong.Embed(settings.Interface()), kong.DefaultEnvars(envPrefix), kong.Exit(func(int) { done = true }),
		kong.Vars{"version": "rlserver " + version}, kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true}),
		kong.ValueFormatter(func(v *kong.Value) string { return cmp.Or(helpOf(v.Name), v.Help) }))
	if err != nil {
		return a, false, err
	}
	context, err := parser.Parse(bareSwitches(argv))
	if done || err != nil {
		return a, done, err
	}
	if a.File != "" && a.Config != "" {
		return a, false, fmt.Errorf("%s and --config %s: give one configuration file", a.File, a.Config)
	}
	a.file = cmp.Or(a.File, a.Config)
	a.settings = make(map[string][]string)
	for _, path := range context.Path {
		if path.Flag != nil && config.Lookup(path.Flag.Name) != nil {
			a.settings[path.Flag.Name] = path.Flag.Target.Interface().([]string)
		}
	}
	return a, false, nil
}

// bareSwitches adds the value yes to yes|no flags that are followed by another flag or by nothing.
func bareSwitches(argv []string) []string {
	argv = slices.Clone(argv)
	for i, arg := range argv {
		p := config.Lookup(strings.TrimPrefix(arg, "--"))
		if p == nil || p.Form != "yes|no" || !strings.HasPrefix(arg, "--") {
			continue
		}
		if i+1 == len(argv) || strings.HasPrefix(argv[i+1], "--") {
			argv[i] = arg + "=yes"
		}
	}
	return argv
}

// settingFlags returns a pointer to a struct that has a field with kong's tags for each setting.
func settingFlags() reflect.Value {
	var fields []reflect.StructField
	for i := range config.Parameters {
		p := &config.Parameters[i]
		if p.Group == "" {
			continue
		}
		tag := fmt.Sprintf(`name:%q group:%q placeholder:%q sep:"none"`, p.Name, p.Group, p.Form)
		if p.Alias != "" {
			tag += fmt.Sprintf(` aliases:%q`, p.Alias)
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("Setting", i), Type: reflect.TypeFor[[]string](), Tag: reflect.StructTag(tag),
		})
	}
	return reflect.New(reflect.StructOf(fields))
}

// envPrefix is the prefix of environment variables for flags.
const envPrefix = "RLSERVER"

// environment returns the environment variable of a parameter.
func environment(name string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// give collects the values of the configuration file, the environment and the command line. Later
// ones take precedence. ignored is called for each directive that is ignored.
func (a *arguments) give(ignored func(why error)) (config.GivenValues, error) {
	given := make(config.GivenValues)
	if !a.IgnoreUnknownConfig {
		ignored = nil
	}
	var err error
	if a.file != "" {
		err = given.ReadFile(a.file, ignored)
	}
	for i := range config.Parameters {
		p := &config.Parameters[i]
		for _, name := range []string{p.Alias, p.Name} {
			variable := environment(name)
			if value, set := os.LookupEnv(variable); set && name != "" && p.Group != "" {
				given.Give(p.Name, config.Given{Value: value, Origin: variable, As: variable})
			}
		}
		if values, set := a.settings[p.Name]; set {
			value := values[len(values)-1]
			if p.Words != config.OneWord {
				value = p.Join(values)
			}
			given.Give(p.Name, config.Given{Value: value, Origin: "--" + p.Name, As: "--" + p.Name})
		}
	}
	return given, err
}

// absolute returns the absolute path of the configuration file, or "" if there is none.
func (a *arguments) absolute() (string, error) {
	if a.file == "" {
		return "", nil
	}
	return filepath.Abs(a.file)
}
