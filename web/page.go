package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// page serves the files of the page. Browsers cache them until they change.
func page() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the files are embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean(r.URL.Path)[1:]
		if name == "" {
			name = "index.html"
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			fail(w, http.StatusNotFound, "not found: see /, /metrics, /healthz and /readyz")
			return
		}
		sum := sha256.Sum256(text)
		h := w.Header()
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
	})
}

// serveHistory serves the last hour.
func (s *Server) serveHistory(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, s.sampler.history.json())
}

func sendJSON(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// events serves a stream of views, one per second. The stream ends if its reader does not take an
// event in time, or when its user loses the permission.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if s.streams.Add(1) > s.maxStreams {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf(
			"too many pages are open: --http-max-streams is %d", s.maxStreams))
		return
	}
	defer s.streams.Add(-1)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Time{}) // the stream may last longer than the request timeout

	stillAllowed := clientOf(r).still
	frame, leave := s.sampler.watch()
	defer leave()
	text := "retry: 2000\n\n"
	for {
		control.SetWriteDeadline(time.Now().Add(s.timeouts.Event))
		_, err := w.Write([]byte(text))
		if err == nil {
			err = control.Flush()
		}
		if err != nil {
			s.cutOff.Add(1)
			return
		}
		select {
		case <-frame.next:
		case <-r.Context().Done():
			return
		}
		if !stillAllowed() {
			return
		}
		frame = s.sampler.current()
		text = "data: " + string(frame.event) + "\n\n"
	}
}

// limiterView is the state of a key for the page.
type limiterView struct {
	Found     bool   `json:"found"`
	Name      string `json:"name"`
	Database  int    `json:"db"`
	Type      string `json:"type"`
	Rule      string `json:"rule"`
	Unusable  string `json:"unusable"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	RetryIn   int64  `json:"retryIn"`
	ResetIn   int64  `json:"resetIn"`
	ExpiresIn int64  `json:"expiresIn"` // -1: never
}

// idOf returns what identifies a key for /api/limiter: its name in base64, or ~ and its hash if the
// name is too long for an address.
func idOf(d DeniedKey) string {
	if d.Hash != 0 {
		return fmt.Sprintf("~%016x", d.Hash)
	}
	return base64.RawURLEncoding.EncodeToString(d.Name)
}

// keyOf returns the database and the key of a request for a limiter. The name is nil if idOf is the
// hash of a key that does not exist.
func (s *Server) keyOf(r *http.Request) (db int, name []byte, err error) {
	query := r.URL.Query()
	if db, err = strconv.Atoi(query.Get("db")); err != nil {
		return 0, nil, err
	}
	if text, ok := strings.CutPrefix(query.Get("key"), "~"); ok {
		hash, err := strconv.ParseUint(text, 16, 64)
		if err != nil || db < 0 {
			return db, nil, err
		}
		return db, s.source.NameOf(db, hash), nil
	}
	name, err = base64.RawURLEncoding.DecodeString(query.Get("key"))
	return db, name, err
}

// limiter serves the state of a key: /api/limiter?db=0&key=<base64>. It changes nothing.
func (s *Server) limiter(w http.ResponseWriter, r *http.Request) {
	db, name, err := s.keyOf(r)
	if err != nil || db < 0 {
		fail(
			w,
			http.StatusBadRequest,
			"key must be the name of a key in base64 for URLs, and db the number of a database",
		)
		return
	}
	var l Limiter
	ok := false
	if name != nil {
		l, ok, err = s.source.Limiter(db, name)
	}
	if err != nil {
		failCall(w, err)
		return
	}
	v := limiterView{Found: ok, Name: readable(name), Database: db}
	if ok {
		v.Type, v.Rule, v.Unusable = l.Type, l.Rule, l.Unusable
		v.Limit, v.Remaining, v.Used = l.Limit, l.Remaining, l.Limit-l.Remaining
		v.RetryIn, v.ResetIn = l.RetryIn.Milliseconds(), l.ResetIn.Milliseconds()
		v.ExpiresIn = max(-1, l.ExpiresIn.Milliseconds())
	}
	text, _ := json.Marshal(v) // cannot fail for numbers and text
	sendJSON(w, text)
}
