package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	errRestarted = errors.New("it has restarted")
	errMoved     = errors.New("its slots have moved, or its user may not call CLUSTER SLOTS")
)

// source is a Redis, or a cluster of them.
type source struct {
	options *redis.Options
	client  *redis.Client // of the node that is named
	nodes   []*node
	slots   string // which node has which, empty: there is no cluster
}

// node is a node of the source that has keys.
type node struct {
	addr   string
	client *redis.Client
	runID  string
	// the command that returns a deadline: PEXPIRETIME or, from before Redis 7, PTTL, which is less
	// exact
	deadline string
}

// value is a key, as the source has it.
type value struct {
	key, kind string
	size      int64 // bytes, estimated; after dump that of the payload
	payload   string
	deadline  int64 // Unix milliseconds of the source; 0: none
	gone      bool  // it has expired or was deleted
	refusal   string
}

// open finds the nodes of the source.
func (s *source) open(ctx context.Context) (err error) {
	var masters []string
	if masters, s.slots, err = s.layout(ctx); err != nil {
		return err
	}
	for _, addr := range masters {
		n := s.newNode(addr)
		s.nodes = append(s.nodes, n)
		if err := n.client.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
		n.deadline = "PTTL"
		if err := n.client.PExpireTime(ctx, "k").Err(); err == nil || code(err) == "MOVED" {
			n.deadline = "PEXPIRETIME"
		}
	}
	return nil
}

// newNode returns a node whose connections all lead to the same process, or fail.
func (s *source) newNode(addr string) *node {
	n := &node{addr: addr}
	o := *s.options
	o.Addr = addr
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		id, err := processOf(ctx, conn)
		if err != nil {
			return err
		}
		if n.runID = cmp.Or(n.runID, id); n.runID != id {
			return errRestarted
		}
		return nil
	}
	n.client = redis.NewClient(&o)
	return n
}

func (s *source) close() {
	for _, n := range s.nodes {
		n.client.Close()
	}
	s.client.Close()
}

