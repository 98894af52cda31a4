package server

import (
	"fmt"
	"runtime/metrics"
	"strconv"
	"strings"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("server",
		&command.Command{Name: "memory", Arity: -2, Subs: []*command.Command{
			{Name: "doctor", Arity: 2, Run: memoryDoctor},
			command.HelpSince("4.0.0"),
			{Name: "malloc-stats", Arity: 2, Run: memoryMallocStats},
			{Name: "purge", Arity: 2, Run: memoryPurge},
			{Name: "stats", Arity: 2, Flags: command.Stepwise, Run: memoryStats},
			{Name: "usage", Arity: -3, Flags: command.Readonly, Keys: []command.KeySpec{command.Key("RO", 2)},
				Run: memoryUsage},
		}},
	)
}

// memoryUsage handles MEMORY USAGE key [SAMPLES count]. The weight of each value is known, so
// SAMPLES changes nothing.
func memoryUsage(c *command.Call) error {
	k := c.Args.Key()
	for c.Args.More() {
		if !c.Args.Word("SAMPLES") {
			return engine.ErrSyntax
		}
		if c.Args.Integer() < 0 {
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	bytes, ok := c.Tx.MemoryUsage(k)

	if !ok {
		c.Reply.Null()
		return nil
	}
	return c.ReplyInteger(bytes, nil)
}

// memoryStats handles MEMORY STATS, with the fields of Redis. Of what this server does not have, or
// does not measure apart from the keys, they are 0.
func memoryStats(c *command.Call) error {
	f, memory, own, keys, databases := c.Env.Server.Figures(), c.Env.Engine.Memory(), c.Env.Engine, 0, []int(nil)
	for _, e := range memory.Engines() { // also of groups that this node follows
		for db := range e.Databases() {
			n, _ := countOf(e, own, c.Tx, db)
			if keys += n; n > 0 && e == own {
				databases = append(databases, db)
			}
		}
	}
	backlog := int64(0)
	if c.Env.Store != nil {
		backlog = c.Env.Store.Status().Backlog
	}
	used, dataset, a := f.Memory, memory.Weight(), readAllocator()
	rss, known := residentMemory()
	if !known {
		rss = a.resident
	}

	r := &c.Reply
	r.Mapping(27 + len(databases))
	writeAmount(r, "peak.allocated", f.PeakMemory)
	writeAmount(r, "total.allocated", used)
	writeAmount(r, "startup.allocated", f.StartMemory)
	writeAmount(r, "replication.backlog", 0)
	writeAmount(r, "clients.slaves", 0)
	writeAmount(r, "clients.normal", f.ClientMemory)
	writeAmount(r, "cluster.links", 0)
	writeAmount(r, "aof.buffer", backlog)
	writeAmount(r, "lua.caches", 0)
	writeAmount(r, "functions.caches", 0)
	for _, db := range databases {
		r.BulkString("db." + strconv.Itoa(db))
		r.Mapping(3)
		writeAmount(r, "overhead.hashtable.main", 0)
		writeAmount(r, "overhead.hashtable.expires", 0)
		writeAmount(r, "overhead.hashtable.slot-to-keys", 0)
	}
	writeAmount(r, "overhead.total", max(0, f.Overhead+f.ClientMemory))
	writeAmount(r, "keys.count", int64(keys))
	writeAmount(r, "keys.bytes-per-key", dataset/int64(max(1, keys)))
	writeAmount(r, "dataset.bytes", dataset)
	writeRatio(r, "dataset.percentage", 100*dataset, used)
	writeRatio(r, "peak.percentage", 100*used, f.PeakMemory)
	writeAmount(r, "allocator.allocated", a.allocated)
	writeAmount(r, "allocator.active", a.active)
	writeAmount(r, "allocator.resident", a.resident)
	writeCompared(r, "allocator-fragmentation", a.active, a.allocated)
	writeCompared(r, "allocator-rss", a.resident, a.active)
	writeCompared(r, "rss-overhead", rss, a.resident)
	writeRatio(r, "fragmentation", rss, used)
	writeAmount(r, "fragmentation.bytes", rss-used)
	return nil
}

// countOf returns how many keys a database of an engine has, and how many of them have a deadline.
// tx is that of the call on own: within a transaction its changes count.
func countOf(e, own *engine.Engine, tx *engine.Tx, db int) (keys, expires int) {
	if e == own {
		return tx.Count(db)
	}
	return e.Size(db)
}

func writeAmount(r *wire.Reply, name string, n int64) {
	r.BulkString(name)
	r.Integer(n)
}

func writeRatio(r *wire.Reply, name string, n, of int64) {
	r.BulkString(name)
	r.Double(float64(n) / float64(max(1, of)))
}

// writeCompared writes the ratio of two amounts, and their difference.
func writeCompared(r *wire.Reply, name string, n, of int64) {
	writeRatio(r, name+".ratio", n, of)
	writeAmount(r, name+".bytes", n-of)
}

// allocator has the memory of the Go runtime in Redis' terms, in bytes: of objects, of the pages
// with objects, and what is not returned to the system.
type allocator struct{ allocated, active, resident int64 }

func readAllocator() (a allocator) {
	a.allocated = command.RuntimeBytes("/memory/classes/heap/objects:bytes")
	a.active = a.allocated + command.RuntimeBytes("/memory/classes/heap/unused:bytes")
	a.resident = command.RuntimeBytes("/memory/classes/total:bytes") -
		command.RuntimeBytes("/memory/classes/heap/released:bytes")
	return a
}

// memoryMallocStats handles MEMORY MALLOC-STATS with the memory metrics of the Go runtime.
func memoryMallocStats(c *command.Call) error {
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
	c.Reply.Verbatim(text.String())
	return nil
}

func memoryPurge(c *command.Call) error {
	c.Env.Server.FreeMemory()
	return c.ReplyOK(nil)
}

func memoryDoctor(c *command.Call) error {
	figures := c.Env.Server.Figures()
	used, most := figures.Memory, c.Env.Settings.MaxMemory()
	var found []string
	find := func(format string, a ...any) { found = append(found, fmt.Sprintf(format, a...)) }
	if most == 0 {
		find("maxmemory is 0: the process may take all memory of the machine. Set --maxmemory.")
	} else if used > most/10*9 {
		find("%s of maxmemory %s are used: keys are evicted by %s, or soon will be.",
			humanBytes(used), humanBytes(most), c.Env.Settings.Policy())
	}
	if n := figures.OutOfMemory; n > 0 {
		find("%d calls were refused with OOM: %s had nothing to evict. Raise maxmemory, or delete keys.", n,
			c.Env.Settings.Policy())
	}
	if other := max(0, figures.Overhead); most > 0 && other > most/2 {
		find("%s are used by something other than keys, mostly by buffers of clients that do not read. See "+
			"CLIENT LIST.", humanBytes(other))
	}
	if resident, ok := residentMemory(); ok && resident > minResident && resident > used*3/2 {
		find("%s of the process are resident but only %s are needed: MEMORY PURGE returns memory to the system.",
			humanBytes(resident), humanBytes(used))
	}
	if len(found) == 0 {
		found = []string{"No problem was found."}
	}
	c.Reply.Verbatim(strings.Join(found, "\n") + "\n")
	return nil
}

// minResident is a resident size in bytes. Below it the Go runtime decides the size of the process.
const minResident = 128 << 20
