// Command app is an example: an HTTP service that admits five requests a minute of each user. It
// calls an rlserver on the same machine over a Unix socket.
//
//	RLSERVER_SOCKET=/run/rlserver/rlserver.sock app
//	curl -i http://localhost:8080/?user=ann
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	limits := redis.NewClient(&redis.Options{
		Network: "unix", Addr: cmp.Or(os.Getenv("RLSERVER_SOCKET"), "/run/rlserver/rlserver.sock"),
		ReadTimeout: time.Second, MaxRetries: 1,
	})
	server := &http.Server{
		Addr: cmp.Or(os.Getenv("LISTEN"), ":8080"), Handler: limited(limits), ReadHeaderTimeout: 5 * time.Second,
	}
	go func() {
		<-ctx.Done()
		server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}

// limited admits five requests a minute of each user. If rlserver does not reply it admits all:
// this service prefers to work without limits to not working.
func limited(limits *redis.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := cmp.Or(r.URL.Query().Get("user"), "anonymous")
		d, err := limits.Do(r.Context(), "RL.SLIDE", "app:"+user, 5, "1m").Int64Slice()
		switch {
		case err != nil:
			log.Printf("no decision, so the request is admitted: %v", err)
		case d[0] == 0:
			seconds := (d[3] + 999) / 1000
			w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
			http.Error(w, fmt.Sprintf("come back in %d seconds", seconds), http.StatusTooManyRequests)
			return
		default:
			w.Header().Set("X-RateLimit-Remaining", strconv.FormatInt(d[2], 10))
		}
		fmt.Fprintf(w, "hello, %s\n", user)
	})
}
