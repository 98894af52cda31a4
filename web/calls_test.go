package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callers is a fake whose callers answer with what reply returns.
type callers struct {
	*fake
	reply func(call string) any
	block chan struct{} // nil: callers answer at once

	calling sync.Mutex
	made    []string
	users   []User
}

// Connect implements Source.
func (f *fake) Connect(context.Context, User) (Caller, error) { return nil, errors.New("no caller") }

// Connect implements Source.
func (c *callers) Connect(ctx context.Context, as User) (Caller, error) {
	c.calling.Lock()
	defer c.calling.Unlock()
	c.users = append(c.users, as)
	return &fakeCaller{c, ctx}, nil
}

type fakeCaller struct {
	of  *callers
	ctx context.Context
}

func (c *fakeCaller) Close() {}

func (c *fakeCaller) Do(calls ...[][]byte) (replies []any, err error) {
	if c.of.block != nil {
		select {
		case <-c.of.block:
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
	c.of.calling.Lock()
	defer c.of.calling.Unlock()
	for _, words := range calls {
		var texts []string
		for _, word := range words {
			texts = append(texts, string(word))
		}
		call := strings.Join(texts, " ")
		c.of.made = append(c.of.made, call)
		replies = append(replies, c.of.reply(call))
	}
	return replies, nil
}

// post sends a body as the page does, as change wants it.
func post(s *Server, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost:9121"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://localhost:9121")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w
}

func newCallers(t *testing.T, o Options, reply func(call string) any) (*Server, *callers) {
	c := &callers{fake: newFake(), reply: reply}
	o.Source = c
	s := New(o)
	t.Cleanup(func() { s.Close(context.Background()) })
	return s, c
}

var callPaths = []string{"/api/ids", "/api/overrides", "/api/banned", "/api/usage", "/api/reset", "/api/unban"}

// Only a page of this server, or a program, makes calls: not a page of another site, not one whose
// name resolves to this machine, not a link or a form, and nobody without a login that is needed.
func TestForeignPagesMakeNoCalls(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	rebound := func(r *http.Request) {
		r.Host = "rebound.example:9121"
		r.Header.Set("Origin", "http://rebound.example:9121")
	}
	method := func(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }
	old := func(origin string) func(*http.Request) { // a browser without Sec-Fetch-Site
		return func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", origin)
		}
	}
	far := func(host string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr, r.Host = "192.0.2.1:5", host
			r.Header.Set("Origin", "http://"+host)
		}
	}
	program := func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") }
	login := func(name, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, password) }
	}
	both := func(a, b func(*http.Request)) func(*http.Request) { return func(r *http.Request) { a(r); b(r) } }
	cross, ann := header("Sec-Fetch-Site", "cross-site"), login("ann", "sesame")
	open, needed := accessCase{unprotected: true}, accessCase{loginNeeded: true}
	cases := map[string]struct {
		access accessCase
		change func(*http.Request)
		want   int
	}{
		"the page":                           {want: 200},
		"a program":                          {change: program, want: 200},
		"a GET":                              {change: method("GET"), want: 405},
		"a HEAD":                             {change: method("HEAD"), want: 405},
		"a PUT":                              {change: method("PUT"), want: 405},
		"a preflight":                        {change: method("OPTIONS"), want: 405},
		"another site":                       {change: cross, want: 403},
		"another port":                       {change: header("Sec-Fetch-Site", "same-site"), want: 403},
		"an old browser, another site":       {change: old("http://evil.example"), want: 403},
		"an old browser, a sandbox":          {change: old("null"), want: 403},
		"a form":                             {change: header("Content-Type", "text/plain"), want: 415},
		"no type":                            {change: header("Content-Type", ""), want: 415},
		"a rebound name":                     {change: rebound, want: 403},
		"a rebound name, unprotected":        {open, rebound, 403},
		"elsewhere, unprotected, by name":    {open, far("rebound.example:9121"), 403},
		"elsewhere, unprotected, by address": {open, far("192.0.2.9:9121"), 200},
		"elsewhere, protected":               {change: far("192.0.2.9:9121"), want: 403},
		"no login":                           {needed, nil, 401},
		"a name without password":            {needed, login("guest", "x"), 401},
		"a wrong password":                   {needed, login("ann", "x"), 401},
		"a password":                         {needed, ann, 200},
		"a password, by any name":            {needed, both(rebound, ann), 200},
		"a password, another site":           {needed, both(cross, ann), 403},
	}
	for name, c := range cases {
		o := options(nil)
		o.Access = c.access.access()
		s, made := newCallers(t, o, func(call string) any {
			if strings.HasPrefix(call, "RL.RESET") || strings.HasPrefix(call, "RL.UNBAN") {
				return int64(1)
			}
			return []any{[]byte("0"), []any{}}
		})
		for _, path := range callPaths {
			w := post(s, path, `{"policy":"login","id":"YW5u"}`, c.change)
			assert.Equal(t, c.want, w.Code, "%s: %s: %s", name, path, w.Body)
			assert.NotEqual(t, "*", w.Header().Get("Access-Control-Allow-Origin"), name)
		}
		if c.want != 200 {
			assert.Empty(t, made.made, name)
			assert.Empty(t, made.users, name)
		}
	}
}

