package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"math"
	"os"
	"syscall"
	"time"

	"rlserver/engine"
	"rlserver/resp"
)

// drainTime is how long calls on their way are waited for at the end.
const drainTime = 10 * time.Second

// serve runs the server until the context ends or a client sends SHUTDOWN. Every call on its way is answered before it returns.
func serve(ctx context.Context, c config) error {
	password, err := c.password()
	if err != nil {
		return err
	}
	most := mostClients()
	settings := resp.NewSettings(resp.Defaults{
		Port: c.Port, Bind: c.addresses(), UnixSocket: c.Unixsocket, UnixSocketPerm: c.Unixsocketperm, Databases: c.Databases,
		Password: password, ProtectedMode: c.ProtectedMode == "yes", DebugCommand: c.EnableDebugCommand,
		MaxClients: min(c.Maxclients, most), MostClients: most, Timeout: seconds(c.Timeout), Keepalive: seconds(c.TcpKeepalive), LogLevel: c.Loglevel,
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: settings.LogLevel()}))
	if most < c.Maxclients {
		log.Warn("fewer clients can be connected than maxclients asks for: the limit on open files is too low", "maxclients", c.Maxclients, "possible", most)
	}
	listeners, err := listen(c)
	if err != nil {
		return err
	}

	clock := resp.NewClock(time.Now)
	e := engine.New(engine.Options{Databases: c.Databases, Seed: seed()})
	server := resp.NewServer(resp.Options{Engine: e, Clock: clock.Now, Log: log, Settings: settings, Version: version})
	for _, ln := range listeners {
		go server.Serve(ln) // until Shutdown
		log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String())
	}
	log.Info("ready", "version", version, "pid", os.Getpid())

	defer sweep(e, clock.Now, settings.ActiveExpiry)()
	defer keepHeapRoom()()
	defer fitProcessors(server.Load)()
	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", "signal")
	case <-server.ShutdownRequested():
		log.Info("stopping", "reason", "SHUTDOWN")
	}
	deadline, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if left := server.Shutdown(deadline); left > 0 {
		log.Warn("connections were cut off", "count", left)
	}
	log.Info("stopped")
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
)

// sweep deletes expired keys in the background, as long as that is wanted, until the function that it returns is called.
func sweep(e *engine.Engine, now func() int64, wanted func() bool) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sweeper := e.NewSweeper()
		ticker := time.NewTicker(sweepTick)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				if wanted() {
					sweepFor(sweeper, now)
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

// sweepFor goes one tick's share of the way round.
func sweepFor(s *engine.Sweeper, now func() int64) {
	share := 1 / float64(sweepRound/sweepTick)
	start := time.Now()
	for goal := s.Rounds() + share; s.Rounds() < goal && time.Since(start) < sweepMost; {
		s.Step(now())
	}
}
