// Command budgets measures reservations on a running server: RL.CHECK with two policies and HOLD,
// and its RL.SETTLE, compared with RL.ALL with two rules of the same kinds.
//
//	go run ./bench/budgets -port 6379 -pid 1234     also part of make bench
//
// Each call is on one of 100,000 customers. The three take turns, and each reservation is settled
// in the next turn. The medians of the rounds are printed: calls per second of all connections, and
// the CPU time that the process with the given id uses for a call.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	connections = 50
	pipeline    = 16
	customers   = 100_000
)

type bench struct {
	port  string
	pid   int
	round int
	calls int // of a turn
	conns []net.Conn
}

// load is what takes turns.
type load struct {
	label, target string
	call          func(out []byte, customer string, n int) []byte
	rates, costs  []float64
}

func main() {
	b := bench{}
	rounds := flag.Int("rounds", 5, "how many turns each load has")
	flag.StringVar(&b.port, "port", "6379", "the port of the server")
	flag.IntVar(&b.pid, "pid", 0, "the id of its process; 0: its CPU time is not measured")
	flag.IntVar(&b.calls, "calls", 200_000, "how many calls a turn has")
	flag.Parse()
	if err := b.run(*rounds); err != nil {
		log.Fatal("bench/budgets: ", err)
	}
}

func (b *bench) run(rounds int) error {
	for range connections {
		conn, err := net.Dial("tcp", "127.0.0.1:"+b.port)
		if err != nil {
			return err
		}
		defer conn.Close()
		b.conns = append(b.conns, conn)
	}
	for _, policy := range []string{"requests SLIDE 1000 60", "tokens TOKEN 1000000 1000000 60"} {
		if err := b.exchange(b.conns[0], encode(nil, strings.Fields("RL.POLICY SET "+policy)...), 1); err != nil {
			return err
		}
	}
	loads := []*load{
		{"RL.ALL, two rules", "", func(out []byte, customer string, _ int) []byte {
			return encode(out, "RL.ALL", "a:{"+customer+"}", "SLIDE", "1000", "60",
				"b:{"+customer+"}", "TOKEN", "1000000", "1000000", "60")
		}, nil, nil},
		{"RL.CHECK, two policies, HOLD", ">= 0.7", func(out []byte, customer string, n int) []byte {
			return encode(out, "RL.CHECK", customer, "requests", "tokens",
				"COST", "1", "400", "HOLD", "60", "ID", b.id(n))
		}, nil, nil},
		{"  and its RL.SETTLE", ">= 0.7", func(out []byte, customer string, n int) []byte {
			return encode(out, "RL.SETTLE", "CHECK", customer, "requests", "tokens", "COST", "1", "300", "ID", b.id(n))
		}, nil, nil},
	}
	for b.round = range rounds + 1 { // the first one warms up
		for _, l := range loads {
			if err := b.turn(l); err != nil {
				return err
			}
		}
	}
	print(loads)
	return nil
}

// id is that of the reservation n of a round.
func (b *bench) id(n int) string { return fmt.Sprintf("%d-%06d", b.round, n) }

// turn makes the calls of a load, which are encoded before the time is taken.
func (b *bench) turn(l *load) error {
	batches := make([][][]byte, connections)
	for n := 0; n < b.calls; n += pipeline {
		var out []byte
		for i := n; i < n+pipeline; i++ {
			customer := "c" + strconv.Itoa((i*7919+b.round*104729)%customers)
			out = l.call(out, customer, i)
		}
		at := n / pipeline % connections
		batches[at] = append(batches[at], out)
	}
	var clients sync.WaitGroup
	failed := make([]error, connections)
	cpu, begun := b.processor(), time.Now()
	for i, own := range batches {
		clients.Go(func() {
			for _, batch := range own {
				if failed[i] = b.exchange(b.conns[i], batch, pipeline); failed[i] != nil {
					return
				}
			}
		})
	}
	clients.Wait()
	took := time.Since(begun)
	calls := float64((b.calls + pipeline - 1) / pipeline * pipeline)
	if b.round > 0 {
		l.rates = append(l.rates, calls/took.Seconds())
		l.costs = append(l.costs, (b.processor()-cpu)*1e6/calls)
	}
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange sends calls and reads their replies: texts, integers and arrays of them.
func (b *bench) exchange(conn net.Conn, out []byte, replies int) error {
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(out); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 32<<10)
	for ; replies > 0; replies-- {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line[0] == '-' {
			return fmt.Errorf("the server replies %s", line)
		}
		if line[0] == '*' {
			n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
			replies += n
		}
	}
	return nil
}

func encode(out []byte, words ...string) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out
}

// processor returns the CPU time of the server, in seconds.
func (b *bench) processor() float64 {
	const ticks = 100 // a second, on Linux
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks
}

func print(loads []*load) {
	first := median(loads[0].rates)
	for _, l := range loads {
		rate := median(l.rates)
		cost := median(l.costs)
		fmt.Printf("%-32s %8d %12s %12.0f %7.2f %7s %9s %9.2f %7.2f\n",
			l.label, pipeline, "", rate, rate/first, l.target, "", cost, cost/median(loads[0].costs))
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
