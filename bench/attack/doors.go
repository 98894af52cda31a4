package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// guessSilently tries passwords on new connections, which it closes after 3 ms: no answer by then
// means that the password was wrong, if the server delays such answers.
func guessSilently(connections int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		operator, err := t.login()
		if err != nil {
			return "", err
		}
		defer operator.Close()
		begun := time.Now()
		parallel(ctx, connections, func() {
			c, err := t.connect()
			if err != nil {
				return
			}
			defer c.Close()
			c.Write(command("AUTH", "wrong"))
			c.SetReadDeadline(time.Now().Add(3 * time.Millisecond))
			c.reply()
		})
		checked := float64(max(0, operator.info("acl_access_denied_auth")))
		return fmt.Sprintf("%.1f passwords a second were checked", checked/time.Since(begun).Seconds()), nil
	}
}

// starveProbes sends a byte on HTTP connections, and connects again when the server closes them,
// while health is probed.
func starveProbes(connections int) func(context.Context, *target) (string, error) {
	return func(ctx context.Context, t *target) (string, error) {
		address := net.JoinHostPort("127.0.0.1", t.http)
		var probes, failed atomic.Int64
		go func() {
			client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			for ctx.Err() == nil {
				for _, path := range []string{"/healthz", "/readyz"} {
					response, err := client.Get("http://" + address + path)
					probes.Add(1)
					if err != nil || response.StatusCode != http.StatusOK {
						failed.Add(1)
					}
					if err == nil {
						response.Body.Close()
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		parallel(ctx, connections, func() {
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			c.Write([]byte("G"))
			c.Read(make([]byte, 1))
		})
		return fmt.Sprintf("%d of %d health checks failed", failed.Load(), probes.Load()), nil
	}
}

// pretend sends logins that prove nothing, to an address that is not localhost.
func pretend(ctx context.Context, t *target) (string, error) {
	var given []string
	for _, user := range []string{"default:x", "default:", ":", "guest:x"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+t.http+"/metrics", nil)
		if err != nil {
			return "", err
		}
		name, password, _ := strings.Cut(user, ":")
		request.SetBasicAuth(name, password)
		request.Host = "rebound.example"
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		response.Body.Close()
		given = append(given, fmt.Sprint(response.StatusCode))
	}
	<-ctx.Done()
	return "replies to a foreign page: " + strings.Join(given, " "), nil
}

// parallel repeats a function in goroutines until the context ends.
func parallel(ctx context.Context, n int, do func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
			}
		})
	}
	all.Wait()
}
