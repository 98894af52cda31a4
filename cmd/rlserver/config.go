package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"rlserver/engine"
	"rlserver/resp"
)

// version is what --version and INFO tell.
const version = "1.0.0"

// config is what can be said on the command line or in the environment. The names are Redis' own where Redis has the thing.
type config struct {
	Port           int      `group:"Listen" default:"6379" placeholder:"PORT" help:"TCP port, 6379 unless given. 0: none."`
	Bind           []string `group:"Listen" sep:"," default:"127.0.0.1,-::1" placeholder:"ADDR" help:"Addresses to listen on, separated by commas or, in quotes, by spaces. * is all of this machine, and one that begins with - is left out if this machine lacks it. 127.0.0.1,-::1 unless given."`
	Unixsocket     string   `group:"Listen" placeholder:"PATH" help:"Unix socket to listen on as well."`
	Unixsocketperm string   `group:"Listen" placeholder:"MODE" help:"Permissions of the Unix socket, in octal, such as 770; the umask decides unless given."`
	TcpKeepalive   int      `group:"Listen" default:"300" placeholder:"SECONDS" help:"How long a connection is silent before the system probes whether its other end is still there, 300 unless given. 0: never."`

	Requirepass        string `group:"Access" placeholder:"PASSWORD" help:"Password that clients must give with AUTH. The list of processes shows it to others on this machine: --requirepass-file and the environment do not."`
	RequirepassFile    string `group:"Access" placeholder:"FILE" help:"Regular file of at most 64 KB whose first line is the password."`
	PreauthTimeout     int    `group:"Access" default:"10" placeholder:"SECONDS" help:"How long after it has connected a client may take to give the password, 10 unless given. 0: any time."`
	ProtectedMode      string `group:"Access" enum:"yes,no" default:"yes" placeholder:"yes|no" help:"Whether to refuse clients from other machines as long as there is no password; yes unless given."`
	EnableDebugCommand string `group:"Access" enum:"no,local,yes" default:"local" placeholder:"no|local|yes" help:"Who may use DEBUG: nobody, clients on this machine, or all; local unless given."`

	Maxclients      int    `group:"Service" default:"10000" placeholder:"N" help:"How many clients may be connected at once, 10000 unless given."`
	ReservedClients int    `group:"Service" default:"8" placeholder:"N" help:"How many places of --maxclients are kept from clients of other machines, at most half of them, and how many more the Unix socket has; 8 unless given."`
	Timeout         int    `group:"Service" default:"0" placeholder:"SECONDS" help:"How long a client may be idle before its connection is closed. 0, unless given: for ever."`
	Maxmemory       string `group:"Service" default:"0" placeholder:"SIZE" help:"How much memory the server may take before keys are evicted, such as 256mb, its own 4 MB or so included; the process stays below one and a half times that. 0, unless given: any amount."`
	ProtoMaxKeyLen  string `group:"Service" default:"64kb" placeholder:"SIZE" help:"How long the key of a limiter may be, 64kb unless given. Other keys may be as long as in Redis."`
	MaxmemoryPolicy string `group:"Service" enum:"${policies}" default:"ratelimit" placeholder:"POLICY" help:"Which keys are evicted: ${any_policy}; ratelimit unless given. That lets limiters go that are nearly as good as new, and never one that is denying."`
	Databases       int    `group:"Service" default:"16" placeholder:"N" help:"How many databases SELECT chooses among, 16 unless given."`
	Loglevel        string `group:"Service" enum:"debug,verbose,notice,warning" default:"notice" placeholder:"LEVEL" help:"How much is logged, on standard error: debug, verbose, notice or warning; notice unless given."`
	Policies        string `group:"Service" placeholder:"FILE" help:"File of named limits for RL.CHECK, in YAML: a regular file of at most 16 MB. It is read at the start, and again after SIGHUP and RL.POLICY RELOAD."`

	MaxmemoryClients        string `group:"Service" default:"20%" placeholder:"SIZE|PERCENT" help:"How much memory clients may hold together, for unread replies, half commands and transactions, beside maxmemory: beyond it the client that holds most is closed, and no key is evicted for it. Such as 64mb, or a percentage of maxmemory or, without that, of the machine's memory; 20% unless given. 0: any amount."`
	PreauthMemory           string `group:"Service" default:"4mb" placeholder:"SIZE" help:"How much of that clients may hold together that have not given the password, 4mb unless given."`
	ClientOutputBufferLimit string `group:"Service" default:"" placeholder:"'CLASS HARD SOFT SECONDS'" help:"How many bytes of replies a client may leave unread: beyond HARD, or beyond SOFT for so many SECONDS, it is closed. 'normal 64mb 16mb 60' unless given. The classes are normal, replica and pubsub; 0: no limit."`

	Appendonly               string `group:"Persistence" enum:"yes,no" default:"yes" placeholder:"yes|no" help:"Whether every change is written to a log, from which the state comes back after a restart or a crash; yes unless given."`
	Appendfsync              string `group:"Persistence" enum:"always,everysec,no" default:"everysec" placeholder:"WHEN" help:"When the log is synced to the disk: always before a call is answered, everysec, or no, which leaves it to the system; everysec unless given."`
	Dir                      string `group:"Persistence" default:"./rlserver-data" placeholder:"DIR" help:"Directory of the log and the snapshots, made if there is none; ./rlserver-data unless given."`
	OnDiskFailure            string `group:"Persistence" enum:"refuse,continue" default:"refuse" placeholder:"refuse|continue" help:"What happens when the log cannot be written: commands that change something are refused, or the server goes on in memory alone; refuse unless given."`
	AutoAofRewritePercentage int    `group:"Persistence" default:"100" placeholder:"PERCENT" help:"A snapshot replaces the log when the log has grown by this much, 100 unless given. 0: never."`
	AutoAofRewriteMinSize    string `group:"Persistence" default:"64mb" placeholder:"SIZE" help:"How large the log must be for that, 64mb unless given."`
	Save                     string `group:"Persistence" default:"" placeholder:"'SECONDS CHANGES …'" help:"Take a snapshot also when so many changes were made within so many seconds, such as '3600 1 300 100'; none unless given. With --appendonly no also at an orderly stop."`

	Version kong.VersionFlag `short:"v" env:"-" help:"Print the version and exit."`

	maxmemory      int64            // what Maxmemory says
	maxKey         int64            // what ProtoMaxKeyLen says
	rewriteMinSize int64            // what AutoAofRewriteMinSize says
	save           resp.SavePoints  // what Save says
	clientMemory   resp.MemoryShare // what MaxmemoryClients says
	preauthMemory  int64            // what PreauthMemory says
}

