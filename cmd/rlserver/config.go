package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"rlserver/engine"
	"rlserver/process"
	"rlserver/resp/config"
	"rlserver/smallfile"
)

// version is what --version and INFO report.
const version = "1.0.0"

// flags holds the flags of the command line and the environment. They have the names that Redis
// uses for the same thing. flagHelp has their help texts.
type flags struct {
	Port           int      `group:"Listen" default:"6379" placeholder:"PORT"`
	Bind           []string `group:"Listen" sep:"," default:"127.0.0.1,-::1" placeholder:"ADDR"`
	Unixsocket     string   `group:"Listen" placeholder:"PATH"`
	Unixsocketperm string   `group:"Listen" placeholder:"MODE"`
	TcpKeepalive   int      `group:"Listen" default:"300" placeholder:"SECONDS"`

	Requirepass        string `group:"Access" placeholder:"PASSWORD"`
	RequirepassFile    string `group:"Access" placeholder:"FILE"`
	PreauthTimeout     int    `group:"Access" default:"10" placeholder:"SECONDS"`
	ProtectedMode      string `group:"Access" enum:"yes,no" default:"yes" placeholder:"yes|no"`
	EnableDebugCommand string `group:"Access" enum:"no,local,yes" default:"local" placeholder:"no|local|yes"`

	Maxclients      int    `group:"Service" default:"10000" placeholder:"N"`
	ReservedClients int    `group:"Service" default:"8" placeholder:"N"`
	Timeout         int    `group:"Service" default:"0" placeholder:"SECONDS"`
	Maxmemory       string `group:"Service" default:"0" placeholder:"SIZE"`
	ProtoMaxKeyLen  string `group:"Service" default:"64kb" placeholder:"SIZE"`
	MaxmemoryPolicy string `group:"Service" enum:"${policies}" default:"ratelimit" placeholder:"POLICY"`
	Databases       int    `group:"Service" default:"16" placeholder:"N"`
	Loglevel        string `group:"Service" enum:"debug,verbose,notice,warning" default:"notice" placeholder:"LEVEL"`
	Policies        string `group:"Service" placeholder:"FILE"`

	MaxmemoryClients        string `group:"Service" default:"20%" placeholder:"SIZE|PERCENT"`
	PreauthMemory           string `group:"Service" default:"4mb" placeholder:"SIZE"`
	ClientOutputBufferLimit string `group:"Service" default:"" placeholder:"'CLASS HARD SOFT SECONDS'"`

	Appendonly    string `group:"Persistence" enum:"yes,no" default:"yes" placeholder:"yes|no"`
	Appendfsync   string `group:"Persistence" enum:"always,everysec,no" default:"everysec" placeholder:"WHEN"`
	Dir           string `group:"Persistence" default:"./rlserver-data" placeholder:"DIR"`
	OnDiskFailure string `group:"Persistence" enum:"refuse,continue" default:"refuse" placeholder:"refuse|continue"`

	AutoAofRewritePercentage int    `group:"Persistence" default:"100" placeholder:"PERCENT"`
	AutoAofRewriteMinSize    string `group:"Persistence" default:"64mb" placeholder:"SIZE"`
	Save                     string `group:"Persistence" default:"" placeholder:"'SECONDS CHANGES …'"`

	Version kong.VersionFlag `short:"v" env:"-"`

	maxmemory      int64              // from Maxmemory
	maxKey         int64              // from ProtoMaxKeyLen
	rewriteMinSize int64              // from AutoAofRewriteMinSize
	save           config.SavePoints  // from Save
	clientMemory   config.MemoryShare // from MaxmemoryClients
	preauthMemory  int64              // from PreauthMemory
}

// parse reads the command line and the environment. done reports that everything has been printed,
// on out, as --help does.
func parse(argv []string, out io.Writer) (c flags, done bool, err error) {
	parser, err := kong.New(&c, kong.Name("rlserver"), kong.Description(description), kong.Writers(out, out),
		kong.DefaultEnvars("RLSERVER"), kong.Exit(func(int) { done = true }),
		kong.Vars{"version": "rlserver " + version, "policies": strings.Join(engine.EvictionPolicies, ",")},
		kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true}),
		kong.ValueFormatter(func(v *kong.Value) string { return cmp.Or(helpOf(v.Name), v.Help) }))
	if err != nil {
		return c, false, err
	}
	_, err = parser.Parse(argv)
	if done || err != nil {
		return c, done, err
	}
	return c, false, c.validate()
}

// validate checks the values that kong has read, and parses those that have a form of their own.
func (c *flags) validate() error {
	if err := c.checkRanges(); err != nil {
		return err
	}
	if err := c.parseValues(); err != nil {
		return err
	}
	switch {
	case c.Dir == "":
		return fmt.Errorf("--dir names no directory")
	case c.Port != 0 && len(c.addresses()) == 0:
		return fmt.Errorf("--bind names no address")
	case c.Port == 0 && c.Unixsocket == "":
		return fmt.Errorf("--port 0 leaves nothing to listen on: give --unixsocket")
	case c.Unixsocketperm != "" && !octal(c.Unixsocketperm):
		return fmt.Errorf("--unixsocketperm must be octal permissions such as 770, not %q", c.Unixsocketperm)
	case c.Requirepass != "" && c.RequirepassFile != "":
		return fmt.Errorf("--requirepass and --requirepass-file exclude each other")
	}
	return nil
}