// The token reads, and changes nothing; its calls are those of a client without a login.
func TestTheTokenChangesNothing(t *testing.T) {
	o := options(nil)
	o.Access = accessCase{token: true}.access()
	s, made := newCallers(t, o, func(string) any { return []any{[]byte("0"), []any{}} })
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secretToken) }
	assert.Equal(t, 200, post(s, "/api/ids", `{"policy":"login"}`, bearer).Code)
	assert.Equal(t, []User{{Address: "127.0.0.1:5"}}, made.users)
	assert.Contains(t, post(s, "/api/usage", `{"id":"YW5u"}`, bearer).Body.String(), `"mayReset":false,"mayUnban":false`)
	made.made = nil
	for _, path := range []string{"/api/reset", "/api/unban"} {
		w := post(s, path, `{"policy":"login","id":"YW5u"}`, bearer)
		assert.Equal(t, 403, w.Code)
		assert.Contains(t, w.Body.String(), "the token only reads: log in as a user")
	}
	assert.Empty(t, made.made)
}

// Bodies that are not understood are refused, and make no call.
func TestBadBodiesOfCalls(t *testing.T) {
	s, made := newCallers(t, options(nil), func(string) any { return nil })
	for body, want := range map[string]string{
		``:                            "the body must be an object of JSON",
		`[]`:                          "the body must be an object of JSON",
		`{"policy":"a"} {}`:           "something follows the object",
		`{"policy":7}`:                "the body must be an object of JSON",
		`{"id":"a b"}`:                "in base64",
		`{"key":"a"}`:                 `unknown field "key"`,
		`{"db":-1}`:                   "db must be the number of a database",
		`{"db":1e99}`:                 "the body must be an object of JSON",
		strings.Repeat(" ", 257<<10):  "too large",
		`{"policy":"\ud800","db":0}x`: "the body must be an object of JSON",
	} {
		for _, path := range callPaths {
			w := post(s, path, body, nil)
			assert.Equal(t, 400, w.Code, "%s %.20s", path, body)
			assert.Contains(t, w.Body.String(), want, "%s %.20s", path, body)
		}
	}
	for _, path := range []string{"/api/reset", "/api/unban"} {
		w := post(s, path, `{"id":"YW5u"}`, nil)
		assert.Equal(t, 400, w.Code)
		assert.Contains(t, w.Body.String(), "policy is missing")
	}
	assert.Empty(t, made.made)
}

