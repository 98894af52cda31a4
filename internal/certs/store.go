package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Store has the current certificate. Any goroutine may use it.
type Store struct {
	log *slog.Logger
	now func() time.Time

	current atomic.Pointer[tls.Config]

	mu      sync.Mutex // protects the following fields; held while files are read
	files   Files
	read    [3]stamp  // of the files when they were last read, valid or not
	checked [3]stamp  // of the files at the last check
	warned  time.Time // time of the last warning before the expiry
}

// New returns a store without a certificate. now decides whether a certificate has expired.
func New(now func() time.Time, log *slog.Logger) *Store { return &Store{log: log, now: now} }

// Loaded reports whether there is a certificate.
func (s *Store) Loaded() bool { return s.current.Load() != nil }

// Use reads files and makes their certificate the current one, also if the files are the same as
// before. After an error, which contains the invalid file, the current certificate stays in use.
func (s *Store) Use(files Files) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(files)
}

func (s *Store) use(files Files) error {
	stamps := files.stamps() // before reading, so that a change during the read is noticed later
	config, err := files.read(s.now(), s.log)
	if err != nil {
		return err
	}
	s.files, s.read, s.checked = files, stamps, stamps
	s.current.Store(config)
	s.warned = time.Time{}
	s.warnBeforeExpiry()
	return nil
}

// Config returns the configuration for a listener. It gets the current certificate from the store
// at each handshake, so it never has to be replaced. Without one all handshakes fail.
func (s *Store) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load(), nil },
	}
}

// OptionalConfig is Config for a listener whose clients need no certificate even if ClientAuth is
// Required. One that is presented must be valid.
func (s *Store) OptionalConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := s.current.Load()
			if config.ClientAuth == tls.RequireAndVerifyClientCert {
				config = config.Clone()
				config.ClientAuth = tls.VerifyClientCertIfGiven
			}
			return config, nil
		},
	}
}

// Nodes returns the configuration, for both sides, of connections between servers with certificates
// of the same CA. Each side authenticates itself with its certificate. The error contains the
// missing settings.
func (s *Store) Nodes() (*tls.Config, error) {
	authorities := s.current.Load().ClientCAs
	if authorities == nil {
		return nil, errors.New("nodes check each other's certificates against a CA: set tls-ca-cert-file, and " +
			"tls-auth-clients to yes or optional")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: authorities,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &s.current.Load().Certificates[0], nil
		},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := s.current.Load().Clone()
			config.ClientAuth = tls.RequireAndVerifyClientCert
			return config, nil
		},
	}, nil
}

// Expiry returns when the current certificate expires.
func (s *Store) Expiry() time.Time { return s.current.Load().Certificates[0].Leaf.NotAfter }

// Watch checks the files at an interval until the context ends, and reads them again when they have
// changed.
func (s *Store) Watch(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.check()
		}
	}
}

// check reads the files again if they have changed since the last read, but not since the last
// check.
func (s *Store) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Loaded() {
		return
	}
	s.warnBeforeExpiry()
	stamps := s.files.stamps()
	settled := stamps == s.checked
	s.checked = stamps
	if stamps == s.read || !settled {
		return
	}
	if err := s.use(s.files); err != nil {
		s.read = stamps // do not report the same files twice
		s.log.Error("the new certificate is invalid, the old one stays in use", "error", err)
		return
	}
	s.log.Info("the certificate was read again", "file", s.files.Cert, "expires", date(s.Expiry()))
}

// warnBeforeExpiry logs once a day that the certificate is about to expire, or has expired.
func (s *Store) warnBeforeExpiry() {
	now, expiry := s.now(), s.Expiry()
	if expiry.Sub(now) > expiryWarning || now.Sub(s.warned) < 24*time.Hour && !s.warned.IsZero() {
		return
	}
	s.warned = now
	if now.After(expiry) {
		s.log.Error("the certificate has expired: clients refuse it", "file", s.files.Cert, "expired", date(expiry))
		return
	}
	s.log.Warn("the certificate expires soon", "file", s.files.Cert, "expires", date(expiry))
}
