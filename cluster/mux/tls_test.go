package mux

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/certs"
)

// nodeTLS returns the configuration of a node with a certificate of a new CA.
func nodeTLS(t *testing.T) *tls.Config {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, certs.Generate(dir, []string{"127.0.0.1"}, time.Now()))
	store, err := certs.Open(certs.Files{
		Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), CA: filepath.Join(dir, "ca.crt"),
		ClientAuth: certs.Required,
	}, time.Now, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	config, err := store.Nodes()
	require.NoError(t, err)
	return config
}

func TestNodesProveThemselvesToEachOther(t *testing.T) {
	own, foreign := nodeTLS(t), nodeTLS(t)
	port := func(config *tls.Config) *Port {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p := New(Options{Listener: l, TLS: config, Resolve: func(node string) (string, error) { return node, nil }})
		t.Cleanup(func() { p.Close() })
		return p
	}
	b := port(own)
	go echo(b.Layer(Control), "control")
	c, err := port(own).Dial(b.Addr().String(), Control, patience)
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "control", string(got))
	c.Close()

	nobody := own.Clone()
	nobody.GetClientCertificate = nil
	trusting := foreign.Clone()
	trusting.RootCAs = own.RootCAs
	for what, config := range map[string]*tls.Config{
		"without TLS": nil, "of another CA": foreign, "without a certificate": nobody,
		"with a certificate of another CA": trusting,
	} {
		_, err := port(config).Dial(b.Addr().String(), Control, patience)
		assert.Error(t, err, what)
	}
}
