package scripting

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/lua"
)

const errAheadLong = engine.Error("ERR the new scripts of a transaction are too long: 4 MB are allowed together")

// compileAhead compiles the scripts of a transaction before its locks are taken: to compile one
// takes up to a second, and others wait meanwhile. What SCRIPT FLUSH drops within the transaction
// is not compiled again.
func compileAhead(c *command.Call, calls []command.Prepared) (release func(), err error) {
	a := aheadOf{Call: c}
	defer func() {
		if release == nil { // an error, or a panic
			a.release()
		}
	}()
	for i := range calls {
		if calls[i].Command.Ahead != nil {
			if err := a.compile(calls[i].Words[calls[i].Name]); err != nil {
				return nil, err
			}
		}
	}
	return a.release, nil
}

// aheadOf are the scripts of a transaction.
type aheadOf struct {
	*command.Call
	kept  []string // their names
	bytes int      // of those that are new
}

func (a *aheadOf) release() { a.Env.Scripts.Forget(a.kept) }

// compile compiles a script with a text or, if it is known, a name.
func (a *aheadOf) compile(word []byte) error {
	if sha, isName := shaOf(word); isName {
		if s, _ := known(a.Env, string(sha[:])); s != nil {
			compiled(a.Call, s) // its error is that of the call
		}
		return nil
	}
	sha := ""
	if s := a.Env.Engine.Scripts.FindText(word); s != nil {
		sha = s.SHA
	} else {
		sha = lua.SHA1(string(word))
		if _, _, done := a.Env.Scripts.Ahead(sha); !done {
			a.bytes += len(word)
		}
	}
	if a.bytes > maxText {
		return errAheadLong
	}
	e, err := compileText(a.Call, sha, string(word))
	a.Env.Scripts.Keep(sha, e, err)
	a.kept = append(a.kept, sha)
	return nil
}

func compileText(c *command.Call, sha, text string) (*lua.Entry, error) {
	if s, _ := known(c.Env, sha); s != nil {
		return compiled(c, s)
	}
	return compile(c, sha, text)
}
