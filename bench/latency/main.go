// Latency sends a server calls at a fixed rate and prints how long answers take: a client that
// waits for each answer before it sends the next call would not notice a server that stands still.
//
//	latency -port 6379 -rate 20000 -seconds 10 RL.TOKEN key:RAND 100 100 60
//
// RAND in a word becomes a random number below -keys. Each call has the moment at which it should
// be sent; its time counts from there, so that calls that queue behind a slow one are counted as
// what they are (the correction for coordinated omission).
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
	rate := flag.Float64("rate", 10000, "calls per second, by all connections together")
	seconds := flag.Float64("seconds", 5, "how long")
	connections := flag.Int("connections", 50, "how many")
	keys := flag.Int("keys", 100000, "how many keys RAND chooses among")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("latency: say which call to send")
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

// call sends n calls, each at its time, and returns how long after that each answer came.
func call(port int, words []string, keys int, first time.Time, between time.Duration, n int) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	took := make([]time.Duration, 0, n)
	failed := make(chan error, 1)
	go func() { // sends even while answers are late
		var b []byte
		for i := range n {
			time.Sleep(time.Until(first.Add(between * time.Duration(i))))
			b = fmt.Appendf(b[:0], "*%d\r\n", len(words))
			for _, w := range words {
				w = strings.ReplaceAll(w, "RAND", strconv.Itoa(rand.IntN(keys)))
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

// skipReply reads a reply; an error is not what is to be measured.
func skipReply(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	switch line[0] {
	case '-':
		return fmt.Errorf("the server answers %s", strings.TrimSpace(line))
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
