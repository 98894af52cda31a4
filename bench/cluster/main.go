// Cluster compares several nodes on this machine with a single server, in one run: decisions per
// second, CPU time per decision, the latency of an admit and of a denial, the time without admits
// after a leader is killed, and the CPU time and memory of an idle node.
//
//	cluster [-server bin/rlserver] [-seconds 2] [-rounds 3] [-kills 9] [-nodes 3] [-flags FLAGS]
//
// Three nodes do three times the work on the same processors, together with the clients. Nothing is
// asserted. All connections are on the loopback interface.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	connections = 256
	pipeline    = 16
	keys        = 100_000
)

func main() {
	server := flag.String("server", "bin/rlserver", "the binary")
	seconds := flag.Float64("seconds", 2, "duration of each load")
	rounds := flag.Int("rounds", 3, "number of measurements of each; the median is printed")
	kills := flag.Int("kills", 9, "number of leaders that are killed")
	nodes := flag.Int("nodes", 3, "number of nodes of the cluster")
	flags := flag.String("flags", "", "further flags of the nodes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := filepath.Abs(*server) // each process runs in another directory
	if err == nil {
		b := bench{binary: path, length: time.Duration(*seconds * float64(time.Second)), rounds: *rounds, nodes: *nodes,
			flags: strings.Fields(*flags)}
		err = b.run(ctx, *kills)
	}
	if err != nil {
		log.Fatalf("cluster: %v", err)
	}
}

// bench holds the parameters of all measurements.
type bench struct {
	binary string
	length time.Duration
	rounds int
	nodes  int
	flags  []string // of nodes
}

// calls are the limiters that are measured. The limits are so high that all calls are admitted.
var calls = []struct {
	name  string
	words []string // after the key
}{
	{"RL.TOKEN", []string{"1000000", "1000000", "60"}},
	{"RL.SLIDE", []string{"100", "60"}},
}

func (b *bench) run(ctx context.Context, kills int) error {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s · %d cores, load %s· median of %d\n\n", runtime.Version(), runtime.NumCPU(),
		strings.Join(append(strings.Fields(string(load))[:min(1, len(load))], ""), " "), b.rounds)
	fmt.Printf("%d connections, pipeline %d%*s %9s %12s %6s   %s\n", connections, pipeline, 11, "", "alone",
		fmt.Sprint(b.nodes, " nodes"), "ratio", "target")
	for _, sync := range []string{"always", "everysec"} {
		if err := b.throughput(ctx, sync); err != nil {
			return err
		}
	}
	fmt.Printf(
		"\none connection, no pipeline, µs%*s %20s %20s\n",
		9,
		"",
		"alone p50 (p99)",
		fmt.Sprint(b.nodes, " nodes p50 (p99)"),
	)
	for _, sync := range []string{"always", "everysec"} {
		if err := b.latencies(ctx, sync); err != nil {
			return err
		}
	}
	return b.failures(ctx, kills)
}

// measured is the result of one server or cluster under load.
type measured struct {
	rate float64       // decisions per second
	cpu  time.Duration // of all its processes, per decision
}

// throughput prints the decisions per second of a single server and of a cluster, measured in
// alternation.
func (b *bench) throughput(ctx context.Context, sync string) error {
	all := make(map[string][2][]measured)
	for range b.rounds {
		for side, size := range []int{1, b.nodes} {
			s, err := b.start(ctx, size, "--appendfsync", sync)
			if err != nil {
				return err
			}
			for _, call := range calls {
				m, err := s.load(ctx, b.length, append([]string{call.name, ""}, call.words...))
				if err != nil {
					s.stop()
					return err
				}
				sides := all[call.name]
				sides[side] = append(sides[side], m)
				all[call.name] = sides
			}
			s.stop()
		}
	}
	for _, call := range calls {
		var rate, cpu [2]float64
		for side, list := range all[call.name] {
			rate[side] = median(list, func(m measured) float64 { return m.rate })
			cpu[side] = median(list, func(m measured) float64 { return float64(m.cpu.Nanoseconds()) / 1000 })
		}
		target := ">= 0.35"
		if sync == "everysec" {
			target = ">= 0.45"
		}
		fmt.Printf("%-42s %9.0f %12.0f %6.2f   %s\n", call.name+" "+sync+", per second", rate[0], rate[1],
			rate[1]/rate[0], target)
		fmt.Printf("%-42s %9.2f %12.2f %6.2f   %s\n", call.name+" "+sync+", µs of CPU each", cpu[0], cpu[1],
			cpu[1]/cpu[0], "<= 3.5")
	}
	return nil
}

func median[T any](list []T, value func(T) float64) float64 {
	all := make([]float64, len(list))
	for i, v := range list {
		all[i] = value(v)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// latencies prints the latencies of an admit and of a denial for one client.
func (b *bench) latencies(ctx context.Context, sync string) error {
	var columns [2]map[string]string
	for side, size := range []int{1, b.nodes} {
		s, err := b.start(ctx, size, "--appendfsync", sync)
		if err != nil {
			return err
		}
		columns[side], err = s.latencies(ctx)
		s.stop()
		if err != nil {
			return err
		}
	}
	for _, what := range []string{"admit", "denial"} {
		fmt.Printf("%-38s %20s %20s\n", what+", "+sync, columns[0][what], columns[1][what])
	}
	return nil
}

// failures prints the CPU time and memory of an idle node, and the time from the kill of a leader
// to the next admit.
func (b *bench) failures(ctx context.Context, kills int) error {
	s, err := b.start(ctx, b.nodes, "--appendfsync", "everysec")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := pause(ctx, 2*time.Second); err != nil {
		return err
	}
	before, begun := s.cpu(), time.Now()
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	idle := float64(s.cpu()-before) / float64(time.Since(begun)) / float64(len(s.nodes))
	fmt.Printf("\nan idle node: %.1f %% of a core, %d MB\n", 100*idle, s.resident()>>20/int64(len(s.nodes)))
	var outages []float64
	for n := range kills {
		outage, err := s.kill(ctx, n)
		if err != nil {
			return err
		}
		outages = append(outages, outage.Seconds())
	}
	if len(outages) > 0 {
		fmt.Printf("leader killed to next admit: median %.2f s, longest %.2f s of %d (target 1 s, 2 s)\n",
			median(outages, func(v float64) float64 { return v }), slices.Max(outages), kills)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
