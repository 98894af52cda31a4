package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rlserver/engine/limit"
	"rlserver/internal/progress"
)

// Options say what is imported.
type Options struct {
	From, To       Endpoint
	Replace        bool   // overwrite keys that the target has
	Match          string // a pattern of keys; empty: all
	KeysPerSecond  int64  // 0: unlimited
	BytesPerSecond int64  // 0: unlimited
	State          string // path of the state file
}

const (
	pageSize = 500 // keys that SCAN is asked for
	// dumpBytes is the estimated size of the values that are asked for, and held, at once. A larger
	// value is alone.
	dumpBytes    = 4 << 20
	restoreBytes = 1 << 20 // of the payloads that are sent at once
)

// importer is a run.
type importer struct {
	options     Options
	from        source
	to          *target
	file        stateFile
	state       *state
	keys, bytes *pace
	meter       *progress.Meter
	notice      func(format string, args ...any)
}

// Run copies keys, and writes to out what became of them. The error says why not all were copied;
// with the same options the next run goes on if this one was stopped. notice gets a line for people
// about what takes long or differs from what was asked for.
func Run(ctx context.Context, o Options, out io.Writer, meter *progress.Meter, notice func(string, ...any)) error {
	redis.SetLogger(silent{})
	im := importer{
		options: o, keys: newPace(o.KeysPerSecond), bytes: newPace(o.BytesPerSecond), meter: meter,
		notice: notice, file: stateFile{path: o.State},
	}
	if err := im.options.check(); err != nil {
		return err
	}
	if err := im.connect(); err != nil {
		return err
	}
	defer im.from.close()
	defer im.to.close()
	if err := im.prepare(ctx); err != nil {
		return err
	}
	err := im.copyAll(ctx)
	meter.End()
	return im.finish(out, err)
}

func (o *Options) check() error {
	for _, rate := range []int64{o.KeysPerSecond, o.BytesPerSecond} {
		if rate < 0 || rate > limit.MaxCount {
			return fmt.Errorf("a rate must be from 0 to %d per second", limit.MaxCount)
		}
	}
	if o.State == "" {
		return errors.New("name the state file")
	}
	return nil
}

// silent drops what the client library logs: each call returns its error.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// connect makes the clients. They connect when they are used.
func (im *importer) connect() error {
	from, err := im.options.From.options()
	if err != nil {
		return err
	}
	to, err := im.options.To.options()
	if err != nil {
		return err
	}
	im.from = source{options: from, client: redis.NewClient(from)}
	im.to = newTarget(to, im.options.Replace)
	return nil
}

// prepare waits for the servers and finds out where the import goes on.
func (im *importer) prepare(ctx context.Context) error {
	im.state = &state{
		From: im.options.From.String(), To: im.options.To.String(), Match: im.options.Match,
		Replace: im.options.Replace, Nodes: make(map[string]*progressOf),
		Report: Report{Copied: make(map[string]int64)},
	}
	old, err := im.file.load()
	if err == nil && old != nil {
		err = im.state.sameImport(old)
	}
	if err != nil {
		return fmt.Errorf("the state file %s cannot be used: %w", im.file.path, err)
	}
	if err := im.await(ctx, "source", im.from.client); err != nil {
		return err
	}
	if err := im.await(ctx, "target", im.to.client); err != nil {
		return err
	}
	if err := im.from.open(ctx); err != nil {
		return blame("source", err)
	}
	if im.to.processes, err = im.to.running(ctx); err != nil {
		return blame("target", err)
	}
	im.goOn(old)
	if err := im.notItself(); err != nil {
		return err
	}
	return im.compareClocks(ctx)
}

// goOn takes the state of an earlier run if the source and the target are the same.
func (im *importer) goOn(old *state) {
	im.state.Source, im.state.Target = im.from.identity(), im.to.processes
	switch {
	case old == nil:
	case old.Source != im.state.Source:
		im.notice("begins again: the source has restarted since, or its slots have moved")
	case !hasAll(old.Target, im.state.Target):
		im.notice("begins again: the target has restarted since, or has other nodes, and may have lost keys")
	default:
		im.state, im.to.processes = old, old.Target
		im.notice("goes on after %s", count(old.Report.copied()))
	}
	for _, n := range im.from.nodes {
		if im.state.Nodes[n.addr] == nil {
			im.state.Nodes[n.addr] = new(progressOf)
		}
	}
}

// notItself checks that the target is not the source.
func (im *importer) notItself() error {
	for _, n := range im.from.nodes {
		if n.runID != "" && slices.Contains(im.to.processes, n.runID) {
			return errors.New("the source and the target are the same server")
		}
	}
	return nil
}

func (im *importer) await(ctx context.Context, which string, client *redis.Client) error {
	told := false
	err := awaitLoaded(ctx, client, func() {
		if !told {
			im.notice("waits: the %s is loading its data", which)
		}
		told = true
	})
	return blame(which, err)
}

// compareClocks shifts deadlines if the clocks of source and target differ.
func (im *importer) compareClocks(ctx context.Context) error {
	from, within, err := clock(ctx, im.from.nodes[0].client)
	if err != nil {
		return blame("source", err)
	}
	to, also, err := clock(ctx, im.to.client)
	if err != nil {
		return blame("target", err)
	}
	if apart := to - from; apart.Abs() > within+also {
		im.to.shift = apart.Milliseconds()
		im.notice("the clock of the target is ahead of the source's by %s: deadlines are shifted by that",
			apart.Round(time.Millisecond))
	}
	return nil
}

