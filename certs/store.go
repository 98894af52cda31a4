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

// Store has the certificate that is in force. Any goroutine may use it.
type Store struct {
	log *slog.Logger
	now func() time.Time

	current atomic.Pointer[tls.Config]

	mu     sync.Mutex // of what follows; held while files are read
	files  Files
	read   [3]stamp  // of the files as they were last read, whether they were valid or not
	looked [3]stamp  // of the files as of the last look
	warned time.Time // when the log last said that the certificate expires
}

// Open reads the files. The error names the one that is invalid. now returns the time that decides
// whether a certificate has expired.
func Open(files Files, now func() time.Time, log *slog.Logger) (*Store, error) {
	s := &Store{log: log, now: now}
	if err := s.Use(files); err != nil {
		return nil, err
	}
	return s, nil
}

// Use reads files and puts them into force, also if they are those in force. If it returns an
// error, the certificate in force stays.
func (s *Store) Use(files Files) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(files)
}

func (s *Store) use(files Files) error {
	stamps := files.stamps() // before reading: a change meanwhile is noticed later
	config, err := files.read(s.now(), s.log)
	if err != nil {
		return err
	}
	s.files, s.read, s.looked = files, stamps, stamps
	s.current.Store(config)
	s.warned = time.Time{}
	s.warnBeforeExpiry()
	return nil
}

// Config returns the configuration for a listener. It asks the store at each handshake, so it never
// has to be replaced.
func (s *Store) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load(), nil },
	}
}

// OptionalConfig is Config for a listener whose clients may do without a certificate where
// ClientAuth is Required. One that is presented must be valid.
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

// Nodes returns the configuration for connections between servers that have certificates of the
// same CA, for both sides. Each side proves itself with its certificate. The error says what is
// missing.
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

// Expiry returns when the certificate in force expires.
func (s *Store) Expiry() time.Time { return s.current.Load().Certificates[0].Leaf.NotAfter }

// Watch looks at the files at an interval until the context ends, and reads them again when they
// have changed.
func (s *Store) Watch(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.look()
		}
	}
}

// look reads the files again if they differ from those last read, and are as in the last look.
func (s *Store) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnBeforeExpiry()
	stamps := s.files.stamps()
	settled := stamps == s.looked
	s.looked = stamps
	if stamps == s.read || !settled {
		return
	}
	if err := s.use(s.files); err != nil {
		s.read = stamps // so the same files are not reported twice
		s.log.Error("the new certificate is refused, the old one stays in force", "error", err)
		return
	}
	s.log.Info("the certificate was read again", "file", s.files.Cert, "expires", date(s.Expiry()))
}

// warnBeforeExpiry logs once a day that the certificate is about to expire, or has expired.
func (s *Store) warnBeforeExpiry() {
	now, expiry := s.now(), s.Expiry()
	if expiry.Sub(now) > expirySoon || now.Sub(s.warned) < 24*time.Hour && !s.warned.IsZero() {
		return
	}
	s.warned = now
	if now.After(expiry) {
		s.log.Error("the certificate has expired: clients refuse it", "file", s.files.Cert, "expired", date(expiry))
		return
	}
	s.log.Warn("the certificate expires soon", "file", s.files.Cert, "expires", date(expiry))
}
