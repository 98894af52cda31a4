//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"rlserver/cluster/clustertest"
	"rlserver/integration/disk"
	"rlserver/integration/network"
)

// node is a process of the cluster.
type node struct {
	host   int
	name   string
	dir    string // a file system of its own
	ns     network.Namespace
	binary string
	join   string
	expect int

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil: it is not running
	ended chan struct{} // closed when it has ended
	log   clustertest.Text
	disk  disk.Disk

	client *redis.Client // for INFO
}

// groups is how many groups the cluster has.
const groups = 4

// diskSize is the size of a node's file system: the logs of its groups allocate 8 MB each, and a
// backup is made beside them.
const diskSize = 256 << 20

func newNode(host int, dir, binary string, expect int, n *network.Network) (*node, error) {
	ns, err := network.NewNamespace()
	if err != nil {
		return nil, fmt.Errorf("a network namespace cannot be made: %w", err)
	}
	if err := ns.Do(func() error { return n.Join(host) }); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", diskSize)); err != nil {
		return nil, fmt.Errorf("a file system in memory cannot be mounted: %w", err)
	}
	var join []string
	for i := range expect {
		join = append(join, network.Address(i+1))
	}
	return &node{
		host: host, name: fmt.Sprint("n", host), dir: dir, ns: ns, binary: binary, expect: expect,
		join: strings.Join(join, ","),
		client: redis.NewClient(&redis.Options{
			Addr: fmt.Sprintf("%s:%d", network.Address(host), clientPort), MaxRetries: -1, DialTimeout: time.Second,
			ReadTimeout: time.Second, DialerRetries: 1,
		}),
	}, nil
}

func (n *node) clockFile() string { return n.dir + ".clock" }

// setClock sets by how much the system clock of the node is off.
func (n *node) setClock(off time.Duration) error {
	return os.WriteFile(n.clockFile(), []byte(strconv.FormatInt(off.Milliseconds(), 10)), 0o640)
}

// data is the directory of the server.
func (n *node) data() string { return filepath.Join(n.dir, "data") }

// empty removes the directory of the server, which must not be running.
func (n *node) empty() {
	if err := os.RemoveAll(n.data()); err != nil {
		fmt.Println("the directory of", n.name, "cannot be removed:", err)
	}
}

// start starts the process if it is not running.
func (n *node) start() error {
	return n.startWith(n.join, "--bootstrap-expect", fmt.Sprint(n.expect))
}

// startWith is start with the nodes to join, and further flags.
func (n *node) startWith(join string, flags ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		select {
		case <-n.ended: // it has ended by itself
		default:
			return nil
		}
	}
	cmd := exec.Command(n.binary, append(flags, "--cluster",
		"--bind", network.Address(n.host), "--port", fmt.Sprint(clientPort), "--proxy-port", fmt.Sprint(proxyPort),
		"--protected-mode", "no", "--node-id", n.name,
		"--dir", n.data(), "--join", join, "--http-port", fmt.Sprint(httpPort),
		"--http-bind", network.Address(n.host), "--cluster-groups", fmt.Sprint(groups),
		"--appendfsync", "always")...)
	cmd, started := n.disk.Command(cmd)
	cmd.Env = append(os.Environ(), "NEMESIS_CLOCK="+n.clockFile(), "GOMAXPROCS=2")
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, &n.log, &n.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := started(n.ns.Do(cmd.Start)); err != nil {
		return err
	}
	ended := make(chan struct{})
	n.cmd, n.ended = cmd, ended
	go func() {
		cmd.Wait()
		close(ended)
	}()
	return nil
}

// signal sends a signal to the process, if it runs.
func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		n.cmd.Process.Signal(s)
	}
}

// end sends a signal that ends the process, and waits.
func (n *node) end(s syscall.Signal) {
	n.disk.Release()
	n.signal(s)
	n.mu.Lock()
	ended := n.ended
	n.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		fmt.Printf("%s does not end: killed\n", n.name)
		n.signal(syscall.SIGKILL)
		<-ended
	}
}

// leads returns how many groups the node leads, 0 if it does not answer.
func (n *node) leads(ctx context.Context) int {
	count, _ := strconv.Atoi(n.info(ctx)["cluster_groups_led"])
	return count
}

// info returns the fields of INFO cluster.
func (n *node) info(ctx context.Context) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(n.client.Info(ctx, "cluster").Val()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// trouble returns what the node has logged that no fault explains; "": nothing.
func (n *node) trouble() string {
	log := n.log.String()
	for _, bad := range []string{"cannot be used any more", "DATA RACE", "panic: ", "fatal error: "} {
		if at := strings.Index(log, bad); at >= 0 {
			to := min(len(log), at+2000)
			if end := strings.IndexByte(log[at:], '\n'); end >= 0 && bad == "cannot be used any more" {
				to = at + end
			}
			return n.name + " logs: " + log[at:to]
		}
	}
	return ""
}

// fill fills the file system of the node. The file that does so is removed by calling free.
func (n *node) fill() (free func(), err error) {
	path := filepath.Join(n.dir, "full")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() { os.Remove(path) }, nil
}
