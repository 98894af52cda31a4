package web

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"
)

// Options configure a Server.
type Options struct {
	Source Source
	Access Access
	Log    *slog.Logger
	TLS    *tls.Config // nil: plain HTTP
	Debug  bool        // serve /debug/pprof

	MaxConnections int // with requests other than health checks
	Health         int // additional connections, for those that wait and for health checks
	MaxStreams     int // of events, at most MaxConnections

	RESPPort  func() string // port of the Redis protocol, for the error for its clients
	KeepAlive func() net.KeepAliveConfig
	Timeouts  Timeouts
}

// Timeouts limit the duration of each step. Zero values mean the defaults.
type Timeouts struct {
	Header  time.Duration // for the header of a request, or the TLS handshake, to arrive, 2 s
	Request time.Duration // for a request to arrive and its response to be read, 10 s
	Idle    time.Duration // between requests, 60 s
	Event   time.Duration // for an event to be read, 5 s
}

func (t *Timeouts) fill() {
	for _, timeout := range []struct {
		at       *time.Duration
		fallback time.Duration
	}{
		{&t.Header, 2 * time.Second},
		{&t.Request, 10 * time.Second},
		{&t.Idle, time.Minute},
		{&t.Event, 5 * time.Second},
	} {
		if *timeout.at == 0 {
			*timeout.at = timeout.fallback
		}
	}
}

// maxHeader is the largest header of a request, in bytes: with the name of a key of 20 KB in
// base64. net/http adds 4 KB to it.
const maxHeader = 32 << 10

// Server serves HTTP.
type Server struct {
	source   Source
	access   Access
	log      *slog.Logger
	timeouts Timeouts
	hint     func() string
	keep     func() net.KeepAliveConfig

	http       http.Server
	encrypted  bool
	places     *places
	maxStreams int64

	failedLogins atomic.Int64
	callers      chan struct{} // one for each request that makes calls
	streams      atomic.Int64
	cutOff       atomic.Int64 // streams that ended because the reader was too slow or left

	sampler *sampler
	ended   context.Context // ends with the server
	end     context.CancelFunc
}

// New returns a server that does not listen yet. Close stops its background work.
func New(o Options) *Server {
	o.Timeouts.fill()
	s := &Server{
		source: o.Source, access: o.Access, log: o.Log, timeouts: o.Timeouts,
		encrypted: o.TLS != nil, places: newPlaces(o.MaxConnections, o.Health), maxStreams: int64(o.MaxStreams),
		keep: o.KeepAlive, callers: make(chan struct{}, maxCalls),
		hint: func() string { return "this port speaks HTTP, not the Redis protocol: use port " + o.RESPPort() },
	}
	s.ended, s.end = context.WithCancel(context.Background())
	s.sampler = newSampler(o.Source)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // with HTTP/2 a connection could carry many requests at once
	s.http = http.Server{
		Handler: s.routes(o.Debug), TLSConfig: o.TLS, Protocols: protocols,
		ReadHeaderTimeout: o.Timeouts.Header, ReadTimeout: o.Timeouts.Request, WriteTimeout: o.Timeouts.Request,
		IdleTimeout: o.Timeouts.Idle, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return s.ended }, ConnContext: withConn,
		ConnState: func(c net.Conn, state http.ConnState) {
			if known := connOf(c); state == http.StateIdle && known != nil {
				known.idle()
			}
		},
		ErrorLog: log.New(debugLog{o.Log}, "", 0),
	}
	go s.sampler.run(s.ended)
	return s
}

// debugLog logs messages of net/http at debug level, as clients can cause any number of them.
type debugLog struct{ log *slog.Logger }

// Write implements io.Writer.
func (d debugLog) Write(line []byte) (int, error) {
	d.log.Debug("http", "message", strings.TrimSpace(string(line)))
	return len(line), nil
}

// Serve serves the clients of a listener until Close. It owns the listener.
func (s *Server) Serve(ln net.Listener) error {
	limited := &listener{Listener: ln, places: s.places, encrypted: s.encrypted, hint: s.hint, keepAlive: s.keep}
	var err error
	if s.encrypted {
		err = s.http.ServeTLS(limited, "", "")
	} else {
		err = s.http.Serve(limited)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends all streams and waits for requests in progress until the context ends.
func (s *Server) Close(ctx context.Context) {
	s.end()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
}

// Connections are the numbers of connections.
type Connections struct {
	Open    int64 // at most MaxConnections and Health
	Busy    int64 // of these, with a request that is answered: at most MaxConnections
	Refused int64 // connections, or requests, above the limits
	Cut     int64 // closed without a complete request, for new ones
}

// Connections returns the current numbers.
func (s *Server) Connections() Connections {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	return Connections{
		Open: int64(s.places.open), Busy: int64(s.places.busy), Refused: s.places.refused.Load(),
		Cut: s.places.cut.Load(),
	}
}

// routes returns the handler of all paths.
func (s *Server) routes(debug bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", s.healthy)
	mux.HandleFunc("/readyz", ready(s.source.Ready))
	mux.HandleFunc("/readyz/traffic", ready(s.source.ReadyForTraffic))
	guarded := http.NewServeMux()
	guarded.Handle("/metrics", s.metricsHandler())
	guarded.HandleFunc("/api/history", s.serveHistory)
	guarded.HandleFunc("/api/events", s.events)
	guarded.HandleFunc("/api/limiter", s.limiter)
	guarded.Handle("/", page())
	calls := s.calls()
	for path, call := range calls {
		guarded.Handle(path, call)
	}
	if debug {
		guarded.HandleFunc("/debug/pprof/", pprof.Index)
		guarded.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		guarded.HandleFunc("/debug/pprof/profile", s.withoutTimeout(pprof.Profile))
		guarded.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		guarded.HandleFunc("/debug/pprof/trace", s.withoutTimeout(pprof.Trace))
	}
	mux.Handle("/", s.guard(guarded))
	return s.methods(calls, seated(mux))
}

// withoutTimeout extends the timeout for a profile, whose duration is a parameter of the request.
func (s *Server) withoutTimeout(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * time.Minute))
		next(w, r)
	}
}

// contentSecurity allows the page to load only what this server serves.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " +
	"'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// methods rejects methods other than GET and HEAD or, of the paths of calls, other than POST, and
// sets the headers of all responses.
func (s *Server) methods(calls map[string]http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurity)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case calls[r.URL.Path] != nil:
			if r.Method != http.MethodPost {
				h.Set("Allow", "POST")
				fail(w, http.StatusMethodNotAllowed, "this path makes calls: use POST")
				return
			}
			if refusedForeign(w, r) {
				return
			}
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed, "this path is read-only: use GET")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fail replies with an error in a line of text, and closes the connection: a client that is refused
// cannot fill it with responses that it does not read. Nobody waits for the rest of its request.
func fail(w http.ResponseWriter, status int, text string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
