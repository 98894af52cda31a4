// Latency makes calls at a fixed rate and prints their latencies. A client that waits for each
// reply before it sends the next call would hardly see a server that stalls.
//
//	latency -port 6379 -rate 20000 -seconds 10 RL.TOKEN key:RAND 100 100 60
//
// RAND in a word is replaced by a random number below -keys, in twelve digits, as redis-benchmark
// has it. The latency of a call counts from the time at which it is due, which corrects for
// coordinated omission. One thread makes all calls and collects no garbage, so that it waits for
// the server and not for itself.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	port := flag.Int("port", 6379, "TCP port on the loopback interface")
	rate := flag.Float64("rate", 10000, "calls per second, of all connections together")
	seconds := flag.Float64("seconds", 5, "duration")
	connections := flag.Int("connections", 50, "number of connections, at most 1000")
	keys := flag.Int("keys", 100000, "number of keys that RAND stands for")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("latency: no call is given")
	}
	if *connections < 1 || *connections > 1000 {
		log.Fatal("latency: -connections is 1 to 1000")
	}
	b := &bench{keys: *keys, between: time.Duration(float64(time.Second) / *rate)}
	b.encode(flag.Args())
	for range *connections {
		if err := b.connect(*port); err != nil {
			log.Fatalf("latency: %v", err)
		}
	}
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	if err := b.run(int(*seconds * *rate)); err != nil {
		log.Fatalf("latency: %v", err)
	}
	all := b.took
	slices.Sort(all)
	at := func(share float64) string {
		return fmt.Sprintf("%.2f", all[int(share*float64(len(all)-1))].Seconds()*1000)
	}
	fmt.Printf("calls %d p50 %s p99 %s p99.9 %s max %s ms\n", len(all), at(0.5), at(0.99), at(0.999), at(1))
}

// bench is calls of which the i-th is due i times between after the start, on one connection after
// another.
type bench struct {
	call    []byte
	random  []int // where it has random digits
	digits  [16]byte
	keys    int
	between time.Duration

	start   time.Time
	conns   []int    // file descriptors
	unread  [][]byte // of each connection: an incomplete reply
	replies []int    // of each connection
	took    []time.Duration
}

// encode sets the call.
func (b *bench) encode(words []string) {
	b.call = fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		w = strings.ReplaceAll(w, "RAND", marker)
		b.call = fmt.Appendf(b.call, "$%d\r\n%s\r\n", len(w), w)
	}
	for i := range b.call {
		if bytes.HasPrefix(b.call[i:], []byte(marker)) {
			b.random = append(b.random, i)
		}
	}
}

// marker is where a call has twelve random digits.
const marker = "RANDRANDRAND"

func (b *bench) connect(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	b.conns = append(b.conns, fd)
	b.unread, b.replies = append(b.unread, nil), append(b.replies, 0)
	return errors.Join(
		unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetNonblock(fd, true))
}

// run makes n calls.
func (b *bench) run(n int) error {
	b.took = make([]time.Duration, 0, n)
	b.start = time.Now().Add(10 * time.Millisecond)
	for sent := 0; len(b.took) < n; {
		for ; sent < n && !b.due(sent).After(time.Now()); sent++ {
			if err := b.send(b.conns[sent%len(b.conns)]); err != nil {
				return err
			}
		}
		wait := time.Second
		if sent < n {
			wait = max(0, time.Until(b.due(sent)))
		}
		var ready unix.FdSet
		for _, fd := range b.conns {
			ready.Set(fd)
		}
		timeout := unix.NsecToTimeval(wait.Nanoseconds())
		if _, err := unix.Select(slices.Max(b.conns)+1, &ready, nil, nil, &timeout); err == unix.EINTR {
			continue
		} else if err != nil {
			return err
		}
		for i, fd := range b.conns {
			if ready.IsSet(fd) {
				if err := b.receive(i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// due returns when a call is due.
func (b *bench) due(i int) time.Time { return b.start.Add(b.between * time.Duration(i)) }

// send sends a call. The kernel has room for thousands that are not answered.
func (b *bench) send(fd int) error {
	for _, at := range b.random {
		copy(b.call[at:], fmt.Appendf(b.digits[:0], "%0*d", len(marker), rand.IntN(b.keys)))
	}
	_, err := unix.Write(fd, b.call)
	return err
}

// receive reads what a connection has got.
func (b *bench) receive(i int) error {
	var buf [16 << 10]byte
	n, err := unix.Read(b.conns[i], buf[:])
	switch {
	case err == unix.EAGAIN:
		return nil
	case err != nil:
		return err
	case n == 0:
		return errors.New("the server has closed a connection")
	}
	now := time.Now()
	in := append(b.unread[i], buf[:n]...)
	for {
		size, err := replySize(in)
		if err != nil {
			return err
		}
		if size == 0 {
			b.unread[i] = append(b.unread[i][:0], in...)
			return nil
		}
		in = in[size:]
		b.took = append(b.took, max(0, now.Sub(b.due(b.replies[i]*len(b.conns)+i))))
		b.replies[i]++
	}
}

// replySize returns the size of the first reply; 0: it is not complete. An error reply is an error.
func replySize(b []byte) (size int, err error) {
	line, _, found := bytes.Cut(b, []byte("\r\n"))
	if !found {
		return 0, nil
	}
	size = len(line) + 2
	switch line[0] {
	case '-':
		return 0, fmt.Errorf("error reply: %s", line[1:])
	case '$', '*':
		n, err := strconv.Atoi(string(line[1:]))
		if err != nil || n < 0 {
			return size, err
		}
		if line[0] == '$' {
			if size += n + 2; size > len(b) {
				return 0, nil
			}
			return size, nil
		}
		for range n {
			part, err := replySize(b[size:])
			if part == 0 {
				return 0, err
			}
			size += part
		}
	}
	return size, nil
}
