package executor

import (
	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/resp/command"
)

// Context is what a call is a part of, in the words of ACL LOG.
type Context string

const (
	Toplevel Context = "toplevel" // a call by itself
	Multi    Context = "multi"    // a call of a transaction
	Script   Context = "lua"      // a call of a script
)

const errNoScript = engine.Error("ERR This Redis command is not allowed from script")

// Admit returns why a call may not run now, or nil: it checks the permission of the user, and has
// and lacks, the flags that decide, which are more than the call's own for EXEC. It evicts keys if
// the call, or a script that it runs, may take memory. No lock is held. Denials are in ACL LOG.
func (r *Runner) Admit(p *command.Prepared, in Context, has, lacks command.Flags) error {
	if in == Script && has&command.NoScript != 0 {
		return errNoScript
	}
	if denial := r.Check(p); denial != nil {
		r.LogDenied(denial.Verdict, denial.Object, r.Account.Name(), in)
		return denial.Error()
	}
	if has&(command.DenyOOM|command.AnyKeys) != 0 {
		crowded := r.executor.env.Engine.Crowded() && r.executor.loading.Load() == 0
		r.NoRoom = crowded && !r.origin.MakeRoom(*p)
		if r.NoRoom && has&command.DenyOOM != 0 {
			return engine.ErrOutOfMemory
		}
		if crowded && has&command.AnyKeys != 0 { // a script cannot evict keys, and may write many
			r.EvictFor(engine.LargeGrowth)
		}
	}
	return r.executor.Unavailable(has, lacks)
}

// Unhindered reports whether calls are refused only to users who may not run them, as far as that
// is certain without evicting keys: there is enough memory, the disk works, and the data is loaded.
func (x *Executor) Unhindered() bool {
	return !x.env.Engine.Crowded() && x.loading.Load() == 0 && x.env.Refusal() == ""
}

// Check returns why the user may not run a call, or nil.
func (r *Runner) Check(p *command.Prepared) *command.Denial {
	u := r.Account.User()
	if u.Unrestricted() || p.AllowedAtOnce(u) {
		return nil
	}
	if r.access == nil {
		r.access = command.NewAccessCheck(r.executor.env.Engine)
	}
	return r.access.Check(u, p)
}

// LogDenied adds an entry to ACL LOG.
func (r *Runner) LogDenied(why acl.Verdict, object, user string, in Context) {
	env := r.executor.env
	env.AccessLog.Add(acl.Entry{
		Reason: why, Object: object, User: user, Context: string(in), At: env.Clock(), Client: r.origin.Describe(),
	}, int(env.Settings.Access.LogLength.Load()))
}
