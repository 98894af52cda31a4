package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What the page shows of single ids, when someone asks for it: the ids of a policy, those with
// numbers of their own, those that are banned, and all about one of them.

const (
	pageIDs   = 50      // a response has about that many ids, at most
	pageBytes = 1 << 20 // and names of about that length, in bytes
	walkStep  = 64      // keys that a call visits
	walkTime  = 300 * time.Millisecond

	maxUsage = 200 // policies that the usage of an id is shown of
	maxShown = 256 // bytes of a name
)

// calls are the paths whose requests make calls.
func (s *Server) calls() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/api/ids":       s.calling(listIDs),
		"/api/overrides": s.calling(listOverrides),
		"/api/banned":    s.calling(listBanned),
		"/api/usage":     s.calling(showUsage),
		"/api/reset":     s.calling(func(x *exchange) (any, error) { return x.change("RL.RESET") }),
		"/api/unban":     s.calling(func(x *exchange) (any, error) { return x.change("RL.UNBAN") }),
	}
}

// listView is a part of a list of ids. The cursor is for the next part; 0: there is none.
type listView struct {
	Cursor string   `json:"cursor"`
	IDs    []idView `json:"ids"`
}

// idView is an id in a list, with what the list says about it. Times are in ms.
type idView struct {
	ID         []byte `json:"id"`
	Name       string `json:"name"` // as text, cut
	Policy     string `json:"policy,omitempty"`
	Definition string `json:"definition,omitempty"`
	Used       int64  `json:"used"`
	Limit      int64  `json:"limit"`
	Held       int64  `json:"held"`
	Ban        int64  `json:"ban"`
	Bans       int64  `json:"bans"`
}

// listIDs serves the ids of a policy with their use: RL.POLICY IDS.
func listIDs(x *exchange) (any, error) {
	return x.walk(func(cursor string) []string {
		return x.matching("RL.POLICY", "IDS", x.Policy, "CURSOR", cursor, "COUNT", strconv.Itoa(walkStep))
	}, idOfMap)
}

// listBanned serves the ids that are banned: RL.BANNED.
func listBanned(x *exchange) (any, error) {
	return x.walk(func(cursor string) []string {
		return x.matching("RL.BANNED", "CURSOR", cursor, "COUNT", strconv.Itoa(walkStep))
	}, idOfMap)
}

// listOverrides serves the ids for which a policy has other numbers: RL.POLICY LIST with FOR.
func listOverrides(x *exchange) (any, error) {
	return x.walk(func(cursor string) []string {
		return []string{"RL.POLICY", "LIST", "FOR", x.Policy, "CURSOR", cursor, "COUNT", strconv.Itoa(pageIDs)}
	}, func(entry any) (v idView) {
		if pair, _ := entry.([]any); len(pair) == 2 {
			v.ID, _ = pair[0].([]byte)
			definition, _ := pair[1].([]byte)
			v.Definition = string(definition)
		}
		return v
	})
}

// matching returns words with the pattern of the request.
func (x *exchange) matching(words ...string) []string {
	if len(x.Match) > 0 {
		words = append(words, "MATCH", string(x.Match))
	}
	return words
}

func idOfMap(entry any) (v idView) {
	f := fields(entry)
	v.ID, _ = f["id"].([]byte)
	policy, _ := f["policy"].([]byte)
	v.Policy = string(policy)
	v.Used, v.Limit, v.Held = number(f, "used"), number(f, "limit"), number(f, "held")
	v.Ban, v.Bans = number(f, "ban"), number(f, "bans")
	return v
}

// walk continues an iteration until there are enough ids for a response, or it takes too long: one
// request costs little, however many keys there are.
func (x *exchange) walk(call func(cursor string) []string, id func(entry any) idView) (any, error) {
	v := listView{Cursor: x.Cursor, IDs: []idView{}}
	if v.Cursor == "" {
		v.Cursor = "0"
	}
	size := 0
	for start := time.Now(); ; {
		reply, err := x.call(call(v.Cursor)...)
		if err != nil {
			return nil, err
		}
		parts, _ := reply.([]any)
		if len(parts) < 2 {
			return nil, errors.New("the reply to the call is not understood")
		}
		cursor, _ := parts[0].([]byte)
		entries, _ := parts[1].([]any)
		for _, entry := range entries {
			shown := id(entry)
			shown.Name = cut(shown.ID)
			v.IDs = append(v.IDs, shown)
			size += len(shown.ID)
		}
		v.Cursor = string(cursor)
		if v.Cursor == "0" || len(v.IDs) >= pageIDs || size >= pageBytes || time.Since(start) > walkTime {
			return v, nil
		}
	}
}

