package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// User is who makes calls: a user with the password of the request, or, without a name, a client
// that has not logged in.
type User struct {
	Name, Password string
	Address        string // of the client
}

// Caller makes calls of the Redis protocol, one after another, with the permissions of a user.
type Caller interface {
	// Do returns the reply to each call: nil, an int64, a []byte, a list of such, or a CallError.
	// After an error the outcome of the calls is not known.
	Do(calls ...[][]byte) ([]any, error)
	Close()
}

// CallError is an error that a call was answered with, such as "ERR no such policy 'x'".
type CallError string

// Error implements error.
func (e CallError) Error() string { return string(e) }

// status returns the status of a response that fails for the error of a call.
func (e CallError) status() int {
	switch code, _, _ := strings.Cut(string(e), " "); code {
	case "NOPERM", "NOAUTH":
		return http.StatusForbidden
	case "ERR", "WRONGTYPE":
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

const (
	// maxCalls is how many requests make calls at the same time: others wait.
	maxCalls = 4
	// callTime is how long a request may wait for that and for its calls.
	callTime = 5 * time.Second
	// maxCallBody is the largest body of a request, in bytes: an id of 64 KB in base64, and a
	// pattern of as much.
	maxCallBody = 256 << 10
)

// callRequest is the body of a request that makes calls. Ids and patterns are in base64, as they
// may be any bytes.
type callRequest struct {
	Database int    `json:"db"`
	Policy   string `json:"policy"`
	ID       []byte `json:"id"`
	Match    []byte `json:"match"`  // pattern of ids; empty: all
	Cursor   string `json:"cursor"` // of the previous response; empty: from the beginning
}

// calling returns the handler of a path whose requests make calls: do makes them, and returns what
// the response shows.
func (s *Server) calling(do func(*exchange) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{server: s, http: r}
		if err := x.read(w); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), callTime)
		defer cancel()
		select {
		case s.callers <- struct{}{}:
			defer func() { <-s.callers }()
		case <-ctx.Done():
			failCall(w, ctx.Err())
			return
		}
		result, err := x.run(ctx, do)
		if err != nil {
			failCall(w, err)
			return
		}
		text, _ := json.Marshal(result) // cannot fail for numbers and text
		sendJSON(w, text)
	}
}

// failCall replies that calls have failed.
func failCall(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[CallError](err)
	switch {
	case ok:
		fail(w, refused.status(), string(refused))
	case errors.Is(err, context.DeadlineExceeded):
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable,
			fmt.Sprintf("no reply within %s: a change may have been made or not", callTime))
	default:
		fail(w, http.StatusServiceUnavailable, err.Error())
	}
}

// exchange is a request that makes calls.
type exchange struct {
	callRequest
	server *Server
	http   *http.Request
	caller Caller
}

// read reads the body of the request. The error says what is wrong with it.
func (x *exchange) read(w http.ResponseWriter) error {
	body := json.NewDecoder(http.MaxBytesReader(w, x.http.Body, maxCallBody))
	body.DisallowUnknownFields()
	err := body.Decode(&x.callRequest)
	if err == nil {
		if _, more := body.Token(); more != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("the body must be an object of JSON with db, policy, id, match and cursor, the third and "+
			"the fourth in base64: %w", err)
	case x.Database < 0:
		return errors.New("db must be the number of a database")
	}
	return nil
}

// run connects, and makes the calls.
func (x *exchange) run(ctx context.Context, do func(*exchange) (any, error)) (result any, err error) {
	if x.caller, err = x.server.source.Connect(ctx, x.user()); err != nil {
		return nil, err
	}
	defer x.caller.Close()
	if x.Database > 0 {
		if _, err := x.call("SELECT", fmt.Sprint(x.Database)); err != nil {
			return nil, err
		}
	}
	return do(x)
}

// user returns who has sent the request, which the guard has let pass. The token stands for no
// user: its calls are those of a client that has not logged in.
func (x *exchange) user() User {
	u := User{Address: x.http.RemoteAddr}
	if name, password, ok := x.http.BasicAuth(); ok {
		if u.Name, u.Password = name, password; name == "" {
			u.Name = "default"
		}
	}
	return u
}

// call makes one call. The error is also that of the call.
func (x *exchange) call(words ...string) (any, error) {
	replies, err := x.caller.Do(wordsOf(words...))
	if err != nil {
		return nil, err
	}
	if failed, ok := replies[0].(CallError); ok {
		return nil, failed
	}
	return replies[0], nil
}

func wordsOf(words ...string) (list [][]byte) {
	for _, word := range words {
		list = append(list, []byte(word))
	}
	return list
}

// fields returns the fields of a reply that is a map, which is a flat list.
func fields(reply any) map[string]any {
	list, _ := reply.([]any)
	found := make(map[string]any, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		if name, ok := list[i].([]byte); ok {
			found[string(name)] = list[i+1]
		}
	}
	return found
}

// number returns a field that is a number; 0 if it is none.
func number(of map[string]any, name string) int64 {
	n, _ := of[name].(int64)
	return n
}

// refusedForeign rejects what a page of another site can make a browser send, with the login that
// the browser keeps for this server. It reports whether it has: what is left comes from a page of
// this server, or from a program.
func refusedForeign(w http.ResponseWriter, r *http.Request) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case http.NewCrossOriginProtection().Check(r) != nil:
		fail(w, http.StatusForbidden, "a page of another site must not make calls here")
	case kind != "application/json": // browsers ask first before they send it to another site
		fail(w, http.StatusUnsupportedMediaType, "the request must have the Content-Type application/json")
	default:
		return false
	}
	return true
}
