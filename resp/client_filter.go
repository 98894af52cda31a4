package resp

import (
	"fmt"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/grammar"
	"slices"
	"strings"
)

// clientFilterSyntax is what CLIENT KILL and CLIENT LIST have in common.
const clientFilterSyntax = "[USER username] [ADDR ip:port] [LADDR ip:port] [NAME connection-name] [MAXAGE maxage] [SKIPME yes/no]"

// clientFilter says which clients are meant; an empty field means any.
type clientFilter struct {
	ids    []int64
	kind   string // as clientType gives it
	addr   string
	here   string  // the address on this side
	name   *string // empty for clients without one
	maxAge int64   // seconds for which a client has been connected at least
	skip   int64   // id of the one client that is not meant; 0: none is excepted
	skipMe trilean // as SKIPME says
}

// clientFilter takes the options of CLIENT KILL and CLIENT LIST. wrongID is said about ids below least.
func takeClientFilter(a *command.Args, wrongID engine.Error, least int64) (f clientFilter) {
	for a.More() {
		switch {
		case a.Left() < 2:
			a.Fail(engine.ErrSyntax)
		case a.Word("ID"):
			f.ids = append(f.ids, takeClientIDs(a, wrongID, least)...)
		case a.Word("TYPE"):
			f.kind = takeClientType(a)
		case a.Word("USER"):
			if user := a.Next(); string(user) != defaultUser {
				a.Fail(engine.Error(fmt.Sprintf("ERR No such user '%.128s'", user)))
			}
		case a.Word("ADDR"):
			f.addr = string(a.Next())
		case a.Word("LADDR"):
			f.here = string(a.Next())
		case a.Word("NAME"):
			name := string(a.Next())
			f.name = &name
		case a.Word("MAXAGE"):
			if f.maxAge = a.IntegerOr(errMaxAge); f.maxAge <= 0 {
				a.Fail(errMaxAgeRange)
			}
		case a.Word("SKIPME"):
			f.skipMe = takeYesNo(a)
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	return f
}

// clientIDs takes the ids that follow: at least one, up to a word that is an option.
func takeClientIDs(a *command.Args, wrong engine.Error, least int64) (ids []int64) {
	for more := true; more; more = a.More() && takeContinuesIDs(a, wrong) {
		id := a.IntegerOr(wrong)
		if a.Err == nil && id < least {
			a.Fail(wrong)
		}
		ids = append(ids, id)
	}
	return ids
}

// continuesIDs tells whether the next word is meant as an id: a number, and for CLIENT LIST, which Redis 7.0 lets have nothing but ids, whatever is
// no option.
func takeContinuesIDs(a *command.Args, wrong engine.Error) bool {
	_, number := grammar.ParseInt(a.List[0])
	return number || wrong == errClientIDList && !slices.ContainsFunc(clientOptions, func(word string) bool { return grammar.EqualFold(a.List[0], word) })
}

// clientOptions are the words that end a list of ids.
var clientOptions = []string{"ID", "TYPE", "USER", "ADDR", "LADDR", "NAME", "MAXAGE", "SKIPME"}

// trilean is yes, no, or nothing said.
type trilean uint8

const (
	unsaid trilean = iota
	yes
	no
)

func takeYesNo(a *command.Args) trilean {
	switch {
	case a.Word("YES"):
		return yes
	case a.Word("NO"):
		return no
	}
	a.Fail(engine.ErrSyntax)
	return unsaid
}

// clientType takes a kind of client. All that there are here are normal.
func takeClientType(a *command.Args) string {
	b := a.Next()
	for _, kind := range []string{"normal", "master", "replica", "slave", "pubsub"} {
		if strings.EqualFold(kind, string(b)) {
			return kind
		}
	}
	a.Fail(engine.Error(fmt.Sprintf("ERR Unknown client type '%.128s'", b)))
	return ""
}

// matching gives the sessions that a filter means, oldest first.
func (s *Server) matching(f clientFilter) (found []*session) {
	s.mu.Lock()
	for _, ss := range s.sessions {
		if f.means(ss) {
			found = append(found, ss)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(found, func(a, b *session) int { return int(a.Client - b.Client) })
	return found
}

func (f *clientFilter) means(s *session) bool {
	switch {
	case s.Client == f.skip || s.profile.killed.Load():
	case f.ids != nil && !slices.Contains(f.ids, s.Client):
	case f.kind != "" && f.kind != "normal":
	case f.addr != "" && f.addr != s.peer():
	case f.here != "" && f.here != s.here():
	case f.name != nil && *f.name != textOf(&s.profile.name):
	case f.maxAge > (s.server.elapsed()-s.created)/1000:
	default:
		return true
	}
	return false
}
