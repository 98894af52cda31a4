package mux

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
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
	store := certs.New(time.Now, slog.New(slog.DiscardHandler))
	require.NoError(t, store.Use(certs.Files{
		Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), CA: filepath.Join(dir, "ca.crt"),
		ClientAuth: certs.Required,
	}))
	config, err := store.Nodes()
	require.NoError(t, err)
	return config
}

// tlsPort returns the port of a node.
func tlsPort(t *testing.T, config *tls.Config) *Port {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := New(Options{
		Listener: l, TLS: config, Resolve: func(node string) (string, error) { return node, nil },
		Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { p.Close() })
	return p
}

func TestNodesProveThemselvesToEachOther(t *testing.T) {
	own, foreign := nodeTLS(t), nodeTLS(t)
	port := func(config *tls.Config) *Port { return tlsPort(t, config) }
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

// authority is a CA that signs the certificates of nodes.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string // file
}

func writePEM(t *testing.T, kind string, der []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// sign returns a certificate in DER and its key; nil signs itself.
func (a *authority) sign(t *testing.T, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber = big.NewInt(1)
	issuer, by := template, key
	if a != nil {
		issuer, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, by)
	require.NoError(t, err)
	return der, key
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	der, key := (*authority)(nil).sign(t, &x509.Certificate{
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key, writePEM(t, "CERTIFICATE", der)}
}

// node returns the configuration of a node that trusts a CA and has a certificate of another or the
// same one.
func (a *authority) node(t *testing.T, trusts *authority, change func(*x509.Certificate)) *tls.Config {
	t.Helper()
	template := &x509.Certificate{
		NotBefore: time.Now().Add(-30 * time.Minute), NotAfter: time.Now().Add(30 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	der, key := a.sign(t, template)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	store := certs.New(func() time.Time { return template.NotBefore }, slog.New(slog.DiscardHandler))
	require.NoError(t, store.Use(certs.Files{
		Cert: writePEM(t, "CERTIFICATE", der), Key: writePEM(t, "PRIVATE KEY", keyDER), CA: trusts.pem,
		ClientAuth: certs.Required,
	}))
	config, err := store.Nodes()
	require.NoError(t, err)
	return config
}

// The node that connects checks CA, time, usage of a server and name; the one that is called checks
// CA, time and usage of a client, and not the name.
func TestWhatIsCheckedOfTheCertificateOfANode(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	good := ours.node(t, ours, nil)
	usage := func(list ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = list }
	}
	for _, test := range []struct {
		what   string
		by     *authority
		change func(*x509.Certificate)
		// the errors when the node is called and when it calls; "": it is accepted
		called, caller string
	}{
		{"a good one", ours, nil, "", ""},
		{"of another CA", foreign, nil, "signed by unknown authority", "tls: unknown certificate authority"},
		{"of another name", ours, func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"other.example"}
		}, "cannot validate certificate for 127.0.0.1", ""},
		{"expired", ours, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
			"certificate has expired", "tls: expired certificate"},
		{"not valid yet", ours, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) },
			"certificate has expired or is not yet valid", "tls: expired certificate"},
		{"for servers alone", ours, usage(x509.ExtKeyUsageServerAuth), "", "tls: bad certificate"},
		{"for clients alone", ours, usage(x509.ExtKeyUsageClientAuth), "incompatible key usage", ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			node := test.by.node(t, ours, test.change)
			for _, side := range []struct {
				from, to *tls.Config
				want     string
			}{{good, node, test.called}, {node, good, test.caller}} {
				to := tlsPort(t, side.to)
				go echo(to.Layer(Control), "control")
				c, err := tlsPort(t, side.from).Dial(to.Addr().String(), Control, patience)
				if side.want != "" {
					require.ErrorContains(t, err, side.want)
					continue
				}
				require.NoError(t, err)
				c.Close()
			}
		})
	}
}
