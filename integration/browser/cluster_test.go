package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveCluster starts three nodes until the test ends, and returns a client of each, and the
// addresses of their pages.
func serveCluster(t *testing.T) (clients []*redis.Client, pages []string) {
	t.Helper()
	var ports, between []string
	for range 3 {
		ports, between = append(ports, freePort(t)), append(between, "127.0.0.1:"+freePort(t))
	}
	for i := range 3 {
		web := freePort(t)
		cmd := exec.Command(binary, "--cluster", "--bootstrap-expect", "3", "--join", strings.Join(between, ","),
			"--node-id", fmt.Sprint("node-", i), "--bind", "127.0.0.1", "--port", ports[i], "--cluster-groups", "6",
			"--cluster-port", strings.TrimPrefix(between[i], "127.0.0.1:"), "--http-port", web, "--dir", t.TempDir())
		var output bytes.Buffer
		cmd.Stderr = &output
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			assert.NoError(t, cmd.Wait(), "%s", &output)
		})
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + ports[i], Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { client.Close() })
		clients, pages = append(clients, client), append(pages, "http://127.0.0.1:"+web+"/")
	}
	for _, client := range clients { // until each leads as many groups as it should
		require.Eventually(t, func() bool {
			info := client.Info(t.Context(), "cluster").Val()
			return strings.Contains(info, "cluster_groups_led:2\r\n") &&
				strings.Contains(info, "cluster_groups_without_leader:0\r\n")
		}, patience, 20*time.Millisecond)
	}
	return clients, pages
}

// The page of a node shows the nodes, and who leads which group, as INFO does: by keyboard, in both
// themes and on a phone.
func TestThePageOfACluster(t *testing.T) {
	t.Parallel()
	clients, pages := serveCluster(t)
	b := open(t, pages[1], 1400, 1000, "light")
	b.await(`document.querySelectorAll("#nodes tbody tr").length === 3 &&
		document.querySelectorAll("#groups tbody tr").length === 6`)
	leaders := func() (list []string) {
		text := clients[1].Info(t.Context(), "replication").Val()
		for _, found := range regexp.MustCompile(`group\d:.*,leader=([^,]*),`).FindAllStringSubmatch(text, -1) {
			list = append(list, found[1])
		}
		return list
	}
	// leadership may move while both are looked at
	require.Eventually(t, func() bool {
		shown := ask[[]string](b, `[...document.querySelectorAll("#groups tbody tr")].map((r) => r.dataset.leader)`)
		return strings.Join(shown, " ") == strings.Join(leaders(), " ") && !strings.Contains(fmt.Sprint(shown), "  ")
	}, patience, 100*time.Millisecond)
	b.await(`document.querySelector('#nodes tr[data-key="node-1"] [data-name="state"]').textContent === "this node"`)
	b.await(`document.querySelector('#nodes tr[data-key="node-0"] [data-name="state"]').textContent === "up"`)
	b.await(`document.getElementById("status").dataset.level === "ok"`)
	assert.Contains(t, b.text("cluster-note"), "3 of 3 nodes are up; this one, node-1, leads ")

	// what is denied by a partition that this node leads is in the list, and opens
	denied := false
	for i := range 100 {
		call := []any{"RL.FIXED", fmt.Sprint("key", i), 1, "1h"}
		if err := clients[1].Do(t.Context(), call...).Err(); err != nil {
			require.ErrorContains(t, err, "MOVED")
			continue
		}
		require.NoError(t, clients[1].Do(t.Context(), call...).Err())
		denied = true
		break
	}
	require.True(t, denied)
	b.await(`document.querySelectorAll("#denied li").length === 1`)
	b.do(chromedp.Click(chromedp.CSS("#denied li:first-child button")))
	b.await(`document.getElementById("key-remaining").textContent === "0"`)
	b.do(chromedp.KeyEvent(kb.Escape))

	// ids of all nodes, whichever leads them
	require.NoError(t, clients[1].Do(t.Context(), "RL.POLICY", "SET", "login", "SLIDE", 5, "1h").Err())
	for i := range 12 {
		for _, client := range clients {
			if client.Do(t.Context(), "RL.CHECK", fmt.Sprint("id", i), "login").Err() == nil {
				break
			}
		}
	}
	b.await(`document.querySelectorAll("#policies .link").length === 1`)
	b.click("#policies .link")
	b.awaitRows("rows", 12)
	for range 12 {
		b.click("#rows .link")
		b.awaitRows("usage", 1)
		b.click("#usage [aria-label='Reset login']")
		b.click("#usage [aria-label='Reset login']")
		b.await(`document.querySelector("#usage [data-name=remaining]")?.textContent === "5"`)
		b.do(chromedp.KeyEvent(kb.Escape))
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#rows tbody tr").remove()`))
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.click("#policies .link")
	b.await(`document.getElementById("list-state").textContent.startsWith("No id has used")`)
	b.do(chromedp.KeyEvent(kb.Escape))

	regions := map[string]bool{}
	for range 30 {
		b.do(chromedp.KeyEvent(kb.Tab))
		regions[ask[string](b, `document.activeElement.getAttribute("aria-label") ?? ""`)] = true
	}
	assert.True(t, regions["Nodes of the cluster"], "%v", regions)
	assert.True(t, regions["Groups of slots and their leaders"], "%v", regions)

	for _, screen := range []struct {
		name, theme   string
		width, height int64
	}{{"cluster", "light", 1400, 1000}, {"cluster-dark", "dark", 1400, 1000}, {"cluster-phone", "dark", 360, 780}} {
		b := open(t, pages[0], screen.width, screen.height, screen.theme)
		b.await(`document.querySelectorAll("#groups tbody tr").length === 6`)
		b.assertLegible(screen.name, screen.width)
	}
}
