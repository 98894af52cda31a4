package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"os"
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
	settings := resp.NewSettings(resp.Defaults{
		Port: c.Port, Bind: c.Bind, UnixSocket: c.Unixsocket, Databases: c.Databases,
		Password: password, ProtectedMode: c.ProtectedMode == "yes", MaxClients: c.Maxclients, Timeout: c.idle(), LogLevel: c.Loglevel,
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: settings.LogLevel()}))
	listeners, err := listen(c)
	if err != nil {
		return err
	}

	clock := resp.NewClock(time.Now)
	e := engine.New(engine.Options{Databases: c.Databases, Seed: seed()})
	server := resp.NewServer(resp.Options{Engine: e, Clock: clock.Now, Log: log, Settings: settings, Version: version})
	for _, ln := range listeners {
		go server.Serve(ln)
		log.Info("listening", "network", ln.Addr().Network(), "address", ln.Addr().String())
	}
	log.Info("ready", "version", version, "pid", os.Getpid())

	defer sweep(e, clock.Now)()
	defer keepHeapRoom()()
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

// sweep deletes expired keys in the background until the function that it returns is called.
func sweep(e *engine.Engine, now func() int64) (stop func()) {
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
				sweepFor(sweeper, now)
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
