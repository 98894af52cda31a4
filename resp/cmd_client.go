package resp

import (
	"fmt"
	"math"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/grammar"
	"rlserver/resp/waitqueue"
	"slices"
	"strings"
)

func init() {
	const own = command.NoScript | command.Loading | command.Stale
	command.Register(
		&command.Command{Name: "client", Arity: -2, Group: "connection", Since: "2.4.0", Complexity: "Depends on subcommand.",
			Summary: "A container for client connection commands",
			Subs: []*command.Command{
				{Name: "caching", Arity: 3, Flags: own, Group: "connection", Since: "6.0.0", Complexity: "O(1)",
					Syntax: "<YES | NO>", Summary: "Instruct the server about tracking or not keys in the next request", Run: clientCaching},
				{Name: "getname", Arity: 2, Flags: own, Group: "connection", Since: "2.6.9", Complexity: "O(1)",
					Summary: "Get the current connection name", Run: clientGetName},
				{Name: "getredir", Arity: 2, Flags: own, Group: "connection", Since: "6.0.0", Complexity: "O(1)",
					Summary: "Get tracking notifications redirection client ID if any", Run: clientGetRedir},
				{Name: "help", Arity: 2, Flags: command.Loading | command.Stale, Group: "connection", Since: "5.0.0", Complexity: "O(1)",
					Summary: "Show helpful text about the different subcommands", Run: command.Help},
				{Name: "id", Arity: 2, Flags: own, Group: "connection", Since: "5.0.0", Complexity: "O(1)",
					Summary: "Returns the client ID for the current connection", Run: clientID},
				{Name: "info", Arity: 2, Flags: own, Group: "connection", Since: "6.2.0", Complexity: "O(1)",
					Tips:    "nondeterministic_output",
					Summary: "Returns information about the current client connection.", Run: clientInfo},
				{Name: "kill", Arity: -3, Flags: command.Admin | own, Group: "connection", Since: "2.4.0",
					Syntax:     "<ip:port | [ID client-id [client-id ...]] [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] " + clientFilterSyntax + ">",
					Complexity: "O(N) where N is the number of client connections",
					Summary:    "Kill the connection of a client", Run: clientKill},
				{Name: "list", Arity: -2, Flags: command.Admin | own, Group: "connection", Since: "2.4.0",
					Tips:       "nondeterministic_output",
					Syntax:     "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]] " + clientFilterSyntax,
					Complexity: "O(N) where N is the number of client connections",
					Summary:    "Get the list of client connections", Run: clientList},
				{Name: "no-evict", Arity: 3, Flags: command.Admin | own, Group: "connection", Since: "7.0.0", Complexity: "O(1)",
					Syntax: "<ON | OFF>", Summary: "Set client eviction mode for the current connection", Run: clientNoEvict},
				{Name: "no-touch", Arity: 3, Flags: own, Group: "connection", Since: "7.2.0", Complexity: "O(1)",
					Syntax: "<ON | OFF>", Summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.", Run: clientNoTouch},
				{Name: "reply", Arity: 3, Flags: own, Group: "connection", Since: "3.2.0", Complexity: "O(1)",
					Syntax: "<ON | OFF | SKIP>", Summary: "Instruct the server whether to reply to commands", Run: clientReply},
				{Name: "setinfo", Arity: 4, Flags: own, Group: "connection", Since: "7.2.0", Complexity: "O(1)",
					Syntax: "<LIB-NAME libname | LIB-VER libver>", Summary: "Sets information specific to the client or connection.", Run: clientSetInfo},
				{Name: "setname", Arity: 3, Flags: own, Group: "connection", Since: "2.6.9", Complexity: "O(1)",
					Syntax: "connection-name", Summary: "Set the current connection name", Run: clientSetName},
				{Name: "tracking", Arity: -3, Flags: own, Group: "connection", Since: "6.0.0",
					Syntax: "<ON | OFF> [OPTIN] [NOLOOP]", Complexity: "O(1). Some options may introduce additional complexity.",
					Summary: "Enable or disable server assisted client side caching support", Run: clientTracking},
				{Name: "trackinginfo", Arity: 2, Flags: own, Group: "connection", Since: "6.2.0", Complexity: "O(1)",
					Summary: "Return information about server assisted client side caching for the current connection", Run: clientTrackingInfo},
				{Name: "unblock", Arity: -3, Flags: command.Admin | own, Group: "connection", Since: "5.0.0",
					Syntax: "client-id [TIMEOUT | ERROR]", Complexity: "O(log N) where N is the number of client connections",
					Summary: "Unblock a client blocked in a blocking command from a different connection", Run: clientUnblock},
			}},
	)
}

// clientFilterSyntax is what CLIENT KILL and CLIENT LIST have in common.
const clientFilterSyntax = "[USER username] [ADDR ip:port] [LADDR ip:port] [NAME connection-name] [MAXAGE maxage] [SKIPME yes/no]"

const (
	errNoSuchClient  = engine.Error("ERR No such client")
	errClientIDList  = engine.Error("ERR Invalid client ID")
	errClientIDRange = engine.Error("ERR client-id should be greater than 0")
	errMaxAge        = engine.Error("ERR maxage is not an integer or out of range")
	errMaxAgeRange   = engine.Error("ERR maxage should be greater than 0")
	errNotTracking   = engine.Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	errNotOptOut     = engine.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	errNoCaching     = engine.Error("ERR this server does not track keys: replies must not be cached by the client")
	errNoRedirect    = engine.Error("ERR The client ID you want redirect to does not exist")
	errUnblockReason = engine.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	errOnlyOptIn     = engine.Error("ERR this server does not track keys: CLIENT TRACKING ON is taken with OPTIN alone, and CLIENT CACHING YES refused")
)

func clientID(c *command.Call) error {
	c.Reply.Integer(c.Client)
	return nil
}

func clientGetName(c *command.Call) error {
	if name := sessionOf(c).profile.name.Load(); name != nil {
		c.Reply.BulkString(*name)
	} else {
		c.Reply.Null()
	}
	return nil
}

func clientSetName(c *command.Call) error {
	if err := sessionOf(c).setName(c.Args.Next()); err != nil {
		return err
	}
	c.Reply.Ok()
	return nil
}

// clientSetInfo handles CLIENT SETINFO LIB-NAME libname and CLIENT SETINFO LIB-VER libver.
func clientSetInfo(c *command.Call) error {
	s := sessionOf(c)
	option, value := c.Args.Next(), c.Args.Next()
	place := &s.profile.library
	switch {
	case grammar.EqualFold(option, "LIB-NAME"):
	case grammar.EqualFold(option, "LIB-VER"):
		place = &s.profile.version
	default:
		return engine.Error(fmt.Sprintf("ERR Unrecognized option '%.128s'", option))
	}
	if len(value) > command.LongestWord {
		return engine.Error(fmt.Sprintf("ERR %s must not be longer than %d bytes.", option, command.LongestWord))
	}
	if !printable(value) {
		return engine.Error(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", option))
	}
	place.Store(nonEmpty(value))
	c.Reply.Ok()
	return nil
}

// clientNoEvict exempts the connection from maxmemory-clients.
func clientNoEvict(c *command.Call) error {
	s := sessionOf(c)
	on := takeOnOff(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}
	s.profile.noEvict.Store(on)
	s.choosePool()
	c.Reply.Ok()
	return nil
}

func clientNoTouch(c *command.Call) error {
	on := takeOnOff(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}
	c.Tx.Aloof = on
	c.Reply.Ok()
	return nil
}

func takeOnOff(a *command.Args) (on bool) {
	if a.Word("ON") {
		return true
	}
	if !a.Word("OFF") {
		a.Fail(engine.ErrSyntax)
	}
	return false
}

// clientReply handles CLIENT REPLY <ON | OFF | SKIP>. Of these only ON has a reply itself.
func clientReply(c *command.Call) error {
	s := sessionOf(c)
	switch {
	case c.Args.Word("ON"):
		s.silence = speak
		c.Reply.Ok()
	case c.Args.Word("OFF"):
		s.silence = mute
	case c.Args.Word("SKIP"):
		if s.silence != mute {
			s.silence = skipNext
		}
	default:
		return engine.ErrSyntax
	}
	return nil
}

// clientTracking handles CLIENT TRACKING <ON | OFF> [OPTIN] [NOLOOP]. Some clients ask for OPTIN on every connection they make. Then
// only keys that are read after CLIENT CACHING YES are tracked, which is refused: so none is, and no promise is broken.
func clientTracking(c *command.Call) error {
	s := sessionOf(c)
	on := takeOnOff(&c.Args)
	optin, declined := false, false
	for c.Args.More() {
		switch {
		case c.Args.Word("OPTIN"):
			optin = true
		case c.Args.Word("NOLOOP"):
		case c.Args.Word("OPTOUT"), c.Args.Word("BCAST"):
			declined = true
		case c.Args.Left() > 1 && c.Args.Word("PREFIX"):
			c.Args.Next()
			declined = true
		case c.Args.Left() > 1 && c.Args.Word("REDIRECT"):
			takeRedirection(&c.Args, s.server)
			declined = true
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	if on && (declined || !optin) {
		c.Args.Fail(errOnlyOptIn)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	s.profile.tracking.Store(on)
	c.Reply.Ok()
	return nil
}

// redirection takes the id of a client.
func takeRedirection(a *command.Args, s *Server) {
	id := a.Integer()
	if a.Err == nil && len(s.matching(clientFilter{ids: []int64{id}})) == 0 {
		a.Fail(errNoRedirect)
	}
}

func clientCaching(c *command.Call) error {
	switch {
	case !sessionOf(c).profile.tracking.Load():
		return errNotTracking
	case c.Args.Word("YES"):
		return errNoCaching
	case c.Args.Word("NO"):
		return errNotOptOut
	}
	return engine.ErrSyntax
}

// redirection is what CLIENT GETREDIR tells: -1 without tracking, 0 without redirection.
func (s *session) redirection() int64 {
	if s.profile.tracking.Load() {
		return 0
	}
	return -1
}

func clientGetRedir(c *command.Call) error {
	c.Reply.Integer(sessionOf(c).redirection())
	return nil
}

func clientTrackingInfo(c *command.Call) error {
	s := sessionOf(c)
	c.Reply.Mapping(3)
	c.Reply.BulkString("flags")
	if s.profile.tracking.Load() {
		c.Reply.Set(2)
		c.Reply.BulkString("on")
		c.Reply.BulkString("optin")
	} else {
		c.Reply.Set(1)
		c.Reply.BulkString("off")
	}
	c.Reply.BulkString("redirect")
	c.Reply.Integer(s.redirection())
	c.Reply.BulkString("prefixes")
	c.Reply.Array(0)
	return nil
}

func clientInfo(c *command.Call) error {
	c.Reply.Verbatim(sessionOf(c).describe() + "\n")
	return nil
}

// clientList handles CLIENT LIST with options, all of which must be true of a client that is listed.
func clientList(c *command.Call) error {
	wanted := takeClientFilter(&c.Args, errClientIDList, math.MinInt64)
	if wanted.skipMe == yes {
		wanted.skip = c.Client
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	var text strings.Builder
	for _, s := range sessionOf(c).server.matching(wanted) {
		text.WriteString(s.describe())
		text.WriteByte('\n')
	}

	c.Reply.Verbatim(text.String())
	return nil
}

// clientKill handles CLIENT KILL ip:port, and CLIENT KILL with options, all of which must be true of a client that is killed.
func clientKill(c *command.Call) error {
	if c.Args.Left() == 1 {
		wanted := clientFilter{addr: string(c.Args.Next())}
		if kill(c, wanted) == 0 {
			return errNoSuchClient
		}
		c.Reply.Ok()
		return nil
	}
	wanted := takeClientFilter(&c.Args, errClientIDRange, 1)
	if wanted.skipMe != no {
		wanted.skip = c.Client
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	killed := kill(c, wanted)

	c.Reply.Count(killed)
	return nil
}

// kill ends the connections of the clients that are wanted and tells how many they were. The caller's own ends after its reply.
func kill(c *command.Call, wanted clientFilter) (killed int) {
	for _, s := range sessionOf(c).server.matching(wanted) {
		killed++
		s.profile.killed.Store(true)
		if s == sessionOf(c) {
			sessionOf(c).closing = true
		} else {
			s.guard.Conn.Close() // wakes its Read and fails its Write, wherever it is
		}
	}
	return killed
}

// clientUnblock handles CLIENT UNBLOCK client-id [TIMEOUT | ERROR].
func clientUnblock(c *command.Call) error {
	text, how := c.Args.Next(), waitqueue.GivenUp
	if c.Args.More() && !c.Args.Word("TIMEOUT") {
		if how = waitqueue.Cancelled; c.Args.Left() > 1 || !c.Args.Word("ERROR") {
			c.Args.Fail(errUnblockReason)
		}
	}
	id, ok := grammar.ParseInt(text)
	if !ok {
		c.Args.Fail(engine.ErrNotInteger)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	unblocked := false
	for _, s := range sessionOf(c).server.matching(clientFilter{ids: []int64{id}}) {
		w := s.waiter.Load()
		unblocked = w != nil && w.Unblock(how)
	}

	c.Reply.Flag(unblocked)
	return nil
}

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
