// Package clientfilter has the options of CLIENT LIST and CLIENT KILL, which select clients.
package clientfilter

import (
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

// Syntax is the part of the syntax that CLIENT KILL and CLIENT LIST share.
const Syntax = "[USER username] [ADDR ip:port] [LADDR ip:port] [NAME connection-name] " +
	"[MAXAGE maxage] [SKIPME yes/no]"

// Filter selects clients; a zero field matches any client.
type Filter struct {
	IDs     []int64 // sorted; nil: any
	Address string
	Skip    int64 // the id of a client that does not match; 0: none

	kind   string  // as parseType returns it
	local  string  // the address the client has connected to
	name   *string // "" matches clients without a name
	maxAge int64   // the minimum age of the connection in seconds
	user   *acl.Account
}

// Parse parses the options of CLIENT KILL and CLIENT LIST. wrongID is the error for ids below
// least, and skipMe is what SKIPME is by default.
func Parse(c *command.Call, wrongID engine.Error, least int64, skipMe bool) (f Filter) {
	a, users := &c.Args, c.Env.Users
	for a.More() {
		switch {
		case a.Left() < 2:
			a.Fail(engine.ErrSyntax)
		case a.Word("ID"):
			f.IDs = append(f.IDs, parseIDs(a, wrongID, least)...)
		case a.Word("TYPE"):
			f.kind = parseType(a)
		case a.Word("USER"):
			user := a.Next()
			if f.user = users.Find(string(user)); f.user == nil {
				a.Fail(engine.Errorf("ERR No such user '%.128s'", user))
			}
		case a.Word("ADDR"):
			f.Address = string(a.Next())
		case a.Word("LADDR"):
			f.local = string(a.Next())
		case a.Word("NAME"):
			name := string(a.Next())
			f.name = &name
		case a.Word("MAXAGE"):
			if f.maxAge = a.IntegerOr(errMaxAge); f.maxAge <= 0 {
				a.Fail(errMaxAgeRange)
			}
		case a.Word("SKIPME"):
			skipMe = a.Either("YES", "NO")
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	if skipMe {
		f.Skip = c.Client
	}
	slices.Sort(f.IDs)
	return f
}

// parseIDs parses one or more ids, up to an option.
func parseIDs(a *command.Args, wrong engine.Error, least int64) (ids []int64) {
	for more := true; more; more = a.More() && continuesIDs(a, wrong) {
		ids = append(ids, a.IntegerFrom(least, wrong))
	}
	return ids
}

// continuesIDs reports whether the next word is another id: a number, or, in CLIENT LIST, any word
// that is not an option, because Redis 7.0 accepts nothing but ids there.
func continuesIDs(a *command.Args, wrong engine.Error) bool {
	_, number := grammar.ParseInt(a.List[0])
	isNext := func(option string) bool { return grammar.EqualFold(a.List[0], option) }
	return number || wrong == ErrIDList && !slices.ContainsFunc(options, isNext)
}

// options are the words that end a list of ids.
var options = []string{"ID", "TYPE", "USER", "ADDR", "LADDR", "NAME", "MAXAGE", "SKIPME"}

// The errors of ids, and of options.
const (
	ErrIDList      = engine.Error("ERR Invalid client ID")
	ErrIDRange     = engine.Error("ERR client-id should be greater than 0")
	errMaxAge      = engine.Error("ERR maxage is not an integer or out of range")
	errMaxAgeRange = engine.Error("ERR maxage should be greater than 0")
)

// parseType parses a kind of client. All clients of this server are normal or pubsub.
func parseType(a *command.Args) string {
	b := a.Next()
	for _, kind := range []string{"normal", "master", "replica", "slave", "pubsub"} {
		if strings.EqualFold(kind, string(b)) {
			return kind
		}
	}
	a.Fail(engine.Errorf("ERR Unknown client type '%.128s'", b))
	return ""
}

func (f *Filter) names(id int64) bool {
	_, found := slices.BinarySearch(f.IDs, id)
	return found
}

// Client is a connection as a filter sees it.
type Client interface {
	ID() int64
	Address() string
	LocalAddress() string // that it has connected to
	Name() string
	Account() *acl.Account
	Age() int64 // seconds
	Subscribed() bool
}

// Matches reports whether a filter selects a client.
func (f *Filter) Matches(c Client) bool {
	switch {
	case c.ID() == f.Skip && f.Skip != 0:
	case f.IDs != nil && !f.names(c.ID()):
	case f.kind != "" && f.kind != kindOf(c):
	case f.Address != "" && f.Address != c.Address():
	case f.local != "" && f.local != c.LocalAddress():
	case f.name != nil && *f.name != c.Name():
	case f.user != nil && f.user != c.Account():
	case f.maxAge > c.Age():
	default:
		return true
	}
	return false
}

// kindOf returns the kind of a client, as parseType does.
func kindOf(c Client) string {
	if c.Subscribed() {
		return "pubsub"
	}
	return "normal"
}
