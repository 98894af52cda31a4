package importer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rlserver/internal/smallfile"
)

const (
	// silence is after how long a server that sends nothing, or takes nothing, is given up.
	silence     = time.Minute
	dialTimeout = 10 * time.Second
	maxFile     = 1 << 20 // bytes, of a certificate or a password
	writePiece  = 64 << 10
)

// Endpoint is a server, and how to log in to it.
type Endpoint struct {
	URL          string // redis://, rediss:// or unix://
	PasswordFile string // its first line replaces the password of the URL; empty: none
	CA           string // file with the certificates to trust; empty: those of the system
	Cert, Key    string // files with the certificate of this client; empty: none
}

// options reads an endpoint.
func (e Endpoint) options() (*redis.Options, error) {
	// the errors of net/url would show the password
	if u, err := url.Parse(e.URL); err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return nil, errors.New("the address of a server must be redis://[[user]:password@]host[:port][/database], " +
			"rediss://… for TLS, or unix://[[user]:password@]path[?db=database]")
	}
	o, err := redis.ParseURL(e.URL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	if e.PasswordFile != "" {
		text, err := smallfile.Read(e.PasswordFile, maxFile)
		if err != nil {
			return nil, fmt.Errorf("the password of %s cannot be read: %w", e, err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		o.Password = strings.TrimSuffix(line, "\r")
	}
	if err := e.secure(o); err != nil {
		return nil, err
	}
	o.Protocol, o.DisableIdentity = 2, true
	o.PoolSize, o.PipelinePoolSize = 1, -1 // one connection
	o.MaxRetries, o.DialerRetries = -1, 1
	o.ReadTimeout, o.WriteTimeout = -1, -1 // patient has them
	o.Dialer = dialer(o.TLSConfig)
	return o, nil
}

// secure reads the certificates.
func (e Endpoint) secure(o *redis.Options) error {
	switch {
	case e.CA == "" && e.Cert == "" && e.Key == "":
		return nil
	case o.TLSConfig == nil:
		return fmt.Errorf("%s: certificates are for rediss://", e)
	case (e.Cert == "") != (e.Key == ""):
		return fmt.Errorf("%s: give the certificate of the client and its key, or neither", e)
	}
	if e.CA != "" {
		text, err := smallfile.Read(e.CA, maxFile)
		if err != nil {
			return err
		}
		o.TLSConfig.RootCAs = x509.NewCertPool()
		if !o.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s has no certificate in PEM", e.CA)
		}
	}
	if e.Cert != "" {
		pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
		if err != nil {
			return err
		}
		o.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// String returns the URL without the password.
func (e Endpoint) String() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "the server"
	}
	u.User = nil
	return u.String()
}

// dialer returns a function that connects patiently.
func dialer(config *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if config == nil {
			return patient{conn}, nil
		}
		config := config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr) // a node of a cluster has its own name
		return tls.Client(patient{conn}, config), nil
	}
}

// patient is a connection without deadlines for whole values, which may take long on a slow
// network: it fails if nothing moves.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	_ = p.Conn.SetReadDeadline(time.Now().Add(silence))
	return p.Conn.Read(b)
}

func (p patient) Write(b []byte) (written int, err error) {
	for err == nil && written < len(b) {
		_ = p.Conn.SetWriteDeadline(time.Now().Add(silence))
		var n int
		n, err = p.Conn.Write(b[written:min(len(b), written+writePiece)])
		written += n
	}
	return written, err
}

func (patient) SetDeadline(time.Time) error      { return nil }
func (patient) SetReadDeadline(time.Time) error  { return nil }
func (patient) SetWriteDeadline(time.Time) error { return nil }

// isReply reports whether an error is one that the server has replied, and not one of the network.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// code returns the first word of an error that a server has replied, as OOM, otherwise "".
func code(err error) string {
	if !isReply(err) {
		return ""
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	return word
}

// awaitLoaded waits until a server has loaded its data.
func awaitLoaded(ctx context.Context, client *redis.Client, waiting func()) error {
	for {
		err := client.Ping(ctx).Err()
		if code(err) != "LOADING" {
			return err
		}
		waiting()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(loadingInterval):
		}
	}
}

// loadingInterval is how often a server that loads its data is asked whether it has.
const loadingInterval = 200 * time.Millisecond
