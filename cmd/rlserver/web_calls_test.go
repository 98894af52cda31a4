package main

import (
	"bufio"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// post sends a body as the page does, and returns the response, which must have the given status.
func post(t *testing.T, status int, url, body string, header ...string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	return send(t, status, request, append([]string{"Content-Type", "application/json"}, header...))
}

// body returns the body of a request about an id and a policy.
func body(id, policy string) string {
	return `{"id":"` + base64.StdEncoding.EncodeToString([]byte(id)) + `","policy":"` + policy + `"}`
}

// Ids are found, reset and their bans lifted by HTTP, in the database that is asked for.
func TestIDsByHTTP(t *testing.T) {
	p, address := startHTTP(t)
	conn := p.connect()
	c := &client{t, conn, bufio.NewReader(conn)}
	at := "http://" + address
	assert.Equal(t, "OK", c.do("RL.POLICY SET login SLIDE 2 1h BAN 2 5m 1h"))
	c.do("RL.POLICY SET login SLIDE 20 1h FOR gold")
	c.do("RL.POLICY SET net SLIDE 5 1h IP4 24 IP6 64")
	for range 4 {
		c.do("RL.CHECK ann login")
	}
	c.do("RL.CHECK 192.0.2.77 net")
	c.do("SELECT 3")
	c.do("RL.CHECK bob login")
	c.do("SELECT 0")

	assert.JSONEq(t, `{"cursor":"0","ids":[{"id":"YW5u","name":"ann","used":2,"limit":2,"held":0,"ban":0,"bans":0}]}`,
		post(t, 200, at+"/api/ids", `{"policy":"login"}`))
	assert.JSONEq(t, `{"cursor":"0","ids":[]}`, post(t, 200, at+"/api/ids", `{"policy":"login","match":"Yio="}`))
	assert.Contains(t, post(t, 200, at+"/api/ids", `{"policy":"login","db":3}`), `"name":"bob","used":1`)
	assert.Contains(t, post(t, 200, at+"/api/ids", `{"policy":"net"}`), `"name":"192.0.2.0/24","used":1`)
	assert.Contains(t, post(t, 200, at+"/api/overrides", `{"policy":"login"}`),
		`"name":"gold","definition":"SLIDE 20 1h"`)
	assert.Regexp(t, `"name":"ann","policy":"login",.*"ban":\d+,"bans":1`,
		post(t, 200, at+"/api/banned", `{}`))
	usage := post(t, 200, at+"/api/usage", body("ann", ""))
	assert.Regexp(t, `"name":"login",.*"allowed":false,"limit":2,"remaining":0,"retryAfter":\d{2,},"resetAfter":\d{2,},`+
		`"held":0,"ban":\d{2,},"mayReset":true,"mayUnban":true},{"name":"net",`, usage)
	assert.Contains(t, post(t, 200, at+"/api/usage", body("192.0.2.1", "")), `"limit":5,"remaining":4`)

	for _, path := range []string{"/api/reset", "/api/unban"} {
		fetch(t, 405, at+path+"?policy=login&id=YW5u")
		post(t, 403, at+path, body("ann", "login"), "Sec-Fetch-Site", "cross-site")
		post(t, 403, at+path, body("ann", "login"), "Origin", "http://rebound.example:9121")
		assert.Contains(t, post(t, 400, at+path, body("ann", "nope")), "no such policy 'nope'")
		assert.Contains(t, post(t, 400, at+path, body("a{b", "login")), "without { and }")
		assert.Contains(t, post(t, 400, at+path, `{"db":16,"policy":"login","id":"YW5u"}`), "DB index is out of range")
	}
	assert.Equal(t, "login:{ann}", c.do("KEYS *ann*"))
	assert.JSONEq(t, `{"removed":1}`, post(t, 200, at+"/api/unban", body("ann", "login")))
	assert.JSONEq(t, `{"removed":0}`, post(t, 200, at+"/api/unban", body("ann", "login")))
	assert.JSONEq(t, `{"removed":1}`, post(t, 200, at+"/api/reset", body("ann", "login")))
	assert.Empty(t, c.do("KEYS *ann*"))
	require.Eventually(t, func() bool { return c.infoFields()["connected_clients"] == "1" }, patience, time.Millisecond,
		"the page leaves no client behind")
}

// A user sees and changes by HTTP what the user may with commands, of each id.
func TestIDsByHTTPNeedPermission(t *testing.T) {
	p, address := startHTTP(t)
	conn := p.connect()
	c := &client{t, conn, bufio.NewReader(conn)}
	c.do("RL.POLICY SET login SLIDE 2 1h")
	c.do("RL.POLICY SET secret SLIDE 2 1h")
	for _, id := range []string{"ann", "bob"} {
		c.do("RL.CHECK " + id + " login secret")
	}
	assert.Equal(t, "OK", c.do("ACL SETUSER viewer on >view +info +rl.top"))
	assert.Equal(t, "OK", c.do("ACL SETUSER support on >help +info +rl.top +rl.usage +rl.reset ~login:{a*}"))
	assert.Equal(t, "OK", c.do("ACL SETUSER default -rl.reset -rl.unban"))
	viewer, support := "http://viewer:view@"+address, "http://support:help@"+address
	for _, path := range []string{"/api/ids", "/api/overrides", "/api/banned", "/api/reset", "/api/unban"} {
		assert.Contains(t, post(t, 403, viewer+path, body("ann", "login")), "NOPERM")
	}
	usage := post(t, 200, support+"/api/usage", body("ann", ""))
	assert.Contains(t, usage, `"remaining":1,`)
	assert.Contains(t, usage, `"mayReset":true,"mayUnban":false}`)
	assert.Regexp(t, `"name":"secret",.*"limit":0,.*"problem":"NOPERM .*"mayReset":false`, usage)
	assert.NotContains(t, post(t, 200, support+"/api/usage", body("bob", "")), `"remaining":1,`)

	assert.Contains(t, post(t, 403, support+"/api/reset", body("bob", "login")), "NOPERM")
	assert.Contains(t, post(t, 403, support+"/api/reset", body("ann", "secret")), "NOPERM")
	assert.Contains(t, post(t, 403, support+"/api/unban", body("ann", "login")), "NOPERM")
	assert.Contains(t, post(t, 403, "http://"+address+"/api/reset", body("ann", "login")), "NOPERM")
	assert.JSONEq(t, `{"removed":1}`, post(t, 200, support+"/api/reset", body("ann", "login")))
	assert.Equal(t, "3", c.do("DBSIZE"))
	post(t, 401, "http://support:wrong@"+address+"/api/reset", body("bob", "login"))
	assert.Equal(t, "OK", c.do("ACL SETUSER support off"))
	post(t, 401, support+"/api/reset", body("ann", "login"))
}
