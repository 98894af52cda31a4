package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// generated creates certificates in a temporary directory.
func generated(t *testing.T, now time.Time) (dir string, files Files) {
	dir = t.TempDir()
	require.NoError(t, Generate(dir, []string{"limits.example", "192.0.2.7"}, now))
	return dir, Files{
		Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"),
		CA: filepath.Join(dir, "ca.crt"), ClientAuth: Required,
	}
}

func open(t *testing.T, files Files) (*Store, *bytes.Buffer) {
	log := new(bytes.Buffer)
	s, err := opened(files, time.Now, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	return s, log
}

// handshake connects a client to a server that uses a store, and returns the certificate that the
// client received.
func handshake(t *testing.T, s *Store, client *tls.Config) (*x509.Certificate, error) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	server := tls.Server(b, s.Config())
	go func() {
		if server.Handshake() == nil {
			server.Write([]byte("x"))
		}
		b.Close()
	}()
	conn := tls.Client(a, client)
	// in TLS 1.3 a rejected client gets the error at its first read
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

func clientConfig(t *testing.T, dir string, name string) *tls.Config {
	text, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key"))
	require.NoError(t, err)
	return &tls.Config{RootCAs: pool, ServerName: name, Certificates: []tls.Certificate{pair}}
}

func TestHandshakeWithGeneratedCertificates(t *testing.T) {
	dir, files := generated(t, time.Now())
	s, log := open(t, files)
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "limits.example", "192.0.2.7"} {
		_, err := handshake(t, s, clientConfig(t, dir, name))
		assert.NoError(t, err, name)
	}
	_, err := handshake(t, s, clientConfig(t, dir, "other.example"))
	assert.Error(t, err)
	assert.Empty(t, log.String())
	for _, key := range []string{"server.key", "client.key"} {
		info, err := os.Stat(filepath.Join(dir, key))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	assert.WithinDuration(t, time.Now().Add(validity), s.Expiry(), time.Minute)
}

func TestGenerateOverwritesNothing(t *testing.T) {
	for _, name := range []string{"ca.crt", "server.crt", "server.key", "client.crt", "client.key"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		require.NoError(t, os.Symlink("elsewhere", path))
		assert.EqualError(t, Generate(dir, nil, time.Now()),
			path+" exists already: name another directory, or remove it")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, entries, 1)
	}
}

func TestGenerateRejectsInvalidHosts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	for _, host := range []string{
		"", "https://limits.example", "a b", "limits.example:6380", "ä.example", "*", "a..b",
	} {
		assert.ErrorContains(t, Generate(dir, []string{host}, time.Now()), "is neither a host name nor an IP address")
	}
	assert.NoDirExists(t, dir)
	assert.NoError(t, Generate(dir, []string{"*.limits.example", "2001:db8::1", "redis_0"}, time.Now()))
}

func TestClientAuthDecidesWhetherACertificateIsRequired(t *testing.T) {
	dir, files := generated(t, time.Now())
	for auth, accepted := range map[ClientAuth]bool{Required: false, Optional: true, None: true} {
		files.ClientAuth = auth
		s, _ := open(t, files)
		client := clientConfig(t, dir, "localhost")
		client.Certificates = nil
		_, err := handshake(t, s, client)
		assert.Equal(t, accepted, err == nil, "%s: %v", auth, err)
	}
}

func TestClientCertificatesOfAnotherCAAreRejected(t *testing.T) {
	dir, files := generated(t, time.Now())
	other, _ := generated(t, time.Now())
	for _, auth := range []ClientAuth{Required, Optional} {
		files.ClientAuth = auth
		s, _ := open(t, files)
		client := clientConfig(t, dir, "localhost")
		client.Certificates = clientConfig(t, other, "localhost").Certificates
		// Go's client sends no certificate if the server does not list its CA
		client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &client.Certificates[0], nil
		}
		_, err := handshake(t, s, client)
		assert.Error(t, err, auth)
	}
}

