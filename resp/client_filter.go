package resp

import (
	"fmt"
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

// clientFilterSyntax is the part of the syntax that CLIENT KILL and CLIENT LIST share.
const clientFilterSyntax = "[USER username] [ADDR ip:port] [LADDR ip:port] [NAME connection-name] " +
	"[MAXAGE maxage] [SKIPME yes/no]"

// clientFilter selects clients; a zero field matches any client.
type clientFilter struct {
	ids    []int64 // sorted
	kind   string  // as parseClientType returns it
	addr   string
	laddr  string  // the address the client has connected to
	name   *string // "" matches clients without a name
	maxAge int64   // the minimum age of the connection in seconds
	user   *acl.Account
	skip   int64   // the id of a client that does not match; 0: none
	skipMe trilean // SKIPME

	tracking bool // only clients that have sent CLIENT TRACKING ON
}

// parseClientFilter parses the options of CLIENT KILL and CLIENT LIST. wrongID is the error for ids
// below least.
func parseClientFilter(c *command.Call, wrongID engine.Error, least int64) (f clientFilter) {
	a, users := &c.Args, c.Env.Users
	for a.More() {
		switch {
		case a.Left() < 2:
			a.Fail(engine.ErrSyntax)
		case a.Word("ID"):
			f.ids = append(f.ids, parseClientIDs(a, wrongID, least)...)
		case a.Word("TYPE"):
			f.kind = parseClientType(a)
		case a.Word("USER"):
			user := a.Next()
			if f.user = users.Find(string(user)); f.user == nil {
				a.Fail(engine.Error(fmt.Sprintf("ERR No such user '%.128s'", user)))
			}
		case a.Word("ADDR"):
			f.addr = string(a.Next())
		case a.Word("LADDR"):
			f.laddr = string(a.Next())
		case a.Word("NAME"):
			name := string(a.Next())
			f.name = &name
		case a.Word("MAXAGE"):
			if f.maxAge = a.IntegerOr(errMaxAge); f.maxAge <= 0 {
				a.Fail(errMaxAgeRange)
			}
		case a.Word("SKIPME"):
			f.skipMe = parseYesNo(a)
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	slices.Sort(f.ids)
	return f
}

// parseClientIDs parses one or more ids, up to an option.
func parseClientIDs(a *command.Args, wrong engine.Error, least int64) (ids []int64) {
	for more := true; more; more = a.More() && continuesIDs(a, wrong) {
		id := a.IntegerOr(wrong)
		if a.Err == nil && id < least {
			a.Fail(wrong)
		}
		ids = append(ids, id)
	}
	return ids
}

// continuesIDs reports whether the next word is another id: a number, or, in CLIENT LIST, any word
// that is not an option, because Redis 7.0 accepts nothing but ids there.
func continuesIDs(a *command.Args, wrong engine.Error) bool {
	_, number := grammar.ParseInt(a.List[0])
	isNext := func(option string) bool { return grammar.EqualFold(a.List[0], option) }
	return number || wrong == errClientIDList && !slices.ContainsFunc(clientOptions, isNext)
}

// clientOptions are the words that end a list of ids.
var clientOptions = []string{"ID", "TYPE", "USER", "ADDR", "LADDR", "NAME", "MAXAGE", "SKIPME"}

// trilean is yes, no, or not given.
type trilean uint8

const (
	notGiven trilean = iota
	yes
	no
)

func parseYesNo(a *command.Args) trilean {
	switch {
	case a.Word("YES"):
		return yes
	case a.Word("NO"):
		return no
	}
	a.Fail(engine.ErrSyntax)
	return notGiven
}

// parseClientType parses a kind of client. All clients of this server are normal or pubsub.
func parseClientType(a *command.Args) string {
	b := a.Next()
	for _, kind := range []string{"normal", "master", "replica", "slave", "pubsub"} {
		if strings.EqualFold(kind, string(b)) {
			return kind
		}
	}
	a.Fail(engine.Error(fmt.Sprintf("ERR Unknown client type '%.128s'", b)))
	return ""
}

// findClients returns the sessions that a filter matches, oldest first.
func (s *Server) findClients(f clientFilter) (found []*session) {
	s.mu.Lock()
	for _, ss := range s.sessions {
		if f.matches(ss) {
			found = append(found, ss)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(found, func(a, b *session) int { return int(a.Client - b.Client) })
	return found
}

// kind returns the kind of the client, as parseClientType does.
func (s *session) kind() string {
	if s.guard.Subscribed() {
		return "pubsub"
	}
	return "normal"
}

func (f *clientFilter) names(id int64) bool {
	_, found := slices.BinarySearch(f.ids, id)
	return found
}

func (f *clientFilter) matches(s *session) bool {
	switch {
	case s.Client == f.skip || s.profile.killed.Load() || s.isForNode():
	case f.tracking && !s.profile.tracking.Load():
	case f.ids != nil && !f.names(s.Client):
	case f.kind != "" && f.kind != s.kind():
	case f.addr != "" && f.addr != s.Address():
	case f.laddr != "" && f.laddr != s.localAddress():
	case f.name != nil && *f.name != textOf(&s.profile.name):
	case f.user != nil && f.user != s.profile.account.Load():
	case f.maxAge > (s.server.elapsed()-s.created)/1000:
	default:
		return true
	}
	return false
}
