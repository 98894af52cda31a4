package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	strict "sigs.k8s.io/yaml"
)

// dashboard returns the queries of the dashboard.
func dashboard(t *testing.T) (list []string) {
	var file struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	text, err := os.ReadFile("grafana/rlserver.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &file))
	for _, panel := range file.Panels {
		for _, target := range panel.Targets {
			list = append(list, target.Expr)
		}
	}
	require.Greater(t, len(list), 30)
	return list
}

// expressions returns the queries of the dashboard and the expressions of the alerts.
func expressions(t *testing.T) []string {
	list := dashboard(t)
	for _, rule := range alerts(t) {
		list = append(list, rule.Expr)
	}
	return list
}

type alert struct{ Alert, Expr string }

func alerts(t *testing.T) (list []alert) {
	var file struct{ Groups []struct{ Rules []alert } }
	text, err := os.ReadFile("prometheus/alerts.yaml")
	require.NoError(t, err)
	require.NoError(t, strict.Unmarshal(text, &file))
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	require.Greater(t, len(list), 10)
	return list
}

// freePort returns a port that is free at the moment.
func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	require.NoError(t, err)
	return port
}

// serve starts a server, and returns the address of its HTTP port and a function that makes calls:
// they are admitted, denied, and fail.
func serve(t *testing.T) (address string, use func()) {
	dir, ctx := t.TempDir(), context.Background()
	socket := filepath.Join(dir, "s")
	address = "127.0.0.1:" + freePort(t)
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--http-port", address[len("127.0.0.1:"):],
		"--http-bind", "127.0.0.1", "--maxmemory", "256mb",
		"--appendfsync", "always")
	server.Dir = dir
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	client := redis.NewClient(&redis.Options{
		// SAVE may wait for a busy disk
		Network: "unix", Addr: socket, ReadTimeout: time.Minute,
	})
	t.Cleanup(func() { client.Close() })
	require.Eventually(t, func() bool { return client.Ping(ctx).Err() == nil }, time.Minute, 10*time.Millisecond)
	return address, func() {
		for _, call := range []string{
			"RL.SLIDE a 1 1m", "RL.POLICY SET p SLIDE 1 1m", "RL.CHECK ann p", "RL.POLICY SET q SLIDE 1 1m SHADOW",
			"RL.CHECK ann q", "HGET a b", "INCR n", "SAVE",
		} {
			var args []any
			for _, word := range strings.Fields(call) {
				args = append(args, word)
			}
			if err := client.Do(ctx, args...).Err(); call != "HGET a b" {
				require.NoError(t, err, call)
			}
		}
	}
}

// serveNode starts a cluster of one node, and returns the address of its HTTP port when it is
// ready.
func serveNode(t *testing.T) (address string) {
	address = "127.0.0.1:" + freePort(t)
	node := exec.Command(program, "--cluster", "--bootstrap-expect", "1", "--node-id", "n", "--cluster-groups", "2",
		"--bind", "127.0.0.1", "--port", freePort(t), "--cluster-port", freePort(t), "--dir", t.TempDir(),
		"--http-port", address[len("127.0.0.1:"):], "--http-bind", "127.0.0.1")
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
	})
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
	return address
}

// exported returns the metrics of a server after some calls and of a node of a cluster, each with
// the names of its labels.
func exported(t *testing.T) map[string]map[string]bool {
	address, use := serve(t)
	use()
	found := map[string]map[string]bool{"up": {}}
	for _, address := range []string{address, serveNode(t)} {
		response, err := http.Get("http://" + address + "/metrics")
		require.NoError(t, err)
		defer response.Body.Close()
		samples(t, response.Body, found)
	}
	return found
}

func samples(t *testing.T, text io.Reader, found map[string]map[string]bool) {
	sample, label := regexp.MustCompile(`^([a-z_0-9]+)(\{.*\})? `), regexp.MustCompile(`([a-z_]+)="`)
	for lines := bufio.NewScanner(text); lines.Scan(); {
		match := sample.FindStringSubmatch(lines.Text())
		if match == nil {
			require.True(t, strings.HasPrefix(lines.Text(), "#"), lines.Text())
			continue
		}
		if found[match[1]] == nil {
			found[match[1]] = make(map[string]bool)
		}
		for _, l := range label.FindAllStringSubmatch(match[2], -1) {
			found[match[1]][l[1]] = true
		}
	}
}

// Every metric and label that the dashboard and the alerts name is exported.
func TestMetricsOfDashboardAndAlertsAreExported(t *testing.T) {
	metrics := exported(t)
	named := regexp.MustCompile(`\b((?:rlserver|process|go)_[a-z_]+|up)\b(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)"`)
	grouped := regexp.MustCompile(`\b(?:by|without) \(([a-z_, ]+)\)`)
	for _, expr := range expressions(t) {
		matches := named.FindAllStringSubmatch(expr, -1)
		assert.NotEmpty(t, matches, expr)
		known := map[string]bool{"instance": true, "job": true} // added by Prometheus
		for _, match := range matches {
			labels, ok := metrics[match[1]]
			assert.True(t, ok, "%s is not exported: %s", match[1], expr)
			for l := range labels {
				known[l] = true
			}
			for _, l := range label.FindAllStringSubmatch(match[2], -1) {
				assert.True(
					t,
					labels[l[1]] || l[1] == "instance" || l[1] == "job",
					"%s has no label %s: %s",
					match[1],
					l[1],
					expr,
				)
			}
		}
		for _, group := range grouped.FindAllStringSubmatch(expr, -1) {
			for _, l := range strings.Split(group[1], ",") {
				assert.True(t, known[strings.TrimSpace(l)], "no label %s: %s", l, expr)
			}
		}
	}
}

// docs/OPERATE.md explains every alert.
func TestAlertsAreExplained(t *testing.T) {
	text, err := os.ReadFile("../docs/OPERATE.md")
	require.NoError(t, err)
	for _, rule := range alerts(t) {
		assert.Contains(t, string(text), "`"+rule.Alert+"`")
	}
}

// tool returns the path of a program. If it is not installed the test is skipped, or fails if
// DEPLOY_TOOLS is set.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("DEPLOY_TOOLS") == "" {
		t.Skipf("%s is not installed", name)
	}
	require.NoError(t, err)
	return path
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(tool(t, name), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestAlertsAndQueriesAreValid(t *testing.T) {
	run(t, "promtool", "check", "rules", "--lint-fatal", "prometheus/alerts.yaml")
	run(t, "promtool", "test", "rules", "prometheus/alerts_test.yaml")
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for i, expr := range expressions(t) {
		expr = strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(expr)
		rules += fmt.Sprintf("  - {record: r%d, expr: %q}\n", i, expr)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(rules), 0o600))
	run(t, "promtool", "check", "rules", path)
}

// The unit is valid, and systemd rates its exposure below 2.0 of 10.
func TestUnitIsValidAndHardened(t *testing.T) {
	text, err := os.ReadFile("systemd/rlserver.service")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "rlserver.service")
	const installed = "ExecStart=/usr/bin/rlserver "
	require.Contains(t, string(text), installed)
	unit := strings.Replace(string(text), installed, "ExecStart="+program+" ", 1)
	require.NoError(t, os.WriteFile(path, []byte(unit), 0o600))
	assert.Empty(t, run(t, "systemd-analyze", "verify", path))
	run(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", path)
}
