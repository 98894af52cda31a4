package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"rlserver/internal/process"
	"rlserver/internal/smallfile"
	"rlserver/resp/config"
)

// version is what --version and INFO report.
const version = "1.0.0"

// setup has the settings of the start.
type setup struct {
	*config.Settings
	ignored []error // directives of the configuration file that are ignored
	wanted  int64   // configured maxclients, which may be more than is possible
}

// parse reads the command line, the environment and the configuration file. done reports that a
// flag such as --help has printed its text to out, and that no server is to start.
func parse(argv []string, out io.Writer) (c setup, done bool, err error) {
	a, done, err := parseFlags(argv, out)
	if done || err != nil {
		return c, done, err
	}
	given, err := a.give(func(why error) { c.ignored = append(c.ignored, why) })
	settings, startErr := given.Start()
	if err = errors.Join(err, startErr); err == nil {
		c.Settings = settings
		err = c.complete(&a)
	}
	if a.CheckConfig {
		if err == nil {
			err = checkFiles(settings)
		}
		report(out, settings, given)
		for _, why := range c.ignored {
			fmt.Fprintln(out, "ignored:", why)
		}
		return c, err == nil, err
	}
	return c, false, err
}

// checkFiles checks the files that a server reads later at its start.
func checkFiles(settings *config.Settings) error {
	if path := settings.Start.Policies; path != "" {
		if _, err := readPolicies(path); err != nil {
			return err
		}
	}
	if _, err := readSecret("--http-token-file", settings.Start.HTTP.TokenFile); err != nil {
		return err
	}
	if _, err := readNodeSecret(settings.Start.Cluster.SecretFile); err != nil {
		return err
	}
	_, err := openCertificates(settings, time.Now, slog.New(slog.DiscardHandler))
	return err
}

// complete checks the settings against each other, and sets those that depend on the system or on
// files.
func (c *setup) complete(a *arguments) (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	if err := c.mode().validate(c); err != nil {
		return err
	}
	if c.File, err = a.absolute(); err != nil {
		return err
	}
	if c.Start.PasswordFile != "" {
		password, err := readPassword(c.Start.PasswordFile)
		if err != nil {
			return err
		}
		c.SetPassword(password)
	}
	if err := c.makeUsers(); err != nil {
		return err
	}
	c.wanted = c.MaxClients.Load()
	c.LimitClients(c.maxPossibleClients())
	c.Keep()
	return nil
}

func (c *setup) validate() error {
	ports := c.Ports()
	wrong := c.CheckPorts(ports)
	switch start := &c.Start; {
	case start.Dir == "":
		return errors.New("--dir is empty: it needs a directory")
	case ports.Port == 0 && ports.TLSPort == 0 && start.UnixSocket == "":
		return errors.New("--port 0 leaves nothing to listen on: give --tls-port or --unixsocket")
	case len(ports.Bind) == 0 && start.UnixSocket == "":
		return errors.New("--bind is empty: it needs an address")
	case wrong != nil:
		return wrong
	case start.HTTP.Port != 0 && len(start.HTTP.Bind) == 0:
		return errors.New("--http-bind is empty: it needs an address")
	case start.HTTP.Port == 0 && (start.HTTP.TokenFile != "" || start.HTTP.Debug == "yes"):
		return errors.New("--http-token-file and --debug-http need --http-port")
	case start.HTTP.MaxStreams >= start.HTTP.MaxClients:
		return fmt.Errorf("--http-max-streams %d must be below --http-max-clients, which is %d",
			start.HTTP.MaxStreams, start.HTTP.MaxClients)
	case start.ACLFile != "" && len(start.UserLines) > 0:
		return errors.New("--aclfile and --user exclude each other: define all users in one place")
	case c.Password() != "" && start.PasswordFile != "":
		return errors.New("--requirepass and --requirepass-file exclude each other")
	}
	return nil
}

// maxPossibleClients returns how many clients the limit on open files allows, after subtracting the
// reserved clients of the Unix socket and the connections of the HTTP port.
func (c *setup) maxPossibleClients() int {
	most := process.MaxConnections()
	if c.Start.UnixSocket != "" {
		most = max(1, most-int(c.ReservedClients.Load()))
	}
	if c.Start.HTTP.Port != 0 {
		most = max(1, most-c.Start.HTTP.MaxClients-c.Start.HTTP.Health)
	}
	return c.mode().maxClients(c, most)
}

// report prints each setting, its value and its origin.
func report(out io.Writer, settings *config.Settings, given config.GivenValues) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for i := range config.Parameters {
		p := &config.Parameters[i]
		if p.Group == "" {
			continue
		}
		value, from := p.Shown(settings), "default"
		if value == "" || strings.Contains(value, " ") {
			value = strconv.Quote(value)
		}
		if g, ok := given[p.Name]; ok {
			from = g.Origin
			if len(g.Over) > 0 {
				from += ", instead of " + strings.Join(g.Over, ", ")
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, value, from)
	}
}

// maxPasswordFile is the largest size of the file of --requirepass-file, in bytes.
const maxPasswordFile = 64 << 10

// readPassword returns the password in the file of --requirepass-file.
func readPassword(path string) (string, error) {
	text, err := smallfile.Read(path, maxPasswordFile)
	if err != nil {
		return "", fmt.Errorf("--requirepass-file cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("--requirepass-file %s: its first line is empty, a password is needed", path)
	}
	return line, nil
}
