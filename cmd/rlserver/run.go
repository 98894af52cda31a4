package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rlserver/clock"
	"rlserver/engine"
	"rlserver/persistence"
	"rlserver/resp"
)

const (
	drainTime = 10 * time.Second // how long calls on their way are waited for at the end
	stopTime  = time.Second      // how much longer what waits for the locks of calls that are still running
)

// serve runs the server, by the clocks of a source, until the context ends or a client sends SHUTDOWN. Every call on its way is answered before it
// returns, if it takes no longer than drainTime.
func serve(ctx context.Context, c config, source clock.Source) error {
	tight, err := checkAddressSpace(c.maxmemory)
	if err != nil {
		return err
	}
	password, err := c.password()
	if err != nil {
		return err
	}
	var policies []*engine.Policy
	hangups := make(chan os.Signal, 1)
	if c.Policies != "" {
		signal.Notify(hangups, syscall.SIGHUP) // which would end the process while the data is being loaded
		if policies, err = readPolicies(c.Policies); err != nil {
			return fmt.Errorf("--policies cannot be read: %w", err)
		}
	}
	most := mostClients()
	if c.Unixsocket != "" {
		most = max(1, most-c.ReservedClients)
	}
	settings := resp.NewSettings(resp.Defaults{
		Port: c.Port, Bind: c.addresses(), UnixSocket: c.Unixsocket, UnixSocketPerm: c.Unixsocketperm, Databases: c.Databases,
		Password: password, ProtectedMode: c.ProtectedMode == "yes", DebugCommand: c.EnableDebugCommand,
		MaxClients: min(c.Maxclients, most), MostClients: most, Timeout: seconds(c.Timeout), Reserved: c.ReservedClients, PreauthTimeout: seconds(c.PreauthTimeout), Keepalive: seconds(c.TcpKeepalive), LogLevel: c.Loglevel,
		MaxKey: c.maxKey, MaxMemory: c.maxmemory, MemoryPolicy: c.MaxmemoryPolicy,
		ClientMemory: c.clientMemory, PreauthMemory: c.preauthMemory, OutputLimits: c.ClientOutputBufferLimit,
		AppendOnly: c.Appendonly == "yes", Dir: c.Dir, AppendFsync: c.Appendfsync, OnDiskFailure: c.OnDiskFailure,
		RewritePercentage: c.AutoAofRewritePercentage, RewriteMinSize: c.rewriteMinSize, Save: c.save,
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: settings.LogLevel()}))
	if most < c.Maxclients {
		log.Warn("fewer clients can be connected than maxclients asks for: the limit on open files is too low", "maxclients", c.Maxclients, "possible", most)
	}
	if tight != "" {
		log.Warn(tight)
	}
	serverTime := clock.New(source, log)
	data, err := persistence.Open(persistence.Options{
		Dir: c.Dir, AppendOnly: c.Appendonly == "yes", Clock: serverTime.Now, Log: log, Settings: storeSettings(settings.Store()),
	})
	if err != nil {
		return err
	}
	listeners, err := listen(c)
	if err != nil {
		return errors.Join(err, data.Close())
	}
	options := engine.Options{Databases: c.Databases, Seed: seed()}
	if c.Appendonly == "yes" {
		options.Journal = data
	}
	e := engine.New(options)
	file := &policyFile{path: c.Policies, e: e, now: serverTime.Now, log: log, refusal: store{data}.Refusal}
	server := resp.NewServer(resp.Options{
		Engine: e, Journal: options.Journal, Store: store{data}, Clock: serverTime, Log: log, Settings: settings, Version: version,
		ReloadPolicies: file.reloader(),
	})
	file.changed = server.PoliciesChanged
	heap := keepHeap(server.MemoryTaken)
	defer heap.stop()
	heap.keepTo(settings.MaxMemory())
	server.SetLoading(true)
	for _, ln := range listeners {
		log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String())
	}
	load := func() error {
		if err := restore(ctx, data, e, serverTime, log); err != nil {
			return err
		}
		if c.Policies != "" {
			file.set(policies)
		}
		server.SetLoading(false)
		return nil
	}
	if err := loadThenOpen(loadPatience, load, func() { letIn(server, listeners) }); err != nil {
		server.Shutdown(ctx) // which takes the sockets away of those who serve
		for _, ln := range listeners {
			ln.Close()
		}
		return err
	}
	stops := []func(){
		serverTime.Run(),
		sweep(e, serverTime.Now, settings.ActiveExpiry, data.Refuses, func() { heap.keepTo(settings.MaxMemory()) }),
		fitProcessors(server.Load),
	}
	if c.Policies != "" {
		stops = append(stops, file.reloadOn(hangups))
	}
	log.Info("ready", "version", version, "pid", os.Getpid())

	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", "signal")
	case <-server.ShutdownRequested():
		log.Info("stopping", "reason", "SHUTDOWN")
	}
	drained, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	ending := context.Background() // until when what needs the engine's locks is waited for
	if left := server.Shutdown(drained); left > 0 {
		log.Warn("connections were cut off", "count", left)
		ending, cancel = context.WithTimeout(ending, stopTime)
		defer cancel()
	}
	for _, stop := range stops { // before the log is closed: what they change goes there
		within(ending, stop)
	}
	snapshot := c.Appendonly == "no" && len(settings.Store().Save) > 0 && !server.EndsUnsaved()
	if err := closeData(ending, data, snapshot); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// closeData lets go of the data directory, after a last snapshot if that is wanted, by the end of the context. The error says what may be lost.
