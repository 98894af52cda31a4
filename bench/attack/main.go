// Attack runs clients that mean harm against a server, one attack at a time, each bounded in time,
// and prints what each costs: the memory of the process at most, limiters evicted, and how long an
// innocent client waits meanwhile.
//
//	attack -server bin/rlserver [-before other/rlserver] [-only part-of-a-name] [-seconds 6]
//
// With -before each attack also runs against a second binary, for a comparison in one run. Nothing
// is asserted: the figures are for people. Attackers, the innocent client and the server share this
// machine's processors, so that part of an innocent client's latency is the attacker's own work.
// All connections stay on the loopback interface.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	server := flag.String("server", "bin/rlserver", "the binary to attack")
	before := flag.String("before", "", "another binary, attacked in turn with the first")
	only := flag.String("only", "", "run the attacks whose name contains this")
	seconds := flag.Float64("seconds", 6, "how long each attack lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	binaries := []string{*server}
	if *before != "" {
		binaries = []string{*before, *server}
	}
	fmt.Println(header)
	for i, binary := range binaries {
		path, err := filepath.Abs(binary) // it runs in a folder of its own
		if err != nil {
			log.Fatalf("attack: %v", err)
		}
		binaries[i] = path
	}
	for _, a := range attacks {
		if !strings.Contains(a.name, *only) {
			continue
		}
		for i, binary := range binaries {
			if ctx.Err() != nil {
				log.Fatal("attack: interrupted")
			}
			label := "now"
			if i < len(binaries)-1 {
				label = "before"
			}
			o, err := a.measure(ctx, binary, time.Duration(*seconds*float64(time.Second)))
			if err != nil {
				o.note = err.Error()
			}
			fmt.Println(o.row(a.name, label))
		}
	}
}

// outcome is what one attack has cost.
type outcome struct {
	peak     int64 // bytes, the resident memory of the process at most
	evicted  int64 // limiters
	innocent latencies
	refused  int // calls of the innocent client that were answered with an error
	// from the end of the attack until a change is taken and used_memory is back
	recovered time.Duration
	stopped   time.Duration // from SIGTERM to the end of the process
	note      string
}

const header = "| attack | server | peak MB | evicted | innocent p50 / p99 / p99.9 / max ms | calls | errors | " +
	"recovered s | SIGTERM to end s | note |\n" +
	"|---|---|---|---|---|---|---|---|---|---|"

func (o outcome) row(name, label string) string {
	return fmt.Sprintf("| %s | %s | %d | %d | %s | %d | %d | %s | %s | %s |", name, label, o.peak>>20, o.evicted,
		o.innocent, len(o.innocent), o.refused, orNever(o.recovered), orNever(o.stopped), o.note)
}

// orNever prints a duration in seconds; 0 stands for one that was not measured, -1 for one that was
// not seen to end.
func orNever(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 0:
		return "not seen"
	}
	return fmt.Sprintf("%.2f", d.Seconds())
}