func TestProtocolsLimitTheTLSVersions(t *testing.T) {
	dir, files := generated(t, time.Now())
	const v10, v11, v12, v13 = tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13
	for protocols, accepted := range map[string][]uint16{
		"": {v12, v13}, "TLSv1.2 TLSv1.3": {v12, v13}, " tlsv1.3 tlsv1.2 ": {v12, v13}, "TLSv1.2": {v12},
		"TLSv1.3": {v13},
	} {
		files.Protocols = protocols
		s, _ := open(t, files)
		for _, version := range []uint16{v10, v11, v12, v13} {
			client := clientConfig(t, dir, "localhost")
			client.MinVersion, client.MaxVersion = version, version
			_, err := handshake(t, s, client)
			if slices.Contains(accepted, version) {
				assert.NoError(t, err, "%q %x", protocols, version)
			} else {
				assert.Error(t, err, "%q %x", protocols, version)
			}
		}
	}
}

// replace renames all files of one directory into another.
func replace(t *testing.T, from, to string) {
	for _, name := range []string{"server.crt", "server.key", "ca.crt", "client.crt", "client.key"} {
		require.NoError(t, os.Rename(filepath.Join(from, name), filepath.Join(to, name)))
	}
}

func TestChangedFilesAreReadAgain(t *testing.T) {
	dir, files := generated(t, time.Now())
	s, log := open(t, files)
	before, err := handshake(t, s, clientConfig(t, dir, "localhost"))
	require.NoError(t, err)
	s.check()
	assert.Empty(t, log.String(), "nothing has changed")

	other, _ := generated(t, time.Now())
	replace(t, other, dir)
	s.check()
	assert.Empty(t, log.String(), "the change may not be complete")
	s.check()
	after, err := handshake(t, s, clientConfig(t, dir, "localhost"))
	require.NoError(t, err)
	assert.NotEqual(t, before.SerialNumber, after.SerialNumber)
	assert.Contains(t, log.String(), "read again")
}

func TestWatchReadsChangedFiles(t *testing.T) {
	dir, files := generated(t, time.Now())
	s, _ := open(t, files)
	before := s.current.Load()
	go s.Watch(t.Context(), time.Millisecond)
	other, _ := generated(t, time.Now())
	replace(t, other, dir)
	assert.Eventually(t, func() bool { return s.current.Load() != before }, time.Minute, time.Millisecond)
}

// Kubernetes updates files by replacing a symbolic link to their directory.
func TestReplacedLinkToTheDirectoryIsNoticed(t *testing.T) {
	first, _ := generated(t, time.Now())
	second, _ := generated(t, time.Now())
	link := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Symlink(first, link))
	s, _ := open(t, Files{Cert: link + "/server.crt", Key: link + "/server.key", ClientAuth: None})
	before := s.current.Load()
	require.NoError(t, os.Symlink(second, link+".new"))
	require.NoError(t, os.Rename(link+".new", link))
	s.check()
	s.check()
	assert.NotEqual(t, before.Certificates[0].Leaf.SerialNumber, s.current.Load().Certificates[0].Leaf.SerialNumber)
}

// A new certificate is rejected until its key is there too.
func TestCertificateIsUsedOnceItsKeyMatches(t *testing.T) {
	dir, files := generated(t, time.Now())
	other, _ := generated(t, time.Now())
	s, log := open(t, files)
	before := s.current.Load()
	require.NoError(t, os.Rename(other+"/server.crt", dir+"/server.crt"))
	s.check()
	s.check()
	assert.Same(t, before, s.current.Load())
	assert.Contains(t, log.String(), "private key does not match")
	require.NoError(t, os.Rename(other+"/server.key", dir+"/server.key"))
	s.check()
	s.check()
	assert.NotSame(t, before, s.current.Load())
}

