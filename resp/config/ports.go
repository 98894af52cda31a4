package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"rlserver/engine"
	"rlserver/internal/certs"
	"rlserver/internal/listen"
)

// Ports returns where the server listens for clients by TCP.
func (s *Settings) Ports() listen.Ports { return *s.ports.Load() }

// port returns the value of a port for clients. CONFIG SET opens the new sockets, with all changes
// of one call together, before it calls apply.
func port(at func(*listen.Ports) *int) Value {
	return Value{
		Ports: func(p *listen.Ports, value string) { *at(p), _ = strconv.Atoi(value) },
		Get: func(s *Settings) string {
			ports := s.Ports()
			return strconv.Itoa(*at(&ports))
		},
		Set: func(s *Settings, value string) (func(), error) {
			n, err := between(0, math.MaxUint16, parseInteger, value)
			return func() {
				ports := s.Ports()
				*at(&ports) = int(n)
				s.ports.Store(&ports)
			}, err
		},
	}
}

func bind() Value {
	start := func(s *Settings, value string) (func(), error) {
		return func() {
			ports := s.Ports()
			ports.Bind = splitAddresses(value)
			s.ports.Store(&ports)
		}, nil
	}
	return Value{
		Ports: func(p *listen.Ports, value string) { p.Bind = splitAddresses(value) },
		Get:   func(s *Settings) string { return strings.Join(s.Ports().Bind, " ") },
		Start: start,
		Set: func(s *Settings, value string) (func(), error) {
			switch n := len(splitAddresses(value)); {
			case n > listen.MaxAddresses:
				return nil, valueError("Too many bind addresses specified.")
			case n == 0 && value != "":
				return nil, errBind
			}
			return start(s, value)
		},
	}
}

const (
	errBind = valueError("Failed to bind to specified addresses.")
	errPort = valueError("Unable to listen on this port. Check server logs.")
)

// splitAddresses splits a list of addresses, separated by spaces or commas.
func splitAddresses(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })
}

// RefusePorts returns the reply to changes of bind, port or tls-port that fail, with the text of
// Redis.
func RefusePorts(changes []Change) error {
	for _, change := range changes {
		switch {
		case change.Name == "bind":
			return change.Refuse(errBind)
		case change.Ports != nil:
			return change.Refuse(errPort)
		}
	}
	return nil
}

// CheckPorts returns why the server cannot start with ports. There may be none.
func (s *Settings) CheckPorts(ports listen.Ports) error {
	cluster, http := &s.Start.Cluster, &s.Start.HTTP
	switch {
	case ports.Port != 0 && ports.Port == ports.TLSPort:
		return fmt.Errorf("--port and --tls-port must differ, both are %d", ports.Port)
	case cluster.ProxyPort != 0 && cluster.Enabled != "yes":
		return errors.New("--proxy-port needs --cluster: without a cluster there are no other nodes")
	case cluster.ProxyPort != 0 && (cluster.ProxyPort == ports.Port || cluster.ProxyPort == ports.TLSPort ||
		cluster.ProxyPort == http.Port):
		return fmt.Errorf("--proxy-port %d is another port of this server: it needs one of its own", cluster.ProxyPort)
	case http.Port != 0 && (http.Port == ports.Port || http.Port == ports.TLSPort):
		return fmt.Errorf("--http-port %d is a port of the Redis protocol: HTTP needs one of its own", http.Port)
	}
	return nil
}

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

func checkProtocols(value string) error {
	if _, _, err := certs.ParseProtocols(value); err != nil {
		return valueError("argument must be TLSv1.2, TLSv1.3 or both")
	}
	return nil
}

// Change is a change that CONFIG SET requests: a parameter, the name that the client used, and the
// new value. It is not checked yet.
type Change struct {
	*Parameter
	Called string
	Value  string
}

// Refuse returns the reply to a change that fails.
func (c *Change) Refuse(why error) error {
	return engine.Errorf("ERR CONFIG SET failed (possibly related to argument '%.128s') - %v", c.Called, why)
}
