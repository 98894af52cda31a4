// Idle opens connections to a server, sends one PING on each, and prints the growth of the server's
// resident memory per idle connection, in bytes.
//
//	idle -port 6380 -pid 4711 -connections 10000 -tls certificates/ca.crt
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

func main() {
	port := flag.Int("port", 6379, "TCP port on the loopback interface")
	pid := flag.Int("pid", 0, "process ID of the server")
	connections := flag.Int("connections", 10000, "number of connections")
	ca := flag.String("tls", "", "certificate of the CA; empty: no TLS")
	flag.Parse()
	with, err := client(*ca)
	if err != nil {
		log.Fatalf("idle: %v", err)
	}
	before, err := resident(*pid)
	if err != nil {
		log.Fatalf("idle: %v", err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", *port)
	open := make([]net.Conn, *connections)
	var opening sync.WaitGroup
	slots := make(chan bool, 50)
	for i := range open {
		slots <- true
		opening.Go(func() {
			defer func() { <-slots }()
			if open[i], err = ping(address, with); err != nil {
				log.Fatalf("idle: %v", err)
			}
		})
	}
	opening.Wait()
	fmt.Printf("%d\n", (settled(*pid)-before)/int64(*connections))
	for _, conn := range open {
		conn.Close()
	}
}

// client returns the configuration of a TLS client, or nil without a CA.
func client(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", ca)
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}, nil
}

// ping opens a connection and sends a PING.
func ping(address string, with *tls.Config) (conn net.Conn, err error) {
	if conn, err = net.DialTimeout("tcp", address, time.Minute); err != nil {
		return nil, err
	}
	stream := conn
	if with != nil {
		stream = tls.Client(conn, with)
	}
	if _, err = stream.Write([]byte("PING\r\n")); err != nil {
		return nil, err
	}
	answer, err := bufio.NewReaderSize(stream, 16).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("unexpected reply to PING: %q", answer)
	}
	return conn, err
}

// settled returns the resident memory of a process after it has not shrunk for ten seconds.
func settled(pid int) (least int64) {
	for quiet := 0; quiet < 10; quiet++ {
		now, err := resident(pid)
		if err != nil {
			log.Fatalf("idle: %v", err)
		}
		if least == 0 || now < least {
			least, quiet = now, 0
		}
		time.Sleep(time.Second)
	}
	return least
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) (size int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if rest, found := strings.CutPrefix(string(line), "VmRSS:"); found {
			_, err = fmt.Sscan(rest, &size)
			return size << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no VmRSS", pid)
}
