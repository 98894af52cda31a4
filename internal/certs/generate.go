package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// hostName matches host names that a certificate can be valid for.
var hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// validity is how long the certificates of Generate are valid.
const validity = 365 * 24 * time.Hour

// Generate writes certificates for tests to a directory, which it creates if necessary:
//
//	ca.crt                  a CA, whose private key is discarded
//	server.crt, server.key  for localhost, the loopback addresses, and hosts, names or addresses
//	client.crt, client.key  for clients
//
// They are valid for a year from now. If one of the files exists, Generate returns an error and
// writes nothing.
func Generate(dir string, hosts []string, now time.Time) error {
	for _, host := range hosts {
		if net.ParseIP(host) == nil && !hostName.MatchString(host) {
			return fmt.Errorf("%.128q is neither a host name nor an IP address", host)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := generate(hosts, now)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already: name another directory, or remove it", filepath.Join(dir, f.name))
		}
	}
	for i, f := range files {
		if err := f.write(dir); err != nil {
			for _, written := range files[:i] {
				os.Remove(filepath.Join(dir, written.name))
			}
			return err
		}
	}
	return nil
}

// generate returns the files that Generate writes.
func generate(hosts []string, now time.Time) ([]file, error) {
	ca, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "rlserver CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil, now)
	if err != nil {
		return nil, err
	}
	files := []file{{"ca.crt", "CERTIFICATE", ca.cert.Raw, 0o644}}
	for name, template := range map[string]*x509.Certificate{
		"server": serverTemplate(hosts),
		"client": {
			Subject:     pkix.Name{CommonName: "rlserver client"},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
	} {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		leaf, err := sign(template, ca, now)
		if err != nil {
			return nil, err
		}
		key, err := x509.MarshalPKCS8PrivateKey(leaf.key)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name + ".key", "PRIVATE KEY", key, 0o600},
			file{name + ".crt", "CERTIFICATE", leaf.cert.Raw, 0o644})
	}
	return files, nil
}

func serverTemplate(hosts []string) *x509.Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "rlserver"},
		// cluster nodes use it both as server and as client
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range append([]string{"localhost", "127.0.0.1", "::1"}, hosts...) {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// signed is a certificate with its private key.
type signed struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// sign creates a private key and a certificate for it. If issuer is nil, the certificate is
// self-signed.
func sign(template *x509.Certificate, issuer *signed, now time.Time) (*signed, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	// an hour ago, for clients whose clock is slow
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(validity)
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &signed{cert, key}, err
}

// file is a file in PEM.
type file struct {
	name  string
	block string // type of the PEM block
	der   []byte
	mode  fs.FileMode
}

// write creates the file. After an error the file does not exist.
func (f file) write(dir string) error {
	path := filepath.Join(dir, f.name)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	err = errors.Join(pem.Encode(out, &pem.Block{Type: f.block, Bytes: f.der}), out.Close())
	if err != nil {
		os.Remove(path)
	}
	return err
}
