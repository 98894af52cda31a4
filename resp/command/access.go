package command

import (
	"strings"
	"sync"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/resp/glob"
)

// AccessCatalog returns the commands for access rules. Its indexes are those of Command.Index; the
// commands that only Redis has follow. Subcommands that rules take as first arguments have no name
// in it.
var AccessCatalog = sync.OnceValue(func() *acl.Catalog {
	list := make([]acl.Command, Count)
	for _, c := range Table {
		for _, each := range append([]*Command{c}, c.Subs...) {
			if each.inRules() != each {
				continue
			}
			list[each.Index] = acl.Command{
				Name: each.FullName(), Categories: each.accessCategories(), Open: each.Flags&NoAuth != 0,
			}
		}
	}
	return acl.NewCatalog(acl.WithRedis(list), func(text, name []byte) bool {
		pattern := glob.New(text, false)
		return pattern.Match(name)
	})
})

// AccessCheck checks calls against the permissions of their users. It reuses its buffers, and is
// for use by one goroutine.
type AccessCheck struct {
	call   acl.Call
	hasher Hasher
}

// NewAccessCheck returns an AccessCheck for calls on an engine, whose policies say which keys some
// calls have.
func NewAccessCheck(e *engine.Engine) *AccessCheck { return &AccessCheck{hasher: Hasher{Engine: e}} }

// Denial is why a user may not run a call.
type Denial struct {
	Verdict acl.Verdict
	Command *Command
	Object  string // the name of the command, or the key
}

// Check returns why a user may not run a call, or nil. The arity of the call has been checked.
func (a *AccessCheck) Check(u *acl.User, p *Prepared) *Denial {
	if u.Unrestricted() || p.AllowedAtOnce(u) {
		return nil
	}
	defer a.release()
	switch v, i := u.Check(a.describe(p)); v {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return &Denial{v, p.Command, p.Command.inRules().FullName()}
	default:
		return &Denial{v, p.Command, string(a.call.Keys[i].Name)}
	}
}

// CheckAbsent is Check for a call of a command that only Redis has, by the rules on commands: its
// arity and keys are not known here. ok is false if Redis does not have it either.
func CheckAbsent(u *acl.User, words [][]byte) (denial *Denial, ok bool) {
	index, name, ok := AccessCatalog().Absent(words)
	if !ok {
		return nil, false
	}
	if v, _ := u.Check(&acl.Call{Command: index}); v != acl.Allowed {
		return &Denial{Verdict: v, Object: name}, true
	}
	return nil, true
}

// AllowedAtOnce reports whether a user may run a call of a command with one key. It is a fast path
// of Check for the common case: if it returns false, Check decides.
func (p *Prepared) AllowedAtOnce(u *acl.User) bool {
	c := p.Command
	return c.onlyKey > 0 && c.Keys[0].variable == nil && c.inRules() == c &&
		u.AllowsOneKey(c.Index, p.Words[c.onlyKey], c.Keys[0].bits)
}

// AllowsReadingAnyKey reports whether a user may run a call and also read every key.
func (a *AccessCheck) AllowsReadingAnyKey(u *acl.User, p *Prepared) bool {
	defer a.release()
	return u.Unrestricted() || u.AllowsAnyKey(a.describe(p), acl.Read)
}

// MayReadAnyKey reports whether the user may read keys that the words of the call do not name.
func (c *Call) MayReadAnyKey() bool {
	return NewAccessCheck(c.Env.Engine).AllowsReadingAnyKey(c.Account.User(), c.prepared())
}

// MayReadKey returns a function that reports whether the user may run the call and read a key that
// its words do not name.
func (c *Call) MayReadKey() func(name []byte) bool {
	u := c.Account.User()
	if u.Unrestricted() {
		return func([]byte) bool { return true }
	}
	call := NewAccessCheck(c.Env.Engine).describe(c.prepared())
	named := len(call.Keys)
	return func(name []byte) bool {
		call.Keys = append(call.Keys[:named], acl.Key{Name: name, Access: acl.Read})
		v, _ := u.Check(call)
		return v == acl.Allowed
	}
}

func (c *Call) prepared() *Prepared {
	p := Prepared{Command: c.Command, Words: c.Words, Name: 1}
	if c.Command.parent != nil {
		p.Name = 2
	}
	return &p
}

