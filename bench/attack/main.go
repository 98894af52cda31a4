// Attack runs hostile clients against a server, one attack at a time, each for a limited time, and
// prints the cost of each: peak memory of the process, evicted limiters, and the latency of a
// well-behaved client meanwhile.
//
//	attack -server bin/rlserver [-before other/rlserver] [-only part-of-a-name] [-seconds 6]
//
// With -before each attack also runs against a second binary, for a comparison in one run. Nothing
// is asserted. Attackers, the well-behaved client and the server share this machine's processors,
// so that part of the client's latency is caused by the work of the attacker. All connections are
// on the loopback interface.
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
	before := flag.String("before", "", "another binary, attacked in alternation with the first")
	only := flag.String("only", "", "run the attacks whose names contain this text")
	seconds := flag.Float64("seconds", 6, "duration of each attack")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	binaries := []string{*server}
	if *before != "" {
		binaries = []string{*before, *server}
	}
	fmt.Println(header)
	for i, binary := range binaries {
		path, err := filepath.Abs(binary) // it runs in another directory
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

// outcome is the cost of one attack.
type outcome struct {
	peak    int64 // highest resident memory of the process, in bytes
	evicted int64 // limiters
	benign  latencies
	refused int // calls of the well-behaved client that failed
	// from the end of the attack until writes are accepted and used_memory is as before
	recovered time.Duration
	stopped   time.Duration // from SIGTERM to the end of the process
	note      string
}

const header = "| attack | server | peak MB | evicted | benign p50 / p99 / p99.9 / max ms | calls | errors | " +
	"recovered s | SIGTERM to end s | note |\n" +
	"|---|---|---|---|---|---|---|---|---|---|"

func (o outcome) row(name, label string) string {
	return fmt.Sprintf("| %s | %s | %d | %d | %s | %d | %d | %s | %s | %s |", name, label, o.peak>>20, o.evicted,
		o.benign, len(o.benign), o.refused, orNever(o.recovered), orNever(o.stopped), o.note)
}

// orNever returns a duration in seconds, "-" for 0, which was not measured, and "not seen" for -1,
// which did not end.
func orNever(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 0:
		return "not seen"
	}
	return fmt.Sprintf("%.2f", d.Seconds())
}
