package config

import (
	"strings"

	"rlserver/internal/certs"
)

// TLSFiles are the parameters of TLS that can change while the server runs, as CONFIG GET returns
// them.
type TLSFiles struct {
	Cert, Key, CA string // files
	AuthClients   string // yes, no or optional; empty: yes
	Protocols     string // empty: TLSv1.2 and TLSv1.3
}

// Files returns the parameters in the types of package certs.
func (t TLSFiles) Files() certs.Files {
	return certs.Files{
		Cert: t.Cert, Key: t.Key, CA: t.CA,
		ClientAuth: certs.ClientAuth(strings.ToLower(t.AuthClients)), Protocols: t.Protocols,
	}
}

// TLS returns the current parameters of TLS.
func (s *Settings) TLS() TLSFiles { return *s.tls.Load() }

// tlsText returns the value of a parameter of TLS. at returns its field; check may be nil. CONFIG
// SET reads the files, with all changes of one call together, before it calls apply.
func tlsText(at func(*TLSFiles) *string, check func(string) error) Value {
	return Value{
		TLS: at,
		Get: func(s *Settings) string {
			files := s.TLS()
			return *at(&files)
		},
		Set: func(s *Settings, value string) (func(), error) {
			if check != nil {
				if err := check(value); err != nil {
					return nil, err
				}
			}
			return func() {
				files := s.TLS()
				*at(&files) = value
				s.tls.Store(&files)
			}, nil
		},
	}
}

// clientAuth returns the value of tls-auth-clients, in any case.
func clientAuth() Value {
	v := tlsText(func(t *TLSFiles) *string { return &t.AuthClients }, func(value string) error {
		_, err := oneOf([]string{"no", "yes", "optional"}, value)
		return err
	})
	get := v.Get
	v.Get = func(s *Settings) string { return strings.ToLower(get(s)) }
	return v
}

// checkProtocols checks a value of tls-protocols.
func checkProtocols(value string) error {
	if _, _, err := certs.ParseProtocols(value); err != nil {
		return valueError("argument must be TLSv1.2, TLSv1.3 or both")
	}
	return nil
}