// inRules returns the command that access rules name for this one, which is nearly always itself.
func (c *Command) inRules() *Command {
	if c.parent != nil && c.parent.SubsAreArguments {
		return c.parent
	}
	return c
}

// describe fills a.call.
func (a *AccessCheck) describe(p *Prepared) *acl.Call {
	c := p.Command
	inRules, first := c.inRules(), p.Name
	if inRules != c {
		first--
	}
	a.call.Command, a.call.FirstArg, a.call.Keys = inRules.Index, nil, a.call.Keys[:0]
	if first < len(p.Words) {
		a.call.FirstArg = p.Words[first]
	}
	if c.Channels != NoChannels {
		a.addChannels(c.Channels, p.Words)
		return &a.call // no command has both channels and keys
	}
	if c.HashKeys != nil {
		a.hasher.Reset()
		c.HashKeys(&a.hasher, p.Words)
		for _, k := range a.hasher.Keys {
			a.call.Keys = append(a.call.Keys, acl.Key{Name: k.Name, Access: c.Keys[0].bits})
		}
		return &a.call
	}
	for i := range c.Keys {
		spec := &c.Keys[i]
		if spec.Access == notKey {
			continue
		}
		access := spec.bits
		if spec.variable != nil {
			access = accessBits(spec.variable(p.Words))
		}
		if at := spec.single(); at > 0 { // nearly all commands
			a.call.Keys = append(a.call.Keys, acl.Key{Name: p.Words[at], Access: access})
			continue
		}
		spec.positions(p.Words, func(at int) {
			a.call.Keys = append(a.call.Keys, acl.Key{Name: p.Words[at], Access: access})
		})
	}
	return &a.call
}

func (a *AccessCheck) addChannels(which Channels, words [][]byte) {
	list := words[1:]
	if which == OneChannel {
		list = list[:1]
	}
	for _, name := range list {
		a.call.Keys = append(a.call.Keys, acl.Key{Name: name, Channel: true, Pattern: which == ChannelPatterns})
	}
}

// release drops the words of the call, and large buffers.
func (a *AccessCheck) release() {
	clear(a.call.Keys)
	if cap(a.call.Keys) > manyKeys {
		a.call.Keys = nil
	}
	a.call.FirstArg = nil
	a.hasher.Release()
}

// accessBits returns the access that a call has to a key, from the words of its specification.
// EXISTS and others only need any access.
func accessBits(words string) (access acl.Access) {
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "access":
			access |= acl.Read
		case "insert", "update", "delete":
			access |= acl.Write
		}
	}
	return access
}

// Error returns the reply to a call that is denied, as in Redis.
func (d *Denial) Error() engine.Error {
	switch d.Verdict {
	case acl.DeniedCommand:
		return engine.Error("NOPERM this user has no permissions to run the '" + d.Object + "' command")
	case acl.DeniedKey:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	}
	return "NOPERM this user has no permissions to access one of the channels used as arguments"
}

// AtExec returns the reply to a call of a transaction that was allowed when it was queued.
func (d *Denial) AtExec() engine.Error {
	reason := "no permission to access one of the channels used as arguments"
	switch d.Verdict {
	case acl.DeniedCommand:
		reason = "no permission to execute the command or subcommand"
	case acl.DeniedKey:
		reason = "no permission to touch the specified keys"
	}
	return engine.Error("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC " +
		"call. This command is no longer allowed for the following reason: " + reason)
}

// DryRun returns the reply of ACL DRYRUN to a call that is denied.
func (d *Denial) DryRun() string {
	switch d.Verdict {
	case acl.DeniedCommand:
		return "This user has no permissions to run the '" + d.Object + "' command"
	case acl.DeniedKey:
		return "This user has no permissions to access the '" + d.Object + "' key"
	}
	return "This user has no permissions to access the '" + d.Object + "' channel"
}

// Prepare finds the command of a call that is not run, such as that of ACL DRYRUN. c is nil if it
// is unknown.
func Prepare(words [][]byte) (p Prepared) {
	p = Prepared{Command: Table.Find(words[0]), Words: words, Name: 1}
	if p.Command == nil || len(p.Command.Subs) == 0 || len(words) == 1 {
		return p
	}
	sub := p.Command.Sub(words[1])
	if sub == nil && p.Command.SubsAreArguments { // whether it exists does not matter to rules
		return p
	}
	p.Command, p.Name = sub, 2
	return p
}
