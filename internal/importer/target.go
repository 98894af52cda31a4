package importer

import (
	"context"
	"slices"
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
	// the run_ids of its nodes, which may have got keys; nil: not known yet
	processes []string
}

// newTarget returns a target whose connections all lead to its processes, or fail.
func newTarget(o *redis.Options, replace bool) *target {
	t := &target{options: o, replace: replace}
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		id, err := processOf(ctx, conn)
		if err == nil && t.processes != nil && !hasAll(t.processes, []string{id}) {
			err = errRestarted
		}
		return err
	}
	t.client = redis.NewClient(o)
	return t
}

// running returns the run_ids of the target's present nodes. Of a cluster, as also its proxies name
// it, it leaves out those that cannot be asked: no new connection leads to them unnoticed.
func (t *target) running(ctx context.Context) (ids []string, err error) {
	id, err := processOf(ctx, t.client)
	if err != nil {
		return nil, err
	}
	ranges, err := slotsOf(ctx, t.client)
	ids, asked := append(ids, id), map[string]bool{t.options.Addr: true}
	for _, r := range ranges {
		o := *t.options
		if o.Addr, o.OnConnect = r.Nodes[0].Addr, nil; asked[o.Addr] {
			continue
		}
		asked[o.Addr] = true
		node := redis.NewClient(&o)
		if id, err := processOf(ctx, node); err == nil {
			ids = append(ids, id)
		}
		node.Close()
	}
	return ids, err
}

// unchanged checks that there are no nodes but those of before.
func (t *target) unchanged(ctx context.Context) error {
	ids, err := t.running(ctx)
	if err == nil && !hasAll(t.processes, ids) {
		err = errRestarted
	}
	return err
}

// hasAll reports whether ids are all in a list.
func hasAll(list, ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(list, id) })
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
		Addrs: []string{o.Addr}, Dialer: o.Dialer, OnConnect: o.OnConnect, Protocol: o.Protocol, DisableIdentity: true,
		Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		PoolSize: 2, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1, ReadTimeout: -1, WriteTimeout: -1,
	}
}