const description = `A rate limiter for any client of Redis: send it RL.SLIDE, RL.TOKEN, RL.MULTI or RL.FIXED.

	rlserver &
	redis-cli RL.SLIDE user:42 100 1m

Each flag can be given in the environment too, as RLSERVER_ and its name: RLSERVER_PORT=6380, RLSERVER_REQUIREPASS_FILE=/run/secrets/password.
A flag takes precedence. CONFIG SET changes what can change while the server runs, until it stops.

	rlserver docs               prints the documentation of all commands
	rlserver check DIR          reads a data directory and says whether a server would start on it
	rlserver repair DIR         cuts off what is damaged, and keeps a copy
	rlserver repair --clock DIR takes data back that is ahead of the present, and keeps a copy
	rlserver dump [--json] DIR  prints what a data directory holds, a line for each change

Each of these explains itself with --help.`

// parse reads the command line and the environment. done is true when that has told the user what there is to tell, on out.
func parse(argv []string, out io.Writer) (c config, done bool, err error) {
	parser, err := kong.New(&c, kong.Name("rlserver"), kong.Description(description), kong.Writers(out, out),
		kong.DefaultEnvars("RLSERVER"), kong.Vars{"version": "rlserver " + version, "policies": strings.Join(engine.EvictionPolicies, ","), "any_policy": strings.Join(engine.EvictionPolicies, ", ")}, kong.Exit(func(int) { done = true }),
		kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true}),
		kong.ValueFormatter(func(v *kong.Value) string { return v.Help }))
	if err != nil {
		return c, false, err
	}
	_, err = parser.Parse(argv)
	if done || err != nil {
		return c, done, err
	}
	return c, false, c.validate()
}

// validate refuses values that are of the right type but make no sense.
func (c *config) validate() error {
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
	var err error
	if c.maxmemory, err = resp.ParseMemory(c.Maxmemory); err != nil {
		return fmt.Errorf("--maxmemory must be a number of bytes such as 256mb, not %q", c.Maxmemory)
	}
	if c.maxKey, err = resp.ParseMemory(c.ProtoMaxKeyLen); err != nil || c.maxKey < 1 || c.maxKey > 512<<20 {
		return fmt.Errorf("--proto-max-key-len must be a number of bytes from 1 to 512mb, not %q", c.ProtoMaxKeyLen)
	}
	if c.clientMemory, err = resp.ParseMemoryShare(c.MaxmemoryClients); err != nil {
		return fmt.Errorf("--maxmemory-clients must be a number of bytes such as 64mb or a percentage up to 100%%, not %q", c.MaxmemoryClients)
	}
	if c.preauthMemory, err = resp.ParseMemory(c.PreauthMemory); err != nil || c.preauthMemory < 64<<10 {
		return fmt.Errorf("--preauth-memory must be a number of bytes such as 4mb, at least 64kb, not %q", c.PreauthMemory)
	}
	if resp.ParseOutputLimits(c.ClientOutputBufferLimit) != nil {
		return fmt.Errorf("--client-output-buffer-limit must be a class (normal, replica or pubsub), a hard and a soft limit and seconds, such as 'normal 64mb 16mb 60', not %q", c.ClientOutputBufferLimit)
	}
	if c.rewriteMinSize, err = resp.ParseMemory(c.AutoAofRewriteMinSize); err != nil {
		return fmt.Errorf("--auto-aof-rewrite-min-size must be a number of bytes such as 64mb, not %q", c.AutoAofRewriteMinSize)
	}
	if c.save, err = resp.ParseSavePoints(c.Save); err != nil {
		return fmt.Errorf("--save must be pairs of seconds and changes such as '3600 1 300 100', not %q", c.Save)
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

func octal(mode string) bool {
	_, err := strconv.ParseUint(mode, 8, 9)
	return err == nil
}

// maxPasswordFile is how many bytes the file of --requirepass-file may have.
const maxPasswordFile = 64 << 10

// password gives what clients must know; empty: nothing.
func (c *config) password() (string, error) {
	if c.RequirepassFile == "" {
		return c.Requirepass, nil
	}
	text, err := readRegular(c.RequirepassFile, maxPasswordFile)
	if err != nil {
		return "", fmt.Errorf("--requirepass-file cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("--requirepass-file %s: its first line is empty, a password is needed", c.RequirepassFile)
	}
	return line, nil
}

// addresses are what --bind names.
func (c *config) addresses() (list []string) {
	for _, words := range c.Bind {
		list = append(list, strings.Fields(words)...)
	}
	return list
}

// place turns an address of --bind into what package net listens on. optional is true of one that this machine may lack.
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
