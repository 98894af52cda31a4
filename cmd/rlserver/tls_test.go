package main

import (
	"bytes"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/certs"
)

func TestGenCertWritesCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	var out bytes.Buffer
	require.NoError(t, run([]string{"gen-cert", dir, "limits.example"}, &out))
	assert.Contains(t, out.String(), "--tls-cert-file "+dir+"/server.crt")
	_, err := tls.LoadX509KeyPair(dir+"/server.crt", dir+"/server.key")
	assert.NoError(t, err)
	assert.ErrorContains(t, run([]string{"gen-cert", dir}, &out), "exists already")
	for _, args := range [][]string{{"gen-cert"}, {"gen-cert", ""}, {"gen-cert", "--force", dir}} {
		assert.ErrorContains(t, run(args, &out), "name the directory of the certificates")
	}
}

// A server with invalid TLS settings does not start, and --check-config reports the same error.
func TestInvalidTLSSettingsAreRejected(t *testing.T) {
	dir, other, expired := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, certs.Generate(dir, nil, time.Now()))
	require.NoError(t, certs.Generate(other, nil, time.Now()))
	require.NoError(t, certs.Generate(expired, nil, time.Now().AddDate(-2, 0, 0)))
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	cert, key := "--tls-cert-file "+dir+"/server.crt ", "--tls-key-file "+dir+"/server.key "
	ca := "--tls-ca-cert-file " + dir + "/ca.crt "
	const cannot = "TLS cannot be used: "
	for flags, want := range map[string]string{
		"":   cannot + "TLS needs a certificate: set tls-cert-file",
		cert: cannot + "the certificate " + dir + "/server.crt needs its private key: set tls-key-file",
		cert + key: cannot + "the certificates of clients are checked against a CA: set tls-ca-cert-file, " +
			"or tls-auth-clients to no",
		cert + "--tls-key-file " + other + "/server.key": cannot + dir + "/server.crt and " + other +
			"/server.key: tls: private key does not match public key",
		"--tls-cert-file " + pipe + " " + key:    cannot + pipe + " must be a regular file, but is a named pipe",
		cert + key + "--tls-ca-cert-file " + dir: cannot + dir + " must be a regular file, but is a directory",
		"--tls-cert-file " + expired + "/server.crt --tls-key-file " + expired + "/server.key " + ca: cannot +
			"the certificate " + expired + "/server.crt expired on ",
		cert + key + ca + "--port 1 --tls-port 1": "--port and " +
			"--tls-port must differ, both are 1",
		"--port 6379 --tls-port " + port + " --unixsocket x --bind 127.0.0.1 " + cert + key + ca: "cannot listen on ",
		"--tls-auth-clients maybe": `--tls-auth-clients "maybe": argument(s) must be one of the following: no, yes, ` +
			"optional",
		"--tls-protocols TLSv1.1": `--tls-protocols "TLSv1.1": argument must be TLSv1.2, TLSv1.3 or both; ` +
			"an example is 'TLSv1.2 TLSv1.3'",
		"--tls-port 70000": `--tls-port "70000": argument must be between 0 and 65535 inclusive`,
	} {
		for _, check := range []string{"", " --check-config"} {
			if check != "" && strings.Contains(want, "cannot listen") {
				continue
			}
			cmd := exec.Command(program, strings.Fields("--port 0 --tls-port "+port+" "+flags+check)...)
			var stderr bytes.Buffer
			cmd.Stderr, cmd.Dir = &stderr, t.TempDir()
			require.Error(t, cmd.Run(), flags)
			last := stderr.String()[strings.LastIndex(strings.TrimSpace(stderr.String()), "\n")+1:]
			assert.True(t, strings.HasPrefix(last, "rlserver: "+want), "%s%s: %s", flags, check, last)
			entries, err := os.ReadDir(cmd.Dir)
			require.NoError(t, err)
			assert.True(t, len(entries) == 0 || strings.Contains(want, "cannot listen"), flags)
		}
	}
}

func TestTLSKeyReadableByOtherUsersIsLogged(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, certs.Generate(dir, nil, time.Now()))
	require.NoError(t, os.Chmod(dir+"/server.key", 0o640))
	p := start(t, "--tls-cert-file", dir+"/server.crt", "--tls-key-file", dir+"/server.key", "--tls-auth-clients", "no")
	p.connect()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.waitForExit())
	assert.Contains(t, p.stderr.String(), "other users may read the private key")
	assert.Contains(t, p.stderr.String(), "mode=640")
}