// processOf returns the run_id of a server, or "" if it names none.
func processOf(ctx context.Context, server redis.Cmdable) (string, error) {
	info, err := server.Info(ctx, "server").Result()
	_, rest, _ := strings.Cut(info, "\nrun_id:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line), err
}

// slotsOf returns which nodes of a cluster have which slots, by the node that a client is of. There
// are none if there is no cluster, or if it may not be asked.
func slotsOf(ctx context.Context, client *redis.Client) ([]redis.ClusterSlot, error) {
	// CLUSTER SHARDS, which replaces it, exists since Redis 7
	asked := redis.NewClusterSlotsCmd(ctx, "cluster", "slots")
	err := client.Process(ctx, asked)
	if isReply(err) {
		return nil, nil
	}
	ranges := slices.DeleteFunc(asked.Val(), func(r redis.ClusterSlot) bool { return len(r.Nodes) == 0 })
	for _, r := range ranges {
		first := &r.Nodes[0]
		if host, port, err := net.SplitHostPort(first.Addr); err == nil && host == "" {
			// that of the node that was asked
			host, _, _ = net.SplitHostPort(client.Options().Addr)
			first.Addr = net.JoinHostPort(host, port)
		}
	}
	return ranges, err
}

// layout returns the addresses of the nodes with keys, and which of them has which slots.
func (s *source) layout(ctx context.Context) (masters []string, slots string, err error) {
	ranges, err := slotsOf(ctx, s.client)
	if err == nil && len(ranges) == 0 {
		return []string{s.options.Addr}, "", nil
	}
	var lines []string
	for _, r := range ranges {
		addr := r.Nodes[0].Addr
		masters = append(masters, addr)
		lines = append(lines, fmt.Sprintf("%d-%d %s", r.Start, r.End, addr))
	}
	slices.Sort(masters)
	slices.Sort(lines)
	return slices.Compact(masters), strings.Join(lines, ", "), err
}

// unmoved checks that the slots are still where they were.
func (s *source) unmoved(ctx context.Context) error {
	_, slots, err := s.layout(ctx)
	if err == nil && slots != s.slots {
		return errMoved
	}
	return err
}

// identity names the processes of the source and what each has.
func (s *source) identity() string {
	parts := []string{s.slots}
	for _, n := range s.nodes {
		parts = append(parts, n.addr+" "+n.runID)
	}
	return strings.Join(parts, "; ")
}

// scan returns the keys of a page, without those that occur twice.
func (n *node) scan(ctx context.Context, cursor uint64, match string) (keys []string, next uint64, err error) {
	keys, next, err = n.client.Scan(ctx, cursor, match, pageSize).Result()
	slices.Sort(keys)
	return slices.Compact(keys), next, err
}

// inspect returns the type of each key and about how large it is.
func (n *node) inspect(ctx context.Context, keys []string) ([]*value, error) {
	pipe := n.client.Pipeline()
	kinds, sizes := make([]*redis.StatusCmd, len(keys)), make([]*redis.IntCmd, len(keys))
	for i, key := range keys {
		kinds[i], sizes[i] = pipe.Type(ctx, key), pipe.MemoryUsage(ctx, key)
	}
	_, _ = pipe.Exec(ctx)
	values := make([]*value, len(keys))
	for i, key := range keys {
		if err := kinds[i].Err(); err != nil {
			return nil, explained(err)
		}
		v := &value{key: key, kind: kinds[i].Val(), size: sizes[i].Val()}
		switch err := sizes[i].Err(); {
		case errors.Is(err, redis.Nil):
			v.gone = true
		case isReply(err): // the source may not be asked: the key is read alone
			v.size = dumpBytes
		case err != nil:
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// dump reads values. Each of those that are not gone is refused or has a payload.
func (n *node) dump(ctx context.Context, values []*value) error {
	err := n.dumpOnce(ctx, values)
	if err == nil || isReply(err) || errors.Is(err, errRestarted) {
		return err
	}
	if len(values) > 1 { // one of them may be more than the source sends
		for _, v := range values {
			if err := n.dump(ctx, []*value{v}); err != nil {
				return err
			}
		}
		return nil
	}
	if err = n.dumpOnce(ctx, values); err == nil || isReply(err) {
		return err
	}
	if alive := n.client.Ping(ctx).Err(); alive != nil {
		return fmt.Errorf("%w, then %w", err, alive)
	}
	values[0].refusal = "the source closes the connection when it is read: see its client-output-buffer-limit"
	return nil
}

// dumpOnce reads each value and its deadline in a transaction, so that they belong together.
func (n *node) dumpOnce(ctx context.Context, values []*value) error {
	pipe := n.client.Pipeline()
	queued, all := make([][]*redis.Cmd, len(values)), make([]*redis.Cmd, len(values))
	for i, v := range values {
		pipe.Do(ctx, "MULTI")
		queued[i] = []*redis.Cmd{pipe.Do(ctx, "TIME"), pipe.Do(ctx, n.deadline, v.key), pipe.Do(ctx, "DUMP", v.key)}
		all[i] = pipe.Do(ctx, "EXEC")
	}
	_, _ = pipe.Exec(ctx)
	for i, v := range values {
		replies, err := all[i].Slice()
		for _, call := range queued[i] {
			if code(err) == "EXECABORT" && call.Err() != nil {
				err = call.Err()
			}
		}
		if err != nil {
			return explained(err)
		}
		if len(replies) != len(queued[i]) {
			return errReplies
		}
		if err := v.read(replies, n.deadline == "PTTL"); err != nil {
			return err
		}
	}
	return nil
}

var errReplies = errors.New("the source sends replies that are not those of Redis")

// read takes the replies to TIME, PEXPIRETIME or PTTL, and DUMP.
func (v *value) read(replies []any, relative bool) error {
	switch payload := replies[2].(type) {
	case string:
		v.payload, v.size = payload, int64(len(payload))
	case error:
		v.refusal = payload.Error()
		return nil
	default:
		v.gone = true
		return nil
	}
	deadline, ok := replies[1].(int64)
	switch {
	case !ok:
		return errReplies
	case deadline < 0: // there is none
		deadline = 0
	case relative:
		now, err := milliseconds(replies[0])
		if err != nil {
			return err
		}
		deadline += now
	}
	v.deadline = deadline
	return nil
}

// milliseconds returns the reply to TIME as Unix milliseconds.
func milliseconds(reply any) (int64, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != 2 {
		return 0, errReplies
	}
	seconds, err := strconv.ParseInt(fmt.Sprint(list[0]), 10, 64)
	micros, also := strconv.ParseInt(fmt.Sprint(list[1]), 10, 64)
	if err != nil || also != nil {
		return 0, errReplies
	}
	return seconds*1000 + micros/1000, nil
}

// explained explains a reply of the source.
func explained(err error) error {
	switch code(err) {
	case "MOVED", "ASK":
		return fmt.Errorf("%w (%w)", errMoved, err)
	}
	return err
}

// clock returns how far a server's clock is ahead of this machine's, and how wrong that may be.
func clock(ctx context.Context, client *redis.Client) (ahead, within time.Duration, err error) {
	asked := time.Now()
	now, err := client.Time(ctx).Result()
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(asked)
	return now.Sub(asked) - took/2, took/2 + time.Millisecond, nil
}
