package integration

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClusterPagesShowIDsOfAllNodes looks up ids, lifts bans and resets on the page of each node:
// whichever node leads them.
func TestClusterPagesShowIDsOfAllNodes(t *testing.T) {
	t.Parallel()
	pages := []string{freePort(t), freePort(t), freePort(t)}
	c := startClusterOf(t, 3, func(i int) []string {
		return []string{"--http-port", pages[i], "--http-bind", "127.0.0.1"}
	}, patient...)
	c.balanced()
	client := c.proxied(0, 2)
	call := func(line string) {
		words := []any{}
		for _, word := range strings.Fields(line) {
			words = append(words, word)
		}
		require.NoError(t, client.Do(t.Context(), words...).Err(), line)
	}
	call("RL.POLICY SET login SLIDE 1 1h BAN 1 5m 1h")
	call("RL.POLICY SET net SLIDE 5 1h IP4 24")
	const ids = 30
	for i := range ids {
		call(fmt.Sprint("RL.POLICY SET login SLIDE 1 2h FOR id", i))
		for range 2 {
			call(fmt.Sprint("RL.CHECK id", i, " login"))
		}
	}
	type answer struct {
		Cursor   string
		Removed  int
		IDs      []struct{ Name, Policy, Definition string }
		Policies []struct {
			Name           string
			Problem        string
			Remaining, Ban int
		}
	}
	post := func(node int, path, body string) (a answer) {
		response, err := http.Post("http://127.0.0.1:"+pages[node]+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode, "%s: %s", path, text)
		require.NoError(t, json.Unmarshal(text, &a))
		return a
	}
	list := func(node int, path, policy string) map[string]bool {
		found := make(map[string]bool)
		for cursor := ""; cursor != "0"; {
			a := post(node, path, fmt.Sprintf(`{"policy":%q,"cursor":%q}`, policy, cursor))
			for _, id := range a.IDs {
				found[id.Name] = true
			}
			cursor = a.Cursor
		}
		return found
	}
	about := func(id string) string {
		return `{"policy":"login","id":"` + base64.StdEncoding.EncodeToString([]byte(id)) + `"}`
	}
	for node := range 3 {
		left := ids - node
		assert.Len(t, list(node, "/api/ids", "login"), left)
		assert.Len(t, list(node, "/api/banned", ""), left)
		assert.Len(t, list(node, "/api/overrides", "login"), ids)

		// an address counts in other places under other policies: it is shown all the same
		usage := post(node, "/api/usage", about("192.0.2.7"))
		assert.Len(t, usage.Policies, 2)
		for _, p := range usage.Policies {
			assert.Empty(t, p.Problem)
		}

		for i := node; i < ids; i++ {
			usage := post(node, "/api/usage", about(fmt.Sprint("id", i)))
			assert.Positive(t, usage.Policies[0].Ban, i)
			assert.Zero(t, usage.Policies[0].Remaining)
		}
		assert.Equal(t, 1, post(node, "/api/unban", about(fmt.Sprint("id", node))).Removed)
		assert.Equal(t, 1, post(node, "/api/reset", about(fmt.Sprint("id", node))).Removed)
	}
	for i := range ids { // of all nodes, whichever page was used
		post(i%3, "/api/reset", about(fmt.Sprint("id", i)))
	}
	assert.Empty(t, list(0, "/api/ids", "login"))
}