// copyAll copies all nodes.
func (im *importer) copyAll(ctx context.Context) error {
	var total int64
	for _, n := range im.from.nodes {
		size, err := n.client.DBSize(ctx).Result()
		if err != nil {
			return blame("source", err)
		}
		total += size
	}
	im.meter.BeginCount("copying", "keys", total)
	for _, n := range im.from.nodes {
		if err := im.copyNode(ctx, n, im.state.Nodes[n.addr]); err != nil {
			return err
		}
	}
	if err := im.from.unmoved(ctx); err != nil {
		return blame("source", err)
	}
	return blame("target", im.to.unchanged(ctx))
}

func (im *importer) copyNode(ctx context.Context, n *node, p *progressOf) error {
	if err := im.copyAgain(ctx, n, p); err != nil {
		return err
	}
	for !p.Done {
		keys, next, err := n.scan(ctx, p.Cursor, im.options.Match)
		if err != nil {
			return blame("source", err)
		}
		if err := im.copyPage(ctx, n, p, keys); err != nil {
			return err
		}
		p.Cursor, p.Done = next, next == 0
		if err := im.file.put(im.state); err != nil {
			return err
		}
		im.meter.Add(len(keys))
	}
	return nil
}

// copyAgain copies the keys that an earlier run was refused room for.
func (im *importer) copyAgain(ctx context.Context, n *node, p *progressOf) error {
	var keys []string
	for _, key := range p.Again {
		keys = append(keys, string(key))
	}
	p.Again = nil
	if err := im.copyPage(ctx, n, p, keys); err != nil {
		return err
	}
	return im.file.put(im.state)
}

// copyPage copies keys of a node.
func (im *importer) copyPage(ctx context.Context, n *node, p *progressOf, keys []string) error {
	if len(keys) == 0 {
		return ctx.Err()
	}
	values, err := n.inspect(ctx, keys)
	if err != nil {
		return blame("source", err)
	}
	for batch := range batches(values, dumpBytes) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.dump(ctx, batch); err != nil {
			return blame("source", err)
		}
		for part := range batches(im.present(batch), restoreBytes) {
			if err := im.store(ctx, p, part); err != nil {
				return err
			}
		}
		clear(batch) // the payloads are garbage
	}
	return nil
}

// present counts the values that cannot be stored, and returns the others.
func (im *importer) present(values []*value) (rest []*value) {
	for _, v := range values {
		switch {
		case v.gone:
			im.state.Report.Gone++
		case v.refusal != "":
			im.state.Report.leaveOut(v, v.refusal)
		default:
			rest = append(rest, v)
		}
	}
	return rest
}

// store stores values in the target.
func (im *importer) store(ctx context.Context, p *progressOf, values []*value) error {
	var size int64
	for _, v := range values {
		size += v.size
	}
	if err := im.keys.take(ctx, int64(len(values))); err != nil {
		return err
	}
	if err := im.bytes.take(ctx, size); err != nil {
		return err
	}
	replies, err := im.to.restore(ctx, values)
	if err != nil {
		return blame("target", err)
	}
	for i, v := range values {
		if err := im.count(p, v, replies[i]); err != nil {
			return err
		}
	}
	return nil
}

// count takes the reply to RESTORE.
func (im *importer) count(p *progressOf, v *value, reply error) error {
	r := &im.state.Report
	switch word := code(reply); {
	case v.refusal != "":
		r.leaveOut(v, v.refusal)
	case reply == nil:
		r.Copied[cut(v.kind)]++
		r.Bytes += v.size
	case word == "BUSYKEY":
		r.Existed++
	case word == "OOM" && len(v.key) <= maxAgainKey:
		if p.Again = append(p.Again, []byte(v.key)); len(p.Again) >= maxAgain {
			return fmt.Errorf("the target is full: raise its maxmemory: %w", reply)
		}
	case word == "OOM" || word == "ERR":
		r.leaveOut(v, reply.Error())
	default:
		return blame("target", reply)
	}
	return nil
}

// finish writes the state and the report.
func (im *importer) finish(out io.Writer, err error) error {
	again, leftOut := im.state.again(), im.state.Report.leftOut()
	next := "run this command again to go on"
	saved := im.file.flush
	switch {
	case errors.Is(err, errMoved) || errors.Is(err, errRestarted):
		next, saved = "run this command again to begin again", im.file.remove
	case err == nil && again == 0:
		saved = im.file.remove
	}
	if failed := errors.Join(saved(), im.state.Report.write(out, again)); failed != nil {
		return errors.Join(err, failed)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted: " + next)
	case err != nil:
		return fmt.Errorf("%w; %s", err, next)
	case again > 0:
		return fmt.Errorf("the target had no room for %s: raise its maxmemory, and %s", count(again), next)
	case leftOut > 0:
		return fmt.Errorf("%s of the source were left out", count(leftOut))
	}
	return nil
}

// blame says which server an error is about.
func blame(which string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("the %s: %w", which, err)
}

// batches yields values in parts whose sizes add up to at most most bytes, or that are one value.
func batches(values []*value, most int64) iter.Seq[[]*value] {
	return func(yield func([]*value) bool) {
		for len(values) > 0 {
			n, sum := 1, values[0].size
			for n < len(values) && sum+values[n].size <= most {
				sum += values[n].size
				n++
			}
			if !yield(values[:n]) {
				return
			}
			values = values[n:]
		}
	}
}
