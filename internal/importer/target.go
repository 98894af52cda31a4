package importer

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// target is the server that gets the keys.
type target struct {
	options *redis.Options
	client  *redis.Client
	cluster *redis.ClusterClient // nil: the target is no cluster, as far as is known
	replace bool
	shift   int64 // milliseconds that are added to deadlines
}

func (t *target) close() {
	t.client.Close()
	if t.cluster != nil {
		t.cluster.Close()
	}
}

// universal returns the client that knows where keys are.
func (t *target) universal() redis.UniversalClient {
	if t.cluster != nil {
		return t.cluster
	}
	return t.client
}

// restore stores values and returns the error of each, or nil. err is an error of the network.
func (t *target) restore(ctx context.Context, values []*value) (replies []error, err error) {
	replies, err = t.restoreOnce(ctx, values)
	if len(values) > 1 || values[0].size < restoreBytes || err == nil && !closes(replies[0]) {
		return replies, err
	}
	// the target may have refused a large value by closing the connection
	replies, err = t.restoreOnce(ctx, values)
	if err == nil && !closes(replies[0]) {
		return replies, nil
	}
	// a connection that is being closed may be used for the first call
	_ = t.universal().Exists(ctx, values[0].key).Err()
	if alive := t.universal().Exists(ctx, values[0].key).Err(); alive != nil {
		return nil, alive
	}
	values[0].refusal = "too large: the target closes the connection when it gets the value: see its " +
		"proto-max-bulk-len and maxmemory-clients"
	return make([]error, 1), nil
}

// closes reports whether the target closes the connection after an error.
func closes(reply error) bool {
	return code(reply) == "ERR" && strings.HasPrefix(reply.Error(), "ERR Protocol error")
}

func (t *target) restoreOnce(ctx context.Context, values []*value) (replies []error, err error) {
	replies = t.send(ctx, values)
	var moved []int
	for i, reply := range replies {
		if c := code(reply); t.cluster == nil && (c == "MOVED" || c == "ASK") {
			moved = append(moved, i)
		}
	}
	if len(moved) > 0 {
		t.cluster = redis.NewClusterClient(clusterOptions(t.options))
		var elsewhere []*value
		for _, i := range moved {
			elsewhere = append(elsewhere, values[i])
		}
		for at, reply := range t.send(ctx, elsewhere) {
			replies[moved[at]] = reply
		}
	}
	for _, reply := range replies {
		if reply != nil && !isReply(reply) {
			return nil, reply
		}
	}
	return replies, nil
}

// send sends RESTORE for each value and returns the errors.
func (t *target) send(ctx context.Context, values []*value) []error {
	pipe := t.universal().Pipeline()
	replies := make([]*redis.Cmd, len(values))
	for i, v := range values {
		deadline := v.deadline
		if deadline != 0 {
			deadline = max(1, deadline+t.shift)
		}
		words := []any{"RESTORE", v.key, deadline, v.payload, "ABSTTL"}
		if t.replace {
			words = append(words, "REPLACE")
		}
		replies[i] = pipe.Do(ctx, words...)
	}
	_, _ = pipe.Exec(ctx)
	errs := make([]error, len(values))
	for i, reply := range replies {
		errs[i] = reply.Err()
	}
	return errs
}

func clusterOptions(o *redis.Options) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: []string{o.Addr}, Dialer: o.Dialer, Protocol: o.Protocol, DisableIdentity: true,
		Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		PoolSize: 2, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1, ReadTimeout: -1, WriteTimeout: -1,
	}
}