func closeData(ending context.Context, data *persistence.Store, snapshot bool) error {
	var failed error
	if snapshot {
		err := errors.New("a call that is still running holds a part of the data")
		if saved := make(chan error, 1); within(ending, func() { saved <- data.Snapshot() }) {
			err = <-saved
		}
		if err != nil {
			failed = fmt.Errorf("the last snapshot could not be taken, and what has changed since the one before is lost: %w", err)
		}
	}
	if err := data.CloseBy(ending); err != nil {
		failed = errors.Join(failed, fmt.Errorf("the log could not be written to its end: %w", err))
	}
	return failed
}

// within does something and tells whether that was through before the context ended. If it was not, it goes on beside.
func within(ctx context.Context, do func()) bool {
	done := make(chan struct{})
	go func() {
		do()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// letIn begins to serve those who connect, and those who wait to be let in.
func letIn(server *resp.Server, listeners []net.Listener) {
	for _, ln := range listeners {
		go server.Serve(ln) // until Shutdown
	}
}

// restore brings back the state of the data directory, and begins to keep it there.
func restore(ctx context.Context, data *persistence.Store, e *engine.Engine, serverTime *clock.Clock, log *slog.Logger) error {
	start := time.Now()
	failed := make(chan error, 1)
	var r persistence.Recovery
	go func() {
		var err error
		if r, err = data.Load(e); err == nil {
			serverTime.Continue(r.Last)
			err = data.Start()
		}
		failed <- err
	}()
	select {
	case <-ctx.Done():
		return errors.New("stopped before the data was loaded; nothing of it has changed")
	case err := <-failed:
		if err != nil {
			return err
		}
	}
	if r.Passed != nil {
		log.Warn("the newest snapshot is damaged: an older one and the log took its place", "error", r.Passed)
	}
	if t := r.Torn; t != nil {
		log.Warn("the end of the log was torn, and is cut off", "segment", t.Segment, "offset", t.Offset, "bytes", t.Bytes, "since", time.UnixMilli(t.Since).UTC())
	}
	if r.Records > 0 {
		log.Info("loaded", "snapshot", r.Snapshot, "segments", r.Segments, "records", r.Records, "took", time.Since(start).Round(time.Millisecond))
	}
	return nil
}

// ownFiles are open files that no client has: listeners, the log, and what the system needs.
const ownFiles = 32

// mostClients is how many connections the limit on open files leaves room for. The runtime has raised that as far as it may.
func mostClients() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil || files.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(1, int(files.Cur)-ownFiles)
}

// seed draws the key under which names are hashed, so that no stranger can choose names that collide.
func seed() (key [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never fails: it ends the process instead
	key[0], key[1] = binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
	return key
}

const (
	sweepTick  = 100 * time.Millisecond
	sweepRound = time.Second           // how long a walk round the whole keyspace takes, if the budget allows
	sweepMost  = 25 * time.Millisecond // of each tick, at most
	sweepTurn  = 200 * time.Microsecond
)

// sweep deletes expired keys in the background, as long as that is wanted, and evicts what no call has room for, until the function that
// it returns is called; not while changes are refused, as what they would add to the log waits in memory. At each tick it calls tick.
func sweep(e *engine.Engine, now func() int64, wanted func() bool, refuses func() error, tick func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sweeper, tx := e.NewSweeper(), e.NewTx()
		ticker := time.NewTicker(sweepTick)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				tick()
				if refuses() != nil {
					continue
				}
				if wanted() {
					sweepFor(sweeper, now)
				}
				evictFor(e, tx, now)
			}
		}
	}()
	return func() { close(quit); <-done }
}

// sweepFor goes one tick's share of the way round.
func sweepFor(s *engine.Sweeper, now func() int64) {
	goal := s.Rounds() + 1/float64(sweepRound/sweepTick)
	byTurns(func() bool {
		s.Step(now())
		return s.Rounds() < goal
	})
}

// evictFor evicts keys for a while if there are too many: a call does so only before it takes more room, and for itself.
func evictFor(e *engine.Engine, tx *engine.Tx, now func() int64) {
	byTurns(func() bool {
		if !e.Crowded() {
			return false
		}
		room := tx.MakeRoom(now())
		return room
	})
}

// byTurns takes small steps, as long as there are more and they have not taken all of a tick's time, and sleeps in between: the server may have but
// one processor, and while anything at all can run there, the runtime asks only every 10 ms whether clients have sent something.
func byTurns(step func() (more bool)) {
	turn := time.Now()
	for taken := time.Duration(0); taken < sweepMost && step(); {
		if worked := time.Since(turn); worked > sweepTurn {
			taken += worked
			time.Sleep(sweepTurn)
			turn = time.Now()
		}
	}
}
