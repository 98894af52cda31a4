package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rlserver/cluster/slot"
)

// servers are a single server, or the nodes of a cluster.
type servers struct {
	binary  string
	dir     string
	flags   []string
	cluster []string // flags of nodes
	nodes   []*node
	leads   [slot.Count]int // number of the node that leads each slot
}

type node struct {
	port, bus string
	process   *exec.Cmd // nil if it does not run
}

// start starts a single server or a number of nodes, and waits until each node leads its part of
// the groups.
func (b *bench) start(ctx context.Context, size int, flags ...string) (*servers, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	s := &servers{binary: b.binary, dir: dir, flags: flags, cluster: b.flags}
	ports := freePorts(2 * size)
	for i := range size {
		s.nodes = append(s.nodes, &node{port: ports[2*i], bus: ports[2*i+1]})
	}
	for i := range s.nodes {
		if err = s.run(i); err != nil {
			break
		}
	}
	if err == nil {
		err = s.settle(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// freePorts returns different ports that nobody listens on.
func freePorts(n int) (ports []string) {
	for range n {
		port := "0"
		if listener, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			defer listener.Close() // all at the end, or the system might give a port twice
			_, port, _ = net.SplitHostPort(listener.Addr().String())
		}
		ports = append(ports, port)
	}
	return ports
}

// run starts the process of a node.
func (s *servers) run(i int) error {
	n := s.nodes[i]
	own := filepath.Join(s.dir, strconv.Itoa(i))
	args := append([]string{"--bind", "127.0.0.1", "--port", n.port, "--dir", own}, s.flags...)
	if len(s.nodes) > 1 {
		var join []string
		for _, other := range s.nodes {
			join = append(join, "127.0.0.1:"+other.bus)
		}
		args = append(args, "--cluster", "--node-id", fmt.Sprint("n", i), "--cluster-port", n.bus,
			"--join", strings.Join(join, ","), "--bootstrap-expect", strconv.Itoa(len(s.nodes)))
		args = append(args, s.cluster...)
	}
	output, err := os.OpenFile(own+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	n.process = exec.Command(s.binary, args...)
	n.process.Stderr = output
	return n.process.Start()
}

func (s *servers) stop() {
	for _, n := range s.nodes {
		if n.process != nil {
			n.process.Process.Signal(os.Interrupt)
		}
	}
	for _, n := range s.nodes {
		if n.process != nil {
			n.process.Wait()
		}
	}
	os.RemoveAll(s.dir)
}

// settle waits until all slots are served, leadership is evenly distributed, and no group has been
// handed over for a while.
func (s *servers) settle(ctx context.Context) error {
	const calm = 3 * time.Second
	last, since := s.leads, time.Now()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		even := true
		for i := range s.nodes {
			even = even && s.settled(i)
		}
		if !even || s.leads != last {
			last, since = s.leads, time.Now()
		}
		if even && (len(s.nodes) == 1 || time.Since(since) > calm) {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	logs, _ := filepath.Glob(s.dir + "/*.log")
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		fmt.Fprintf(os.Stderr, "%s:\n%s\n", filepath.Base(log), text)
	}
	return errors.New("the servers did not become ready")
}

// settled reports whether a node serves, and all slots have leaders, evenly distributed over the
// nodes.
func (s *servers) settled(i int) bool {
	c, err := dial(s.nodes[i].port)
	if err != nil {
		return false
	}
	defer c.Close()
	if len(s.nodes) == 1 {
		reply, err := c.call("PING")
		return err == nil && reply.text == "PONG"
	}
	info, err := c.call("CLUSTER", "INFO")
	if err != nil || !strings.Contains(info.text, "cluster_slots_ok:16384") {
		return false
	}
	slots, err := c.call("CLUSTER", "SLOTS")
	if err != nil {
		return false
	}
	count := make([]int, len(s.nodes))
	for _, r := range slots.items {
		port := strconv.Itoa(r.items[2].items[1].number)
		leader := slices.IndexFunc(s.nodes, func(n *node) bool { return n.port == port })
		if leader < 0 {
			return false
		}
		count[leader]++
		for at := r.items[0].number; at <= r.items[1].number; at++ {
			s.leads[at] = leader
		}
	}
	return slices.Max(count)-slices.Min(count) <= 1
}

// cpu returns the CPU time of all processes.
func (s *servers) cpu() (sum time.Duration) {
	const tick = 10 * time.Millisecond // of Linux
	for _, n := range s.nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.Process.Pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] { // utime and stime
			ticks, _ := strconv.Atoi(field)
			sum += time.Duration(ticks) * tick
		}
	}
	return sum
}

// resident returns the resident memory of all processes, in bytes.
func (s *servers) resident() (sum int64) {
	for _, n := range s.nodes {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.process.Process.Pid))
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
	}
	return sum
}

// kill kills a node, and returns the time until a call on a key that it led is admitted again. Then
// it restarts the node.
func (s *servers) kill(ctx context.Context, n int) (outage time.Duration, err error) {
	victim := n % len(s.nodes)
	key := ""
	for i := 0; key == "" || s.leads[slot.Of([]byte(key))] != victim; i++ {
		key = fmt.Sprint("kill:", n, ":", i)
	}
	process := s.nodes[victim].process
	if err := process.Process.Kill(); err != nil {
		return 0, err
	}
	begun := time.Now()
	process.Wait()
	for at := victim + 1; ; at++ {
		if time.Since(begun) > time.Minute {
			return 0, errors.New("no admit within a minute")
		}
		if i := at % len(s.nodes); i != victim && s.admits(i, key) {
			break
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return 0, err
		}
	}
	outage = time.Since(begun)
	if err := s.run(victim); err != nil {
		return 0, err
	}
	return outage, s.settle(ctx)
}

// admits reports whether a node admits a call on a key.
func (s *servers) admits(i int, key string) bool {
	c, err := dial(s.nodes[i].port)
	if err != nil {
		return false
	}
	defer c.Close()
	reply, err := c.call("RL.TOKEN", key, "1000000", "1000000", "60")
	return err == nil && len(reply.items) > 0 && reply.items[0].number == 1
}
