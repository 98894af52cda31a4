package resp

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"rlserver/engine"
)

func init() {
	const asks = "nondeterministic_output request_policy:all_shards response_policy:special"
	register(
		&command{name: "memory", arity: -2, group: "server", since: "4.0.0", complexity: "Depends on subcommand.",
			summary: "A container for memory diagnostics commands",
			subs: []*command{
				{name: "doctor", arity: 2, group: "server", since: "4.0.0", complexity: "O(1)", tips: asks,
					summary: "Outputs memory problems report", run: memoryDoctor},
				{name: "help", arity: 2, flags: loading | stale, group: "server", since: "4.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "malloc-stats", arity: 2, group: "server", since: "4.0.0", tips: asks,
					complexity: "Depends on how much memory is allocated, could be slow",
					summary:    "Show allocator internal stats", run: memoryMallocStats},
				{name: "purge", arity: 2, group: "server", since: "4.0.0", tips: "request_policy:all_shards response_policy:all_succeeded",
					complexity: "Depends on how much memory is allocated, could be slow",
					summary:    "Ask the allocator to release memory", run: memoryPurge},
				{name: "stats", arity: 2, flags: stepwise, group: "server", since: "4.0.0", complexity: "O(1)", tips: asks,
					summary: "Show memory usage details", run: memoryStats},
				{name: "usage", arity: -3, flags: readonly, keys: []keySpec{key("RO", 2)}, group: "server", since: "4.0.0",
					syntax: "key [SAMPLES count]", complexity: "O(N) where N is the number of samples.",
					summary: "Estimate the memory usage of a key", run: memoryUsage},
			}},
	)
}

// memoryUsage handles MEMORY USAGE key [SAMPLES count]. What a collection weighs is known, so there is nothing to sample.
func memoryUsage(c *call) error {
	k := c.args.key()
	for c.args.more() {
		if !c.args.word("SAMPLES") {
			return engine.ErrSyntax
		}
		if c.args.integer() < 0 {
			c.args.fail(engine.ErrSyntax)
		}
	}
	if err := c.args.end(); err != nil {
		return err
	}

	bytes, ok := c.tx.MemoryUsage(k)

	if !ok {
		c.reply.null()
		return nil
	}
	c.reply.integer(bytes)
	return nil
}

// memoryStats handles MEMORY STATS: the figures of Redis that are measured here.
func memoryStats(c *call) error {
	s, keys := sessionOf(c).server, 0
	for db := range s.engine.Databases() {
		n, _ := c.tx.Count(db)
		keys += n
	}
	used, dataset := s.usedMemory(), s.engine.Weight()
	resident, known := residentMemory()
	fields := 7
	if known {
		fields = 9
	}

	c.reply.mapping(fields)
	c.reply.amount("total.allocated", used)
	c.reply.amount("overhead.total", max(0, s.overhead.Load()))
	c.reply.amount("keys.count", int64(keys))
	c.reply.amount("keys.bytes-per-key", dataset/int64(max(1, keys)))
	c.reply.amount("dataset.bytes", dataset)
	c.reply.ratio("dataset.percentage", 100*float64(dataset)/float64(max(1, used)))
	c.reply.amount("allocator.resident", runtimeBytes("/memory/classes/total:bytes")-runtimeBytes("/memory/classes/heap/released:bytes"))
	if known {
		c.reply.ratio("fragmentation", float64(resident)/float64(max(1, used)))
		c.reply.amount("fragmentation.bytes", resident-used)
	}
	return nil
}

func (r *reply) amount(name string, n int64) {
	r.bulkString(name)
	r.integer(n)
}

func (r *reply) ratio(name string, f float64) {
	r.bulkString(name)
	r.double(f)
}

// runtimeBytes is a figure of the Go runtime.
func runtimeBytes(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// memoryMallocStats handles MEMORY MALLOC-STATS: what the Go runtime tells of its memory.
func memoryMallocStats(c *call) error {
	var text strings.Builder
	var samples []metrics.Sample
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/memory/") || strings.HasPrefix(d.Name, "/gc/") {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	for _, sample := range samples {
		if sample.Value.Kind() == metrics.KindUint64 {
			fmt.Fprintf(&text, "%s %d\n", sample.Name, sample.Value.Uint64())
		}
	}
	c.reply.verbatim(text.String())
	return nil
}

// memoryPurge handles MEMORY PURGE, which costs a collection: it is done once a second at most, whoever asks.
func memoryPurge(c *call) error {
	s := sessionOf(c)
	if s.server.seldom(&s.server.purged, time.Second) {
		debug.FreeOSMemory()
	}
	c.reply.ok()
	return nil
}

// memoryDoctor handles MEMORY DOCTOR.
func memoryDoctor(c *call) error {
	s := sessionOf(c).server
	used, most := s.usedMemory(), s.settings.MaxMemory()
	var found []string
	find := func(format string, a ...any) { found = append(found, fmt.Sprintf(format, a...)) }
	if most == 0 {
		find("maxmemory is 0: the process may take all memory there is. Set --maxmemory.")
	} else if used > most/10*9 {
		find("%s of maxmemory %s are used: keys are evicted by %s, or soon will be.", humanBytes(used), humanBytes(most), s.settings.policy())
	}
	if n := s.crowdedOut.Load(); n > 0 {
		find("%d calls were answered OOM: there was nothing that %s may evict. Raise maxmemory, or delete keys.", n, s.settings.policy())
	}
	if other := max(0, s.overhead.Load()); most > 0 && other > most/2 {
		find("%s are taken by other things than keys: by what clients send and do not read, for the most part. See CLIENT LIST.", humanBytes(other))
	}
	if resident, ok := residentMemory(); ok && resident > leastToJudge && resident > used*3/2 {
		find("the process stands at %s but needs %s: MEMORY PURGE gives memory back to the system.", humanBytes(resident), humanBytes(used))
	}
	if len(found) == 0 {
		found = []string{"No problem was found."}
	}
	c.reply.verbatim(strings.Join(found, "\n") + "\n")
	return nil
}

// leastToJudge is a size below which a process is as large as the runtime makes it.
const leastToJudge = 128 << 20
