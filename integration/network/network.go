//go:build linux

package network

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Network moves the packets between its hosts.
type Network struct {
	mu    sync.Mutex
	ports []*os.File // TUN devices, by host
	links map[[2]int]Link
}

// Link is what happens to packets from one host to another.
type Link struct {
	Cut   bool
	Delay time.Duration
	Loss  float64 // part of the packets that is lost, at random
}

// New returns a network without hosts.
func New() *Network { return &Network{links: make(map[[2]int]Link)} }

// Address returns the address of a host.
func Address(host int) string { return fmt.Sprintf("10.77.0.%d", host+1) }

// Alone returns what a process needs to run in a network namespace of its own, in which it may do
// what root may do. The process ends with the thread that starts it.
func Alone() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return attributes
}

// Namespace runs functions on a thread that is in a network namespace of its own. Processes that
// are started there are in it too.
type Namespace chan func()

// NewNamespace makes a network namespace, which ends with the program.
func NewNamespace() (Namespace, error) {
	ns, made := make(Namespace), make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		made <- err
		for f := range ns {
			f()
		}
	}()
	return ns, <-made
}

// Do runs a function in the namespace.
func (ns Namespace) Do(f func() error) error {
	done := make(chan error)
	ns <- func() { done <- f() }
	return <-done
}

// Join adds the namespace that the calling thread is in as a host. Hosts are numbered from 0, in
// the order of Join.
func (n *Network) Join(host int) error {
	port, err := openTUN("tun0")
	if err != nil {
		return fmt.Errorf("a TUN device cannot be made: %w", err)
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", Address(host) + "/24", "dev", "tun0"},
		{"link", "set", "tun0", "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	n.mu.Lock()
	n.ports = append(n.ports, port)
	n.mu.Unlock()
	go n.forward(host, port)
	return nil
}

// openTUN makes a TUN device in the network namespace of the calling thread.
func openTUN(name string) (*os.File, error) {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	const tunSetIff, iffTun, iffNoPI = 0x400454ca, 1, 0x1000
	var request [40]byte
	copy(request[:15], name)
	binary.NativeEndian.PutUint16(request[16:], iffTun|iffNoPI)
	if _, _, no := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), tunSetIff,
		uintptr(unsafe.Pointer(&request))); no != 0 {
		syscall.Close(fd)
		return nil, no
	}
	return os.NewFile(uintptr(fd), name), nil
}

// forward moves the packets that a host sends.
func (n *Network) forward(from int, port *os.File) {
	buf := make([]byte, 64<<10)
	for {
		size, err := port.Read(buf)
		if err != nil {
			return
		}
		packet := buf[:size]
		if size < 20 || packet[0]>>4 != 4 { // IPv4 alone
			continue
		}
		to := int(packet[19]) - 1
		n.mu.Lock()
		l := n.links[[2]int{from, to}]
		known := to >= 0 && to < len(n.ports) && to != from
		n.mu.Unlock()
		switch {
		case !known || l.Cut || l.Loss > 0 && rand.Float64() < l.Loss:
		case l.Delay > 0:
			late := append([]byte(nil), packet...)
			time.AfterFunc(l.Delay, func() { n.deliver(to, late) })
		default:
			n.deliver(to, packet)
		}
	}
}

func (n *Network) deliver(to int, packet []byte) {
	n.mu.Lock()
	port := n.ports[to]
	n.mu.Unlock()
	port.Write(packet) // a device that is down loses it
}

// Set changes the link from one host to another.
func (n *Network) Set(from, to int, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]int{from, to}] = l
}

// Heal ends all faults.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.links)
}
