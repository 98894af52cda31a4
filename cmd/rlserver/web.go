package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"rlserver/internal/certs"
	"rlserver/internal/listen"
	"rlserver/resp/command"
	"rlserver/resp/local"
	"rlserver/web"
)

// openWeb creates and serves the HTTP server. Without --http-port it does nothing.
func (p *parts) openWeb() error {
	start := &p.settings.Start.HTTP
	if start.Port == 0 {
		return nil
	}
	token, err := readSecret("--http-token-file", start.TokenFile)
	if err != nil {
		return err
	}
	listeners, err := listen.TCP(start.Bind, start.Port, "--http-bind")
	if err != nil {
		listen.CloseAll(listeners)
		return err
	}
	var encryption *tls.Config
	if p.certs.Loaded() && start.TLS != "no" {
		encryption = p.certs.OptionalConfig()
	}
	p.local = local.Listen()
	p.web = web.New(web.Options{
		Source: webSource{p}, Log: p.log, Debug: start.Debug == "yes", TLS: encryption,
		Access: web.Access{
			Token: token, Protected: p.server.Protected,
			WithoutLogin: func() web.Permission { return p.server.WithoutLogin() },
			Limit:        p.server.Logins.Try,
			Login: func(user, password, address string) (web.Permission, bool) {
				return p.server.Login(user, password, address)
			},
			NeedsCertificate: func() bool { return p.settings.TLS().Files().ClientAuth == certs.Required },
		},
		MaxConnections: start.MaxClients, Health: start.Health, MaxStreams: start.MaxStreams,
		KeepAlive: p.settings.KeepAlive,
		RESPPort: func() string {
			ports := p.settings.Ports()
			return fmt.Sprint(cmp.Or(ports.Port, ports.TLSPort))
		},
	})
	p.server.HTTP = func() command.HTTPFigures { return command.HTTPFigures(p.web.Connections()) }
	for _, ln := range listeners {
		p.log.Info("listening", "network", "http", "address", ln.Addr().String(), "tls", encryption != nil)
		go p.web.Serve(ln)
	}
	return nil
}

// closeWeb stops the HTTP server. It closes connections whose responses take longer than a second.
func (p *parts) closeWeb() {
	if p.web == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.web.Close(ctx)
}

// steadyChecks is how many checks in a row, a second apart, end healthcheck --wait.
const steadyChecks = 4

// checkHealth is the tool healthcheck.
func checkHealth(args []string, out io.Writer) error {
	address, wait := "", time.Duration(0)
	if len(args) >= 2 && args[0] == "--wait" {
		var err error
		if wait, err = time.ParseDuration(args[1]); err != nil || wait < 0 {
			return fmt.Errorf("--wait takes a duration such as 9m, not %q", args[1])
		}
		args = args[2:]
	}
	switch {
	case len(args) == 1:
		address = args[0]
	case len(args) > 1:
		return errors.New("healthcheck takes one address: rlserver healthcheck [--wait DURATION] [URL]")
	default:
		port := os.Getenv("RLSERVER_HTTP_PORT")
		if port == "" || port == "0" {
			return errors.New("name the address, as RLSERVER_HTTP_PORT is not set: " +
				"rlserver healthcheck http://127.0.0.1:9121/healthz")
		}
		scheme := "http"
		if os.Getenv("RLSERVER_TLS_CERT_FILE") != "" && os.Getenv("RLSERVER_HTTP_TLS") != "no" {
			scheme = "https"
		}
		address = scheme + "://" + net.JoinHostPort("127.0.0.1", port) + "/healthz"
	}
	var err error
	for until, good := time.Now().Add(wait), 0; ; time.Sleep(time.Second) {
		err = web.CheckHealth(context.Background(), address)
		if good++; err != nil {
			good = 0
		}
		if wait == 0 || good == steadyChecks || err != nil && time.Now().After(until) {
			break
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "ok")
	return err
}