func (c *flags) checkRanges() error {
	for _, limit := range []struct {
		flag        string
		value       int
		least, most int
	}{
		{"port", c.Port, 0, 65535},
		{"tcp-keepalive", c.TcpKeepalive, 0, 1<<31 - 1},
		{"maxclients", c.Maxclients, 1, 1<<32 - 1},
		{"reserved-clients", c.ReservedClients, 0, 1<<31 - 1},
		{"preauth-timeout", c.PreauthTimeout, 0, 1<<31 - 1},
		{"timeout", c.Timeout, 0, 1<<31 - 1},
		{"databases", c.Databases, 1, 1 << 16},
		{"auto-aof-rewrite-percentage", c.AutoAofRewritePercentage, 0, 1<<31 - 1},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			return fmt.Errorf("--%s must be from %d to %d, not %d", limit.flag, limit.least, limit.most, limit.value)
		}
	}
	return nil
}

func (c *flags) parseValues() (err error) {
	if c.maxmemory, err = config.ParseMemory(c.Maxmemory); err != nil {
		return fmt.Errorf("--maxmemory must be a number of bytes such as 256mb, not %q", c.Maxmemory)
	}
	if c.maxKey, err = config.ParseMemory(c.ProtoMaxKeyLen); err != nil || c.maxKey < 1 || c.maxKey > 512<<20 {
		return fmt.Errorf("--proto-max-key-len must be a number of bytes from 1 to 512mb, not %q", c.ProtoMaxKeyLen)
	}
	if c.clientMemory, err = config.ParseMemoryShare(c.MaxmemoryClients); err != nil {
		return fmt.Errorf("--maxmemory-clients must be a number of bytes such as 64mb or a percentage up to 100%%, "+
			"not %q", c.MaxmemoryClients)
	}
	if c.preauthMemory, err = config.ParseMemory(c.PreauthMemory); err != nil || c.preauthMemory < 64<<10 {
		return fmt.Errorf("--preauth-memory must be a number of bytes such as 4mb, at least 64kb, "+
			"not %q", c.PreauthMemory)
	}
	if config.ParseOutputLimits(c.ClientOutputBufferLimit) != nil {
		return fmt.Errorf("--client-output-buffer-limit must be a class (normal, replica or pubsub), "+
			"a hard and a soft limit and seconds, such as 'normal 64mb 16mb 60', not %q", c.ClientOutputBufferLimit)
	}
	if c.rewriteMinSize, err = config.ParseMemory(c.AutoAofRewriteMinSize); err != nil {
		return fmt.Errorf("--auto-aof-rewrite-min-size must be a number of bytes such as 64mb, "+
			"not %q", c.AutoAofRewriteMinSize)
	}
	if c.save, err = config.ParseSavePoints(c.Save); err != nil {
		return fmt.Errorf("--save must be pairs of seconds and changes such as '3600 1 300 100', not %q", c.Save)
	}
	return nil
}

// defaults returns the settings with which the server starts.
func (c *flags) defaults(password string) config.Defaults {
	possible := c.mostClients()
	return config.Defaults{
		Port: c.Port, Bind: c.addresses(), UnixSocket: c.Unixsocket, UnixSocketPerm: c.Unixsocketperm,
		Databases: c.Databases,
		Password:  password, ProtectedMode: c.ProtectedMode == "yes", DebugCommand: c.EnableDebugCommand,
		PreauthTimeout: seconds(c.PreauthTimeout),
		MaxClients:     min(c.Maxclients, possible), MostClients: possible, Reserved: c.ReservedClients,
		Timeout: seconds(c.Timeout), Keepalive: seconds(c.TcpKeepalive), LogLevel: c.Loglevel,
		MaxKey: c.maxKey, MaxMemory: c.maxmemory, MemoryPolicy: c.MaxmemoryPolicy,
		ClientMemory: c.clientMemory, PreauthMemory: c.preauthMemory, OutputLimits: c.ClientOutputBufferLimit,
		AppendOnly: c.appendOnly(), Dir: c.Dir, AppendFsync: c.Appendfsync, OnDiskFailure: c.OnDiskFailure,
		RewritePercentage: c.AutoAofRewritePercentage, RewriteMinSize: c.rewriteMinSize, Save: c.save,
	}
}

// mostClients returns how many clients the limit on open files allows, without the additional ones
// of the Unix socket.
func (c *flags) mostClients() int {
	most := process.MaxConnections()
	if c.Unixsocket != "" {
		most = max(1, most-c.ReservedClients)
	}
	return most
}

func (c *flags) appendOnly() bool { return c.Appendonly == "yes" }

func octal(mode string) bool {
	_, err := strconv.ParseUint(mode, 8, 9)
	return err == nil
}

// maxPasswordFile is how large the file of --requirepass-file may be, in bytes.
const maxPasswordFile = 64 << 10

// password returns the password that clients must give; empty: none is needed.
func (c *flags) password() (string, error) {
	if c.RequirepassFile == "" {
		return c.Requirepass, nil
	}
	text, err := smallfile.Read(c.RequirepassFile, maxPasswordFile)
	if err != nil {
		return "", fmt.Errorf("--requirepass-file cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("--requirepass-file %s: its first line is empty, a password is needed", c.RequirepassFile)
	}
	return line, nil
}

// addresses returns the addresses of --bind.
func (c *flags) addresses() (list []string) {
	for _, words := range c.Bind {
		list = append(list, strings.Fields(words)...)
	}
	return list
}

// place returns the arguments for net.Listen for an address of --bind. optional reports whether
// this machine may lack it.
func place(address string, port int) (network, hostPort string, optional bool) {
	host, optional := strings.CutPrefix(address, "-")
	network = "tcp"
	switch host {
	case "*":
		host = ""
	case "::*":
		host = "::"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		network = "tcp4"
		if ip.Is6() {
			network = "tcp6"
		}
	}
	return network, net.JoinHostPort(host, strconv.Itoa(port)), optional
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
