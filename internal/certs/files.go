package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"rlserver/internal/smallfile"
)

// ClientAuth is the setting whether clients must present a certificate that the CA has signed. Its
// values are those of Redis' tls-auth-clients.
type ClientAuth string

const (
	Required ClientAuth = "yes"
	Optional ClientAuth = "optional" // a certificate that is presented must be valid
	None     ClientAuth = "no"
)

// Files are the files of a certificate, in PEM, and how they are used.
type Files struct {
	Cert       string // certificate of the server, followed by intermediate certificates
	Key        string // its private key
	CA         string // CA certificates for the clients; not read if ClientAuth is None
	ClientAuth ClientAuth
	Protocols  string // see ParseProtocols
}

// maxFile is the largest size of a file, in bytes.
const maxFile = 1 << 20

// expiryWarning is how long before the expiry of a certificate warnings start.
const expiryWarning = 14 * 24 * time.Hour

// ParseClientAuth reads a value of tls-auth-clients, in any case.
func ParseClientAuth(text string) (ClientAuth, error) {
	switch auth := ClientAuth(strings.ToLower(text)); auth {
	case Required, Optional, None:
		return auth, nil
	}
	return "", fmt.Errorf("tls-auth-clients must be yes, no or optional, not %.64q", text)
}

// ParseProtocols reads a value of tls-protocols: TLSv1.2 and TLSv1.3, or one of them. Empty text
// means both.
func ParseProtocols(text string) (least, most uint16, err error) {
	versions := map[string]uint16{"tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13}
	for _, word := range strings.Fields(text) {
		version, known := versions[strings.ToLower(word)]
		if !known {
			return 0, 0, fmt.Errorf("tls-protocols must be TLSv1.2, TLSv1.3 or both, not %.64q", word)
		}
		if least == 0 {
			least = version
		}
		least, most = min(least, version), max(most, version)
	}
	if least == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, nil
	}
	return least, most, nil
}

// read creates a configuration from the files. The error contains the invalid file. now decides
// whether a certificate has expired.
func (f Files) read(now time.Time, log *slog.Logger) (*tls.Config, error) {
	switch {
	case f.Cert == "":
		return nil, errors.New("TLS needs a certificate: set tls-cert-file")
	case f.Key == "":
		return nil, fmt.Errorf("the certificate %s needs its private key: set tls-key-file", f.Cert)
	}
	least, most, err := ParseProtocols(f.Protocols)
	if err != nil {
		return nil, err
	}
	pair, err := f.readPair(log)
	if err != nil {
		return nil, err
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificate %s expired on %s", f.Cert, date(pair.Leaf.NotAfter))
	}
	if now.Before(pair.Leaf.NotBefore) {
		log.Warn("the certificate is not valid yet", "file", f.Cert, "from", date(pair.Leaf.NotBefore))
	}
	config := &tls.Config{
		MinVersion: least, MaxVersion: most, Certificates: []tls.Certificate{pair},
		// the small records that begin each reply would cost one system call each
		DynamicRecordSizingDisabled: true,
	}
	return config, f.authenticateClients(config)
}

// readPair reads the certificate and its key. Leaf is set.
func (f Files) readPair(log *slog.Logger) (pair tls.Certificate, err error) {
	cert, err := smallfile.Read(f.Cert, maxFile)
	if err != nil {
		return pair, err
	}
	key, err := smallfile.Read(f.Key, maxFile)
	if err != nil {
		return pair, err
	}
	info, err := os.Stat(f.Key)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("other users may read the private key: chmod it to 600", "file", f.Key,
			"mode", fmt.Sprintf("%03o", info.Mode().Perm()))
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		return pair, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	if pair.Leaf == nil { // with GODEBUG=x509keypairleaf=0
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	return pair, err
}

// authenticateClients sets how handshakes request and check the client's certificate.
func (f Files) authenticateClients(config *tls.Config) error {
	switch f.ClientAuth {
	case None:
		return nil
	case Required:
		config.ClientAuth = tls.RequireAndVerifyClientCert
	case Optional:
		config.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		_, err := ParseClientAuth(string(f.ClientAuth))
		return err
	}
	if f.CA == "" {
		return errors.New("the certificates of clients are checked against a CA: set tls-ca-cert-file, " +
			"or tls-auth-clients to no")
	}
	text, err := smallfile.Read(f.CA, maxFile)
	if err != nil {
		return err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s has no certificate in PEM", f.CA)
	}
	return nil
}

// stamp identifies a state of a file. The zero value is that of a missing file.
type stamp struct {
	inode    uint64 // size and time may be equal if another file was renamed to this name
	size     int64
	modified time.Time
}

// stamps returns the states of the three files.
func (f Files) stamps() (list [3]stamp) {
	for i, name := range []string{f.Cert, f.Key, f.CA} {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		list[i] = stamp{size: info.Size(), modified: info.ModTime()}
		if system, ok := info.Sys().(*syscall.Stat_t); ok {
			list[i].inode = system.Ino
		}
	}
	return list
}

// date formats a time for messages.
func date(t time.Time) string { return t.UTC().Format(time.DateTime) }
