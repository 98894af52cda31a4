package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rlserver/internal/certs"
	"rlserver/resp/config"
)

// certificateInterval is how often the server checks whether the files of its certificate have
// changed.
const certificateInterval = time.Second

// openCertificates reads the certificates of TLS, if a TLS port or a certificate is configured.
func openCertificates(s *config.Settings, now func() time.Time, log *slog.Logger) (*certs.Store, error) {
	files, store := s.TLS().Files(), certs.New(now, log)
	if s.Ports().TLSPort == 0 && files.Cert == "" {
		return store, nil
	}
	if err := store.Use(files); err != nil {
		return nil, fmt.Errorf("TLS cannot be used: %w", err)
	}
	return store, nil
}

// watchCertificates reads the certificates again when their files change, until stop is called.
func (p *parts) watchCertificates() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { p.certs.Watch(ctx, certificateInterval) })
	return func() {
		cancel()
		watching.Wait()
	}
}

// genCert generates certificates and prints example commands that use them.
func genCert(args []string, out io.Writer) error {
	if len(args) == 0 || slices.ContainsFunc(args, func(arg string) bool { return arg == "" || arg[0] == '-' }) {
		return errors.New("name the directory of the certificates: rlserver gen-cert DIR [HOST ...]")
	}
	dir := args[0]
	if err := certs.Generate(dir, args[1:], time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(
		out,
		"rlserver --tls-port 6380 --tls-cert-file %[1]s/server.crt --tls-key-file %[1]s/server.key "+
			"--tls-ca-cert-file %[1]s/ca.crt\n"+
			"redis-cli -p 6380 --tls --cacert %[1]s/ca.crt --cert %[1]s/client.crt --key %[1]s/client.key\n",
		dir,
	)
	return err
}
