package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// program is the server, built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rlserver")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "rlserver")
	build := exec.Command("go", "build", "-o", program, "./cmd/rlserver")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// check runs the server with --check-config in an environment and returns its output.
func check(t *testing.T, env map[string]string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(program, append(argv, "--check-config")...)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// secrets creates the files that a text names in /secrets in a temporary directory, and returns the
// text with that directory instead of /secrets.
func secrets(t *testing.T, text string) string {
	dir := t.TempDir()
	for _, match := range regexp.MustCompile(`/secrets/(\S+)`).FindAllStringSubmatch(text, -1) {
		require.NoError(
			t,
			os.WriteFile(filepath.Join(dir, match[1]), []byte("0123456789abcdef0123456789abcdef\n"), 0o600),
		)
	}
	return strings.ReplaceAll(text, "/secrets/", dir+"/")
}

func TestConfigurationFilesAreValid(t *testing.T) {
	check(t, nil, "rlserver.conf")
	certs := filepath.Join(t.TempDir(), "certs")
	out, err := exec.Command(program, "gen-cert", certs).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for own, name := range map[string]string{"tls.crt": "server.crt", "tls.key": "server.key"} {
		require.NoError(t, os.Rename(filepath.Join(certs, name), filepath.Join(certs, own)))
	}
	for file, want := range map[string]string{
		"deployment.yaml": `maxmemory +536870912`, "cluster.yaml": `cluster-enabled +yes`,
	} {
		for _, object := range manifest(t, "kubernetes/"+file) {
			if c, ok := object.(*core.ConfigMap); ok {
				text := strings.ReplaceAll(secrets(t, c.Data["rlserver.conf"]), " /tls/", " "+certs+"/")
				path := filepath.Join(t.TempDir(), "rlserver.conf")
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				out := check(t, nil, path)
				assert.Regexp(t, `(?m)^requirepass +\(hidden\)`, out)
				assert.Regexp(t, `(?m)^`+want+` `, out)
			}
		}
	}
}

// The variables that the image, compose and the manifests set are settings, with valid values.
func TestEnvironmentIsValid(t *testing.T) {
	for _, path := range []string{
		"docker/Dockerfile", "docker/compose.yaml", "docker/cluster.yaml", "kubernetes/sidecar.yaml",
	} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text = regexp.MustCompile(`(?m)^#.*$`).ReplaceAll(text, nil)
		text = []byte(secrets(t, strings.ReplaceAll(string(text), "/run/secrets/", "/secrets/")))
		env := make(map[string]string)
		pattern := regexp.MustCompile(`(RLSERVER_[A-Z_]+)(?:=|: |, value: )("[^"]*"|[^\s"}]+)`)
		for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
			if match[1] != "RLSERVER_SOCKET" { // of the application
				env[match[1]] = strings.Trim(match[2], `"`)
			}
		}
		require.GreaterOrEqual(t, len(env), 4, path)
		out := check(t, env)
		for name := range env {
			assert.Contains(t, out, " "+name+"\n", path)
		}
	}
}
