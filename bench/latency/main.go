// Latency makes calls at a fixed rate and prints their latencies. A client that waits for each
// reply before it sends the next call would hardly see a server that stalls.
//
//	latency -port 6379 -rate 20000 -seconds 10 RL.TOKEN key:RAND 100 100 60
//
// RAND in a word is replaced by a random number below -keys, in twelve digits, as redis-benchmark
// has it. The latency of a call counts from the time at which it is due, which corrects for
// coordinated omission.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	port := flag.Int("port", 6379, "TCP port on the loopback interface")
	rate := flag.Float64("rate", 10000, "calls per second, of all connections together")
	seconds := flag.Float64("seconds", 5, "duration")
	connections := flag.Int("connections", 50, "number of connections")
	keys := flag.Int("keys", 100000, "number of keys that RAND stands for")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("latency: no call is given")
	}
	var all []time.Duration
	var mu sync.Mutex
	var clients sync.WaitGroup
	start := time.Now().Add(100 * time.Millisecond)
	between := time.Duration(float64(*connections) / *rate * float64(time.Second))
	for i := range *connections {
		clients.Go(func() {
			first := start.Add(between * time.Duration(i) / time.Duration(*connections))
			took, err := call(*port, flag.Args(), *keys, first, between, int(*seconds/between.Seconds()))
			if err != nil {
				log.Fatalf("latency: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	clients.Wait()
	slices.Sort(all)
	at := func(share float64) string {
		return fmt.Sprintf("%.2f", all[int(share*float64(len(all)-1))].Seconds()*1000)
	}
	fmt.Printf("calls %d p50 %s p99 %s p99.9 %s max %s ms\n", len(all), at(0.5), at(0.99), at(0.999), at(1))
}

// call sends n calls, each when it is due, and returns their latencies from that time on.
func call(port int, words []string, keys int, first time.Time, between time.Duration, n int) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	took := make([]time.Duration, 0, n)
	failed := make(chan error, 1)
	go func() { // sends also while replies are late
		var b []byte
		for i := range n {
			time.Sleep(time.Until(first.Add(between * time.Duration(i))))
			b = fmt.Appendf(b[:0], "*%d\r\n", len(words))
			for _, w := range words {
				w = strings.ReplaceAll(w, "RAND", fmt.Sprintf("%012d", rand.IntN(keys)))
				b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
			}
			if _, err := conn.Write(b); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	in := bufio.NewReader(conn)
	for i := range n {
		if err := skipReply(in); err != nil {
			return nil, err
		}
		took = append(took, max(0, time.Since(first.Add(between*time.Duration(i)))))
	}
	return took, <-failed
}

// skipReply reads a reply, and returns an error reply as an error.
func skipReply(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	switch line[0] {
	case '-':
		return fmt.Errorf("error reply: %s", strings.TrimSpace(line))
	case '*':
		n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		for range n {
			if err == nil {
				err = skipReply(in)
			}
		}
		return err
	case '$':
		n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err == nil && n >= 0 {
			_, err = in.Discard(n + 2)
		}
		return err
	}
	return nil
}