// An error of a call is the text of the response, and decides its status.
func TestErrorsOfCalls(t *testing.T) {
	var reply any
	s, _ := newCallers(t, options(nil), func(string) any { return reply })
	for text, want := range map[string]int{
		"ERR no such policy 'a'":                    400,
		"WRONGTYPE Operation against a key holding": 400,
		"NOPERM no permissions":                     403,
		"NOAUTH Authentication required.":           403,
		"CLUSTERDOWN Hash slot not served":          503,
		"LOADING the data is being loaded":          503,
		"BUSY a script runs":                        503,
	} {
		reply = CallError(text)
		for _, path := range []string{"/api/ids", "/api/banned", "/api/overrides", "/api/reset"} {
			w := post(s, path, `{"policy":"a","id":"YW5u"}`, nil)
			assert.Equal(t, want, w.Code, text)
			assert.Equal(t, text+"\n", w.Body.String())
		}
	}
	reply = []any{int64(7)}
	assert.Equal(t, 503, post(s, "/api/ids", `{"policy":"a"}`, nil).Code, "a reply that is not understood")
}

// A list is walked until there is a page of ids: few of many keys may match, and the response says
// where to go on.
func TestWalksAreBounded(t *testing.T) {
	step := 0
	of := func(n int, id string) any {
		step++
		var list []any
		for range n {
			list = append(list, []any{[]byte("id"), []byte(id), []byte("used"), int64(1)})
		}
		return []any{fmt.Append(nil, step), list}
	}
	for _, c := range []struct {
		name        string
		ids, length int
		takes       time.Duration
		calls       int
	}{
		{"few at a time", 10, 3, 0, 5}, {"many", 70, 3, 0, 1}, {"long ones", 10, 64 << 10, 0, 2},
		{"none", 0, 0, walkTime / 3, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			step = 0
			s, made := newCallers(t, options(nil), func(string) any {
				time.Sleep(c.takes)
				return of(c.ids, strings.Repeat("x", c.length))
			})
			w := post(s, "/api/ids", `{"policy":"a","match":"Kg=="}`, nil)
			require.Equal(t, 200, w.Code, w.Body)
			assert.Len(t, made.made, c.calls, c.name)
			assert.Equal(t, "RL.POLICY IDS a CURSOR 0 COUNT 64 MATCH *", made.made[0])
			assert.Contains(t, w.Body.String(), fmt.Sprintf(`{"cursor":"%d",`, c.calls))
		})
	}
}

// At most maxCalls requests make calls at the same time; others wait, but not for ever.
func TestFewRequestsMakeCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, made := newCallers(t, options(nil), func(string) any { return int64(0) })
		defer s.Close(context.Background())
		made.block = make(chan struct{})
		codes := make(chan int, 2*maxCalls)
		for range 2 * maxCalls {
			go func() { codes <- post(s, "/api/reset", `{"policy":"a","id":"YW5u"}`, nil).Code }()
		}
		synctest.Wait()
		made.calling.Lock()
		assert.Len(t, made.users, maxCalls)
		made.calling.Unlock()
		start := time.Now()
		for range 2 * maxCalls {
			assert.Equal(t, 503, <-codes)
		}
		assert.Equal(t, callTime, time.Since(start))
		close(made.block)
		assert.Equal(t, 200, post(s, "/api/reset", `{"policy":"a","id":"YW5u"}`, nil).Code)
	})
}

// Names are cut between characters, and are readable whatever bytes they have.
func TestNamesAreCut(t *testing.T) {
	for name, want := range map[string]string{
		"ann":                                   "ann",
		"":                                      `""`,
		"\xff":                                  `"\xff"`,
		"a\u202eb":                              `"a\u202eb"`,
		strings.Repeat("x", 256):                strings.Repeat("x", 256),
		strings.Repeat("x", 257):                strings.Repeat("x", 256) + "…",
		"x" + strings.Repeat("ü", 200):          "x" + strings.Repeat("ü", 127) + "…",
		strings.Repeat("\xbf", 300):             `"` + strings.Repeat(`\xbf`, 256) + `"…`,
		strings.Repeat("x", 255) + "\U0001f600": strings.Repeat("x", 255) + "…",
	} {
		assert.Equal(t, want, cut([]byte(name)), "%.20q", name)
	}
}
