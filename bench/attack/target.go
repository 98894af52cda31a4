package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is a server under attack.
type target struct {
	addr     string
	dir      string
	http     string // the HTTP port, if the flags have one: HTTP stands for a free port
	password string
	process  *exec.Cmd
	ended    chan struct{}
}

const (
	startTime = 30 * time.Second // timeout of a start
	stopTime  = 30 * time.Second // timeout of an orderly stop
)

// start runs a binary on a free port, with an empty data directory and extra flags.
func start(ctx context.Context, binary string, flags []string) (*target, error) {
	dir, err := os.MkdirTemp("", "attack")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	t := &target{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir, ended: make(chan struct{})}
	logFile, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", filepath.Join(dir, "data")}
	for i, f := range flags {
		if f == "HTTP" {
			free, err := freePort()
			if err != nil {
				return nil, err
			}
			t.http = strconv.Itoa(free)
			f = t.http
		}
		args = append(args, strings.ReplaceAll(f, "DIR", dir))
		if f == "--requirepass" {
			t.password = flags[i+1]
		}
		if f == "--policies" {
			if err := os.WriteFile(filepath.Join(dir, "policies.yaml"), []byte(fewPolicies), 0o600); err != nil {
				return nil, err
			}
		}
	}
	t.process = exec.CommandContext(ctx, binary, args...)
	t.process.Dir, t.process.Stdout, t.process.Stderr = dir, logFile, logFile
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		t.process.Wait()
		close(t.ended)
	}()
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c, err := t.login(); err == nil {
			answer, err := c.call("PING")
			c.Close()
			if err == nil && answer == "+PONG" {
				return t, nil
			}
		}
		select {
		case <-t.ended:
			text, _ := os.ReadFile(logFile.Name())
			return nil, fmt.Errorf("the server ended while it started: %s", lastLine(text))
		default:
		}
	}
	t.kill()
	return nil, fmt.Errorf("no answer to PING %v after the start", startTime)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// stop sends SIGTERM and returns the time until the server ends; -1 if it had to be killed.
func (t *target) stop() time.Duration {
	begun := time.Now()
	t.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-t.ended:
		return time.Since(begun)
	case <-time.After(stopTime):
		t.kill()
		return -1
	}
}

func (t *target) kill() {
	t.process.Process.Kill()
	<-t.ended
}

func (t *target) remove() { os.RemoveAll(t.dir) }

// status returns a line of /proc/PID/status, in bytes; 0 if it is missing.
func (t *target) status(line string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.process.Process.Pid))
	match := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(match[1]), 10, 64)
	return n << 10
}

// client is a connection that sends commands and reads replies.
type client struct {
	net.Conn
	in *bufio.Reader
}

// connect opens a connection without logging in.
func (t *target) connect() (*client, error) {
	conn, err := net.DialTimeout("tcp", t.addr, 2*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

// login opens a connection and logs in if there is a password.
func (t *target) login() (*client, error) {
	c, err := t.connect()
	if err != nil || t.password == "" {
		return c, err
	}
	answer, err := c.call("AUTH", t.password)
	if err == nil && answer != "+OK" {
		err = errors.New(answer)
	}
	return c, err
}

// call sends a command and returns the first line of its reply, or the bytes of a bulk string.
func (c *client) call(words ...string) (string, error) {
	c.SetDeadline(time.Now().Add(stopTime))
	if _, err := c.Write(command(words...)); err != nil {
		return "", err
	}
	return c.reply()
}

// reply reads a whole reply and returns its first line, or the bytes of a bulk string.
func (c *client) reply() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '*':
		for range n {
			if _, err := c.reply(); err != nil {
				return "", err
			}
		}
	case '$':
		if n >= 0 {
			b := make([]byte, n+2)
			if _, err := readFull(c.in, b); err != nil {
				return "", err
			}
			return string(b[:n]), nil
		}
	}
	return line, nil
}

func readFull(in *bufio.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = in.Read(b[n:])
		n += more
	}
	return n, err
}

// command returns a call in wire format.
func command(words ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.Bytes()
}

// info returns a number in INFO; -1 if it is missing.
func (c *client) info(field string) int64 {
	text, err := c.call("INFO")
	match := regexp.MustCompile(`(?m)^` + field + `:(\d+)\r?$`).FindStringSubmatch(text)
	if err != nil || match == nil {
		return -1
	}
	n, _ := strconv.ParseInt(match[1], 10, 64)
	return n
}

// pipe makes n calls in pipelines of a thousand. It returns the first error reply as an error.
func (c *client) pipe(n int, words func(i int) []string) error {
	c.SetDeadline(time.Now().Add(10 * startTime))
	for i := 0; i < n; {
		var b bytes.Buffer
		sent := 0
		for ; sent < 1000 && i < n; sent, i = sent+1, i+1 {
			b.Write(command(words(i)...))
		}
		if _, err := c.Write(b.Bytes()); err != nil {
			return err
		}
		for range sent {
			if answer, err := c.reply(); err != nil {
				return err
			} else if strings.HasPrefix(answer, "-") {
				return errors.New(answer)
			}
		}
	}
	return nil
}