// usageView is what an id has used of each policy.
type usageView struct {
	Name     string      `json:"name"`
	Policies []policyUse `json:"policies"`
	Omitted  int         `json:"omitted"` // policies that are not in the list
}

// policyUse is what an id has used of a policy. Times are in ms; RetryAfter is -1 if the call can
// never be admitted, Ban 0 without a ban.
type policyUse struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
	Allowed    bool   `json:"allowed"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	RetryAfter int64  `json:"retryAfter"`
	ResetAfter int64  `json:"resetAfter"`
	Held       int64  `json:"held"`
	Ban        int64  `json:"ban"`
	Problem    string `json:"problem,omitempty"` // why the rest is not known

	MayReset bool `json:"mayReset"`
	MayUnban bool `json:"mayUnban"`
}

// showUsage serves what an id has used of each policy: RL.USAGE. It asks for one at a time, as the
// user may not see all, and as in a cluster an address may count in several places.
func showUsage(x *exchange) (any, error) {
	v := usageView{Name: cut(x.ID), Policies: []policyUse{}}
	list := x.server.source.State().Policies
	v.Omitted = max(0, len(list)-maxUsage)
	list = list[:len(list)-v.Omitted]
	calls := make([][][]byte, len(list))
	for i, p := range list {
		calls[i] = [][]byte{[]byte("RL.USAGE"), x.ID, []byte(p.Name)}
	}
	replies, err := x.caller.Do(calls...)
	if err != nil {
		return nil, err
	}
	client, reads := clientOf(x.http), hasToken(x.http)
	for i, reply := range replies {
		use := policyUse{Name: list[i].Name, Definition: list[i].Definition}
		if failed, ok := reply.(CallError); ok {
			if i == 0 && failed.status() == http.StatusBadRequest && !strings.HasPrefix(string(failed), "WRONGTYPE") {
				return nil, failed // it is about the id
			}
			use.Problem = string(failed)
		}
		use.fill(reply)
		use.MayReset = !reads && client.may("RL.RESET", string(x.ID), use.Name)
		use.MayUnban = !reads && client.may("RL.UNBAN", string(x.ID), use.Name)
		v.Policies = append(v.Policies, use)
	}
	return v, nil
}

// fill takes the numbers from a reply of RL.USAGE for one policy.
func (u *policyUse) fill(reply any) {
	if list, _ := reply.([]any); len(list) == 1 {
		f := fields(list[0])
		u.Allowed = number(f, "allowed") == 1
		u.Limit, u.Remaining = number(f, "limit"), number(f, "remaining")
		u.RetryAfter, u.ResetAfter = number(f, "retry_after"), number(f, "reset_after")
		u.Held, u.Ban = number(f, "held"), number(f, "ban")
	}
}

// changeView is how many keys or bans a call has removed.
type changeView struct {
	Removed int64 `json:"removed"`
}

// change makes a call that changes something, for the id and the policy of the request.
func (x *exchange) change(command string) (any, error) {
	switch {
	case hasToken(x.http):
		return nil, CallError("NOPERM the token only reads: log in as a user to change something")
	case x.Policy == "":
		return nil, CallError("ERR policy is missing: changes are made for one at a time")
	}
	reply, err := x.call(command, string(x.ID), x.Policy)
	if err != nil {
		return nil, err
	}
	n, _ := reply.(int64)
	return changeView{n}, nil
}

// cut returns the name of a key or an id as text. It says if it was cut.
func cut(name []byte) string {
	if len(name) <= maxShown {
		return readable(name)
	}
	end := maxShown
	for i := end; i > end-utf8.UTFMax; i-- { // not within a character
		if utf8.RuneStart(name[i]) {
			end = i
			break
		}
	}
	return readable(name[:end]) + "…"
}
