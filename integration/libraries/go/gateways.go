package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	envoyredis "github.com/envoyproxy/ratelimit/src/redis"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"
	"github.com/sirupsen/logrus"
	ptypes "github.com/traefik/paerser/types"
	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/middlewares/ratelimiter"
)

// traefik returns the middleware of traefik, with one call an hour after a burst of the limit.
func traefik(addr string) hit {
	admitted := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	handler := must(ratelimiter.New(context.Background(), admitted, dynamic.RateLimit{
		Average:         1,
		Period:          ptypes.Duration(time.Hour),
		Burst:           limit,
		SourceCriterion: &dynamic.SourceCriterion{RequestHeaderName: "source"},
		Redis:           &dynamic.Redis{Endpoints: []string{addr}},
	}, "traefik"))
	return func(key string) (bool, string, error) {
		request, response := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		request.Header.Set("source", key)
		handler.ServeHTTP(response, request)
		if response.Code >= http.StatusInternalServerError {
			return false, "", errors.New(response.Body.String())
		}
		return response.Code == http.StatusOK, response.Body.String(), nil
	}
}

// noon is a time source whose windows do not end.
type noon struct{}

func (noon) UnixNow() int64 { return time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC).Unix() }

// envoyproxy returns the cache of Envoy's rate limit service, with a fixed window of a year.
func envoyproxy(addr string) hit {
	logrus.SetLevel(logrus.FatalLevel)
	store := gostats.NewStore(gostats.NewNullSink(), false)
	manager := stats.NewStatManager(store, settings.Settings{})
	client := envoyredis.NewClientImpl(store, false, "", "tcp", "single", addr, 10, 0, 0, nil, false, nil,
		10*time.Second, "WAIT", "")
	cache := envoyredis.NewFixedRateLimitCacheImpl(client, nil, noon{}, rand.New(rand.NewSource(1)), 0, nil, 0.8, "",
		manager, false)
	rule := config.NewRateLimit(limit, envoy.RateLimitResponse_RateLimit_YEAR, manager.NewStats("rule"), false, false,
		false, "", nil, false)
	return func(key string) (ok bool, detail string, err error) {
		defer func() {
			if failure := recover(); failure != nil { // the service turns it into an error
				err = fmt.Errorf("%v", failure)
			}
		}()
		request := &envoy.RateLimitRequest{Domain: "domain", Descriptors: []*descriptor.RateLimitDescriptor{
			{Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "caller", Value: key}}},
		}}
		status := cache.DoLimit(context.Background(), request, []*config.RateLimit{rule})[0]
		return status.Code == envoy.RateLimitResponse_OK, fmt.Sprint(status.LimitRemaining), nil
	}
}
