package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// healthy serves /healthz: the process answers.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) { writeText(w, "ok") }

// ready serves /readyz and /readyz/traffic, by what is called. No health check needs a password.
func ready(is func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := is(); err != nil {
			fail(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		writeText(w, "ready")
	}
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text+"\n")
}

// CheckHealth checks whether the server at an address such as http://127.0.0.1:9121/healthz is
// healthy. The error contains the server's response. Certificates of this machine are not checked,
// because they usually do not contain its loopback addresses.
func CheckHealth(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not an address such as http://127.0.0.1:9121/readyz", address)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/healthz"
	}
	config := &tls.Config{InsecureSkipVerify: isLocalMachine(u.Hostname())}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", u, response.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// isLocalMachine reports whether a host is localhost or a loopback address.
func isLocalMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
