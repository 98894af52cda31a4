package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// version is what --version, HELLO and INFO tell.
const version = "1.0.0"

// config is what can be said on the command line or in the environment. The names are Redis' own where Redis has the thing.
type config struct {
	Port            int              `default:"6379" help:"TCP port to listen on; 0: none."`
	Bind            []string         `default:"127.0.0.1,::1" sep:"," placeholder:"ADDR,..." help:"Addresses to listen on. One that begins with - may be missing on this machine."`
	Unixsocket      string           `placeholder:"PATH" help:"Unix socket to listen on as well."`
	Unixsocketperm  string           `placeholder:"MODE" help:"Permissions of the Unix socket, in octal, e.g. 770."`
	Requirepass     string           `placeholder:"PASSWORD" help:"Password that clients must give with AUTH. Others can see it in the list of processes: better use --requirepass-file or the environment."`
	RequirepassFile string           `placeholder:"FILE" help:"File whose first line is the password."`
	ProtectedMode   string           `enum:"yes,no" default:"yes" help:"Refuse clients from other machines while there is no password and no --bind of one's own: yes or no."`
	Maxclients      int              `default:"10000" help:"How many clients may be connected at once."`
	Timeout         int              `default:"0" help:"Close a connection after a client was idle for so many seconds; 0: never."`
	TcpKeepalive    int              `default:"300" help:"Seconds between TCP keepalives; 0: none."`
	Databases       int              `default:"16" help:"How many databases SELECT chooses among."`
	Loglevel        string           `enum:"debug,verbose,notice,warning" default:"notice" help:"How much is logged: debug, verbose, notice or warning."`
	Version         kong.VersionFlag `short:"v" help:"Print the version and exit."`
}

const description = `A rate-limit server that speaks the Redis protocol: connect with redis-cli or any Redis client and send RL.SLIDE, RL.TOKEN, RL.MULTI or RL.FIXED.

Each flag can also be set in the environment, as RLSERVER_ and its name: RLSERVER_PORT=6380, RLSERVER_REQUIREPASS_FILE=/run/secrets/password.`

// parse reads the command line and the environment. done is true when there is nothing left to do but to exit.
func parse(argv []string) (c config, exit int, done bool) {
	parser := kong.Must(&c, kong.Name("rlserver"), kong.Description(description),
		kong.DefaultEnvars("RLSERVER"), kong.Vars{"version": "rlserver " + version},
		kong.Exit(func(code int) { exit, done = code, true }))
	_, err := parser.Parse(argv)
	if done {
		return c, exit, true
	}
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rlserver: %v\n", err)
		return c, 1, true
	}
	return c, 0, false
}

// validate refuses values that are of the right type but make no sense.
func (c *config) validate() error {
	for _, limit := range []struct {
		flag        string
		value       int
		least, most int
	}{
		{"port", c.Port, 0, 65535},
		{"maxclients", c.Maxclients, 1, 1 << 20},
		{"timeout", c.Timeout, 0, 1 << 31},
		{"tcp-keepalive", c.TcpKeepalive, 0, 1 << 31},
		{"databases", c.Databases, 1, 1 << 16},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			return fmt.Errorf("--%s must be from %d to %d, not %d", limit.flag, limit.least, limit.most, limit.value)
		}
	}
	if c.Port == 0 && c.Unixsocket == "" {
		return fmt.Errorf("--port 0 leaves nothing to listen on: give --unixsocket")
	}
	if c.Requirepass != "" && c.RequirepassFile != "" {
		return fmt.Errorf("--requirepass and --requirepass-file exclude each other")
	}
	return nil
}

// password gives what clients must know; empty: nothing.
func (c *config) password() (string, error) {
	if c.RequirepassFile == "" {
		return c.Requirepass, nil
	}
	text, err := os.ReadFile(c.RequirepassFile)
	if err != nil {
		return "", fmt.Errorf("--requirepass-file cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("--requirepass-file %s: its first line is empty, a password is needed", c.RequirepassFile)
	}
	return line, nil
}

func (c *config) idle() time.Duration { return time.Duration(c.Timeout) * time.Second }
