package tracking

import (
	"strings"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/resp/pubsub"
)

// Kind is what a client is to this node.
type Kind uint8

const (
	Ordinary Kind = iota // it reads what this node has
	Proxied              // other nodes run its calls as well
	Node                 // it is another node, which has proxied clients
)

// Mode is how a client tracks keys.
type Mode struct {
	Broadcast bool // of all keys with one of its prefixes, whether it has read them or not
	NoLoop    bool // but for changes of its own
	OptIn     bool // keys of calls that follow CLIENT CACHING YES
	OptOut    bool // keys of all calls but those that follow CLIENT CACHING NO
	Redirect  int64
	Prefixes  []string
}

// Client is a connection that has tracked keys. The connection's goroutine alone uses it, but for
// the methods that say something else.
type Client struct {
	Caching bool // CLIENT CACHING was given for the next call

	table  *Table
	kind   Kind
	to     *pubsub.Client       // nil: the connection has ended; guarded by Table.mu
	mode   atomic.Pointer[Mode] // nil: it does not track now
	broken atomic.Bool          // the client that it redirects to is gone
}

// NewClient returns a client that does not track yet.
func (t *Table) NewClient(to *pubsub.Client, kind Kind) *Client {
	return &Client{table: t, to: to, kind: kind}
}

// Mode returns how the client tracks; nil: it does not. Any goroutine may call it.
func (c *Client) Mode() *Mode {
	if c == nil {
		return nil
	}
	return c.mode.Load()
}

// Letters returns the letters of CLIENT LIST: t tracking, R to a client that is gone, B of
// prefixes. Any goroutine may call it.
func (c *Client) Letters() (letters string) {
	m := c.Mode()
	if m == nil {
		return ""
	}
	letters = "t"
	if c.broken.Load() {
		letters += "R"
	}
	if m.Broadcast {
		letters += "B"
	}
	return letters
}

// Redirection is the reply of CLIENT GETREDIR: -1 without tracking, 0 without redirection. Any
// goroutine may call it.
func (c *Client) Redirection() int64 {
	if m := c.Mode(); m != nil {
		return m.Redirect
	}
	return -1
}

// Flags returns the flags of CLIENT TRACKINGINFO.
func (c *Client) Flags() []string {
	m := c.Mode()
	if m == nil {
		return []string{"off"}
	}
	flags := []string{"on"}
	add := func(on bool, name string) {
		if on {
			flags = append(flags, name)
		}
	}
	add(m.Broadcast, "bcast")
	add(m.OptIn, "optin")
	add(m.OptIn && c.Caching, "caching-yes")
	add(m.OptOut, "optout")
	add(m.OptOut && c.Caching, "caching-no")
	add(m.NoLoop, "noloop")
	add(c.broken.Load(), "broken_redirect")
	return flags
}

// Remembers reports whether the keys of the current call are tracked. It is cheap for nil, a client
// that has never tracked keys.
func (c *Client) Remembers() bool { return c != nil && c.remembers() }

func (c *Client) remembers() bool {
	m := c.mode.Load()
	return m != nil && !m.Broadcast && !(m.OptIn && !c.Caching) && !(m.OptOut && c.Caching)
}

const (
	errPrefixAlone = engine.Error("ERR PREFIX option requires BCAST mode to be enabled")
	errSwitchBcast = engine.Error("ERR You can't switch BCAST mode on/off before disabling tracking for this client, " +
		"and then re-enabling it with a different mode.")
	errBcastOpt  = engine.Error("ERR OPTIN and OPTOUT are not compatible with BCAST")
	errBothOpt   = engine.Error("ERR You can't specify both OPTIN mode and OPTOUT mode")
	errSwitchOpt = engine.Error("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, " +
		"and then re-enabling it with a different mode.")
)

// Set makes the client track, or changes how. It returns the error of the call, which changes
// nothing then. The prefixes are added to those that it has.
func (c *Client) Set(m Mode) error {
	old := c.mode.Load()
	switch {
	case !m.Broadcast && len(m.Prefixes) > 0:
		return errPrefixAlone
	case old != nil && old.Broadcast != m.Broadcast:
		return errSwitchBcast
	case m.Broadcast && (m.OptIn || m.OptOut):
		return errBcastOpt
	case m.OptIn && m.OptOut:
		return errBothOpt
	case old != nil && (m.OptIn && old.OptOut || m.OptOut && old.OptIn):
		return errSwitchOpt
	}
	var before []string
	if m.Broadcast {
		if old != nil {
			before = old.Prefixes
		}
		if len(m.Prefixes) == 0 && len(before) == 0 {
			m.Prefixes = []string{""}
		}
		if most := c.table.limits.PrefixesPerClient.Load(); int64(len(before)+len(m.Prefixes)) > most {
			return engine.Errorf("ERR a client may have %d prefixes, see tracking-max-prefixes-per-client", most)
		}
		if err := collide(before, m.Prefixes); err != nil {
			return err
		}
	}
	added := m.Prefixes
	m.Prefixes = append(before[:len(before):len(before)], added...)
	return c.table.set(c, &m, added)
}

// collide returns the error of the call if prefixes overlap.
func collide(before, added []string) error {
	overlap := func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
	for i, p := range added {
		for _, q := range before {
			if overlap(p, q) {
				return engine.Errorf("ERR Prefix '%s' overlaps with an existing prefix '%s'. "+
					"Prefixes for a single client must not overlap.", p, q)
			}
		}
		for _, q := range added[i+1:] {
			if overlap(p, q) {
				return engine.Errorf("ERR Prefix '%s' overlaps with another provided prefix '%s'. "+
					"Prefixes for a single client must not overlap.", p, q)
			}
		}
	}
	return nil
}

// Off ends the tracking.
func (c *Client) Off() {
	if c != nil {
		c.Caching = false
		c.table.end(c, false)
	}
}

// Close ends the tracking for good: the connection has ended. What the table has of the client does
// not keep the connection's memory. Any goroutine may call it.
func (c *Client) Close() {
	if c != nil {
		c.table.end(c, true)
	}
}
