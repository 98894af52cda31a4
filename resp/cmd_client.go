package resp

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rlserver/engine"
)

func init() {
	const own = noScript | loading | stale
	register(
		&command{name: "client", arity: -2, group: "connection", since: "2.4.0", complexity: "Depends on subcommand.",
			summary: "A container for client connection commands",
			subs: []*command{
				{name: "caching", arity: 3, flags: own, group: "connection", since: "6.0.0", complexity: "O(1)",
					syntax: "<YES | NO>", summary: "Instruct the server about tracking or not keys in the next request", run: clientCaching},
				{name: "getname", arity: 2, flags: own, group: "connection", since: "2.6.9", complexity: "O(1)",
					summary: "Get the current connection name", run: clientGetName},
				{name: "getredir", arity: 2, flags: own, group: "connection", since: "6.0.0", complexity: "O(1)",
					summary: "Get tracking notifications redirection client ID if any", run: clientGetRedir},
				{name: "help", arity: 2, flags: loading | stale, group: "connection", since: "5.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "id", arity: 2, flags: own, group: "connection", since: "5.0.0", complexity: "O(1)",
					summary: "Returns the client ID for the current connection", run: clientID},
				{name: "info", arity: 2, flags: own, group: "connection", since: "6.2.0", complexity: "O(1)",
					tips:    "nondeterministic_output",
					summary: "Returns information about the current client connection.", run: clientInfo},
				{name: "kill", arity: -3, flags: admin | own, group: "connection", since: "2.4.0",
					syntax:     "<ip:port | [ID client-id [client-id ...]] [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] " + clientFilterSyntax + ">",
					complexity: "O(N) where N is the number of client connections",
					summary:    "Kill the connection of a client", run: clientKill},
				{name: "list", arity: -2, flags: admin | own, group: "connection", since: "2.4.0",
					tips:       "nondeterministic_output",
					syntax:     "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]] " + clientFilterSyntax,
					complexity: "O(N) where N is the number of client connections",
					summary:    "Get the list of client connections", run: clientList},
				{name: "no-evict", arity: 3, flags: admin | own, group: "connection", since: "7.0.0", complexity: "O(1)",
					syntax: "<ON | OFF>", summary: "Set client eviction mode for the current connection", run: clientNoEvict},
				{name: "no-touch", arity: 3, flags: own, group: "connection", since: "7.2.0", complexity: "O(1)",
					syntax: "<ON | OFF>", summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.", run: clientNoTouch},
				{name: "reply", arity: 3, flags: own, group: "connection", since: "3.2.0", complexity: "O(1)",
					syntax: "<ON | OFF | SKIP>", summary: "Instruct the server whether to reply to commands", run: clientReply},
				{name: "setinfo", arity: 4, flags: own, group: "connection", since: "7.2.0", complexity: "O(1)",
					syntax: "<LIB-NAME libname | LIB-VER libver>", summary: "Sets information specific to the client or connection.", run: clientSetInfo},
				{name: "setname", arity: 3, flags: own, group: "connection", since: "2.6.9", complexity: "O(1)",
					syntax: "connection-name", summary: "Set the current connection name", run: clientSetName},
				{name: "tracking", arity: -3, flags: own, group: "connection", since: "6.0.0",
					syntax: "<ON | OFF> [OPTIN] [NOLOOP]", complexity: "O(1). Some options may introduce additional complexity.",
					summary: "Enable or disable server assisted client side caching support", run: clientTracking},
				{name: "trackinginfo", arity: 2, flags: own, group: "connection", since: "6.2.0", complexity: "O(1)",
					summary: "Return information about server assisted client side caching for the current connection", run: clientTrackingInfo},
				{name: "unblock", arity: -3, flags: admin | own, group: "connection", since: "5.0.0",
					syntax: "client-id [TIMEOUT | ERROR]", complexity: "O(log N) where N is the number of client connections",
					summary: "Unblock a client blocked in a blocking command from a different connection", run: clientUnblock},
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

func clientID(c *call) error {
	c.reply.integer(c.client)
	return nil
}

func clientGetName(c *call) error {
	if name := sessionOf(c).profile.name.Load(); name != nil {
		c.reply.bulkString(*name)
	} else {
		c.reply.null()
	}
	return nil
}

func clientSetName(c *call) error {
	if err := sessionOf(c).setName(c.args.next()); err != nil {
		return err
	}
	c.reply.ok()
	return nil
}

// clientSetInfo handles CLIENT SETINFO LIB-NAME libname and CLIENT SETINFO LIB-VER libver.
func clientSetInfo(c *call) error {
	s := sessionOf(c)
	option, value := c.args.next(), c.args.next()
	place := &s.profile.library
	switch {
	case equalFold(option, "LIB-NAME"):
	case equalFold(option, "LIB-VER"):
		place = &s.profile.version
	default:
		return engine.Error(fmt.Sprintf("ERR Unrecognized option '%.128s'", option))
	}
	if len(value) > longestWord {
		return engine.Error(fmt.Sprintf("ERR %s must not be longer than %d bytes.", option, longestWord))
	}
	if !printable(value) {
		return engine.Error(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", option))
	}
	place.Store(nonEmpty(value))
	c.reply.ok()
	return nil
}

// clientNoEvict exempts the connection from maxmemory-clients.
func clientNoEvict(c *call) error {
	s := sessionOf(c)
	on := c.args.onOff()
	if err := c.args.end(); err != nil {
		return err
	}
	s.profile.noEvict.Store(on)
	s.choosePool()
	c.reply.ok()
	return nil
}

func clientNoTouch(c *call) error {
	on := c.args.onOff()
	if err := c.args.end(); err != nil {
		return err
	}
	c.tx.Aloof = on
	c.reply.ok()
	return nil
}

func (a *args) onOff() (on bool) {
	if a.word("ON") {
		return true
	}
	if !a.word("OFF") {
		a.fail(engine.ErrSyntax)
	}
	return false
}

// clientReply handles CLIENT REPLY <ON | OFF | SKIP>. Of these only ON has a reply itself.
func clientReply(c *call) error {
	s := sessionOf(c)
	switch {
	case c.args.word("ON"):
		s.silence = speak
		c.reply.ok()
	case c.args.word("OFF"):
		s.silence = mute
	case c.args.word("SKIP"):
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
func clientTracking(c *call) error {
	s := sessionOf(c)
	on := c.args.onOff()
	optin, declined := false, false
	for c.args.more() {
		switch {
		case c.args.word("OPTIN"):
			optin = true
		case c.args.word("NOLOOP"):
		case c.args.word("OPTOUT"), c.args.word("BCAST"):
			declined = true
		case c.args.left() > 1 && c.args.word("PREFIX"):
			c.args.next()
			declined = true
		case c.args.left() > 1 && c.args.word("REDIRECT"):
			c.args.redirection(s.server)
			declined = true
		default:
			c.args.fail(engine.ErrSyntax)
		}
	}
	if on && (declined || !optin) {
		c.args.fail(errOnlyOptIn)
	}
	if err := c.args.end(); err != nil {
		return err
	}
	s.profile.tracking.Store(on)
	c.reply.ok()
	return nil
}

// redirection takes the id of a client.
func (a *args) redirection(s *Server) {
	id := a.integer()
	if a.err == nil && len(s.matching(clientFilter{ids: []int64{id}})) == 0 {
		a.fail(errNoRedirect)
	}
}

func clientCaching(c *call) error {
	switch {
	case !sessionOf(c).profile.tracking.Load():
		return errNotTracking
	case c.args.word("YES"):
		return errNoCaching
	case c.args.word("NO"):
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

func clientGetRedir(c *call) error {
	c.reply.integer(sessionOf(c).redirection())
	return nil
}

func clientTrackingInfo(c *call) error {
	s := sessionOf(c)
	c.reply.mapping(3)
	c.reply.bulkString("flags")
	if s.profile.tracking.Load() {
		c.reply.set(2)
		c.reply.bulkString("on")
		c.reply.bulkString("optin")
	} else {
		c.reply.set(1)
		c.reply.bulkString("off")
	}
	c.reply.bulkString("redirect")
	c.reply.integer(s.redirection())
	c.reply.bulkString("prefixes")
	c.reply.array(0)
	return nil
}

func clientInfo(c *call) error {
	c.reply.verbatim(sessionOf(c).describe() + "\n")
	return nil
}

// clientList handles CLIENT LIST with options, all of which must be true of a client that is listed.
func clientList(c *call) error {
	wanted := c.args.clientFilter(errClientIDList, math.MinInt64)
	if wanted.skipMe == yes {
		wanted.skip = c.client
	}
	if err := c.args.end(); err != nil {
		return err
	}

	var text strings.Builder
	for _, s := range sessionOf(c).server.matching(wanted) {
		text.WriteString(s.describe())
		text.WriteByte('\n')
	}

	c.reply.verbatim(text.String())
	return nil
}

// clientKill handles CLIENT KILL ip:port, and CLIENT KILL with options, all of which must be true of a client that is killed.
func clientKill(c *call) error {
	if c.args.left() == 1 {
		wanted := clientFilter{addr: string(c.args.next())}
		if c.kill(wanted) == 0 {
			return errNoSuchClient
		}
		c.reply.ok()
		return nil
	}
	wanted := c.args.clientFilter(errClientIDRange, 1)
	if wanted.skipMe != no {
		wanted.skip = c.client
	}
	if err := c.args.end(); err != nil {
		return err
	}

	killed := c.kill(wanted)

	c.reply.count(killed)
	return nil
}

// kill ends the connections of the clients that are wanted and tells how many they were. The caller's own ends after its reply.
func (c *call) kill(wanted clientFilter) (killed int) {
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
func clientUnblock(c *call) error {
	text, how := c.args.next(), givenUp
	if c.args.more() && !c.args.word("TIMEOUT") {
		if how = cancelled; c.args.left() > 1 || !c.args.word("ERROR") {
			c.args.fail(errUnblockReason)
		}
	}
	id, ok := parseInt(text)
	if !ok {
		c.args.fail(engine.ErrNotInteger)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	unblocked := false
	for _, s := range sessionOf(c).server.matching(clientFilter{ids: []int64{id}}) {
		w := s.waiter.Load()
		unblocked = w != nil && w.unblock(how)
	}

	c.reply.flag(unblocked)
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
func (a *args) clientFilter(wrongID engine.Error, least int64) (f clientFilter) {
	for a.more() {
		switch {
		case a.left() < 2:
			a.fail(engine.ErrSyntax)
		case a.word("ID"):
			f.ids = append(f.ids, a.clientIDs(wrongID, least)...)
		case a.word("TYPE"):
			f.kind = a.clientType()
		case a.word("USER"):
			if user := a.next(); string(user) != defaultUser {
				a.fail(engine.Error(fmt.Sprintf("ERR No such user '%.128s'", user)))
			}
		case a.word("ADDR"):
			f.addr = string(a.next())
		case a.word("LADDR"):
			f.here = string(a.next())
		case a.word("NAME"):
			name := string(a.next())
			f.name = &name
		case a.word("MAXAGE"):
			if f.maxAge = a.integerOr(errMaxAge); f.maxAge <= 0 {
				a.fail(errMaxAgeRange)
			}
		case a.word("SKIPME"):
			f.skipMe = a.yesNo()
		default:
			a.fail(engine.ErrSyntax)
		}
	}
	return f
}

// clientIDs takes the ids that follow: at least one, up to a word that is an option.
func (a *args) clientIDs(wrong engine.Error, least int64) (ids []int64) {
	for more := true; more; more = a.more() && a.continuesIDs(wrong) {
		id := a.integerOr(wrong)
		if a.err == nil && id < least {
			a.fail(wrong)
		}
		ids = append(ids, id)
	}
	return ids
}

// continuesIDs tells whether the next word is meant as an id: a number, and for CLIENT LIST, which Redis 7.0 lets have nothing but ids, whatever is
// no option.
func (a *args) continuesIDs(wrong engine.Error) bool {
	_, number := parseInt(a.list[0])
	return number || wrong == errClientIDList && !slices.ContainsFunc(clientOptions, func(word string) bool { return equalFold(a.list[0], word) })
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

func (a *args) yesNo() trilean {
	switch {
	case a.word("YES"):
		return yes
	case a.word("NO"):
		return no
	}
	a.fail(engine.ErrSyntax)
	return unsaid
}

// positive takes an integer above 0.
func (a *args) positive(err engine.Error) int64 {
	n := a.integerOr(err)
	if a.err == nil && n <= 0 {
		a.fail(err)
	}
	return n
}

// clientType takes a kind of client. All that there are here are normal.
func (a *args) clientType() string {
	b := a.next()
	for _, kind := range []string{"normal", "master", "replica", "slave", "pubsub"} {
		if strings.EqualFold(kind, string(b)) {
			return kind
		}
	}
	a.fail(engine.Error(fmt.Sprintf("ERR Unknown client type '%.128s'", b)))
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
	slices.SortFunc(found, func(a, b *session) int { return int(a.client - b.client) })
	return found
}

func (f *clientFilter) means(s *session) bool {
	switch {
	case s.client == f.skip || s.profile.killed.Load():
	case f.ids != nil && !slices.Contains(f.ids, s.client):
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
