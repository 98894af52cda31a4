package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Prometheus that scrapes a server in use and a node of a cluster has a result for every query of
// the dashboard.
func TestDashboardShowsData(t *testing.T) {
	binary := tool(t, "prometheus")
	server, use := serve(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"+
		"scrape_configs:\n- job_name: rlserver\n  static_configs: [{targets: [%q, %q]}]\n", server,
		serveNode(t)), 0o600))
	address := "127.0.0.1:" + freePort(t)
	prometheus := exec.Command(binary, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", address)
	require.NoError(t, prometheus.Start())
	t.Cleanup(func() {
		prometheus.Process.Kill()
		prometheus.Wait()
	})
	left := dashboard(t)
	for deadline := time.Now().Add(5 * time.Minute); len(left) > 0; time.Sleep(500 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "these queries have no result: %s", strings.Join(left, "\n"))
		use()
		var empty []string
		for _, query := range left {
			if !hasResult(address, query) {
				empty = append(empty, query)
			}
		}
		left = empty
	}
}

// hasResult reports whether a Prometheus returns series for a query, all with numbers. Rates are
// over 5 minutes, so that they include two scrapes on a slow machine.
func hasResult(address, query string) bool {
	query = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(query)
	response, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil {
		return false
	}
	for _, series := range answer.Data.Result {
		if series.Value[1] == "NaN" {
			return false
		}
	}
	return len(answer.Data.Result) > 0
}