func TestInvalidNewCertificateKeepsTheOldOne(t *testing.T) {
	dir, files := generated(t, time.Now())
	s, log := open(t, files)
	require.NoError(t, os.WriteFile(files.Cert, []byte("-----BEGIN CERTIFICATE-----\nno\n"), 0o644))
	s.check()
	s.check()
	_, err := handshake(t, s, clientConfig(t, dir, "localhost"))
	assert.NoError(t, err)
	assert.Contains(t, log.String(), "the old one stays in use")
	assert.Contains(t, log.String(), files.Cert)
	logged := log.Len()
	s.check()
	s.check()
	assert.Equal(t, logged, log.Len(), "the same file is not reported twice")

	assert.Error(t, s.Use(Files{Cert: dir + "/missing", Key: files.Key, ClientAuth: None}))
	_, err = handshake(t, s, clientConfig(t, dir, "localhost"))
	assert.NoError(t, err)
}

func TestOpenReportsInvalidFiles(t *testing.T) {
	dir, files := generated(t, time.Now())
	other, _ := generated(t, time.Now())
	pipe, empty, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "empty"), filepath.Join(dir, "large")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	require.NoError(t, os.WriteFile(large, make([]byte, maxFile+1), 0o644))
	old := Files{Cert: files.Cert, Key: files.Key, ClientAuth: None, Protocols: "TLSv1.1"}
	for want, f := range map[string]Files{
		"set tls-cert-file":                  {Key: files.Key, ClientAuth: None},
		"set tls-key-file":                   {Cert: files.Cert, ClientAuth: None},
		"no such file":                       {Cert: dir + "/missing", Key: files.Key, ClientAuth: None},
		"regular file, but is a named pipe":  {Cert: pipe, Key: files.Key, ClientAuth: None},
		"regular file, but is a directory":   {Cert: files.Cert, Key: dir, ClientAuth: None},
		"private key does not match":         {Cert: files.Cert, Key: other + "/server.key", ClientAuth: None},
		"set tls-ca-cert-file":               {Cert: files.Cert, Key: files.Key, ClientAuth: Required},
		"empty has no certificate in PEM":    {Cert: files.Cert, Key: files.Key, CA: empty, ClientAuth: Optional},
		"must be yes, no or optional":        {Cert: files.Cert, Key: files.Key, ClientAuth: "maybe"},
		"large is too large":                 {Cert: large, Key: files.Key, ClientAuth: None},
		"failed to find any PEM data":        {Cert: empty, Key: files.Key, ClientAuth: None},
		`both, not "TLSv1.1"`:                old,
		"failed to find certificate PEM dat": {Cert: files.Key, Key: files.Key, ClientAuth: None},
	} {
		_, err := opened(f, time.Now, slog.New(slog.DiscardHandler))
		assert.ErrorContains(t, err, want)
	}
}

func TestExpiredCertificateIsRejected(t *testing.T) {
	_, files := generated(t, time.Now().Add(-2*validity))
	_, err := opened(files, time.Now, slog.New(slog.DiscardHandler))
	assert.ErrorContains(t, err, "the certificate "+files.Cert+" expired on ")
}

func TestExpiryIsLoggedOnceADay(t *testing.T) {
	_, files := generated(t, time.Now())
	log, now := new(bytes.Buffer), time.Now()
	s, err := opened(files, func() time.Time { return now }, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	lines := func(text string) int { return bytes.Count(log.Bytes(), []byte(text)) }
	s.check()
	assert.Zero(t, log.Len())
	now = s.Expiry().Add(-25 * time.Hour)
	s.check()
	s.check()
	assert.Equal(t, 1, lines("expires soon"))
	now = s.Expiry().Add(time.Hour)
	s.check()
	s.check()
	assert.Equal(t, 1, lines("has expired"))
}

func TestNotYetValidIsLogged(t *testing.T) {
	_, files := generated(t, time.Now().Add(48*time.Hour))
	_, log := open(t, files)
	assert.Contains(t, log.String(), "not valid yet")
}

func TestKeyReadableByOtherUsersIsLogged(t *testing.T) {
	_, files := generated(t, time.Now())
	require.NoError(t, os.Chmod(files.Key, 0o644))
	_, log := open(t, files)
	assert.Contains(t, log.String(), "other users may read the private key")
	assert.Contains(t, log.String(), files.Key)
}

// opened is New and Use.
func opened(files Files, now func() time.Time, log *slog.Logger) (*Store, error) {
	s := New(now, log)
	return s, s.Use(files)
}
