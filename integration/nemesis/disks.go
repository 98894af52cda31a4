//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rlserver/cluster/clustertest"
	"rlserver/integration/network"
)

// hangDisk hangs the disk of a leader. The other nodes have to serve all groups meanwhile.
func (f *fleet) hangDisk() {
	n := f.leader()
	n.disk.Hang()
	time.Sleep(between(3*time.Second, 6*time.Second))
	f.served(fmt.Sprint("the disk of ", n.name, " hangs"), time.Minute)
	n.disk.Release()
}

// slowDisk slows down the disk of a leader.
func (f *fleet) slowDisk() {
	n := f.leader()
	n.disk.Slow(between(20*time.Millisecond, 400*time.Millisecond))
	time.Sleep(between(3*time.Second, 6*time.Second))
	n.disk.Release()
}

// slowDisks slows down the disks of all nodes, by different times.
func (f *fleet) slowDisks() {
	for _, n := range f.nodes {
		n.disk.Slow(between(5*time.Millisecond, 60*time.Millisecond))
	}
	time.Sleep(4 * time.Second)
	for _, n := range f.nodes {
		n.disk.Release()
	}
}

// loseDirectory kills a node and removes its directory, or those of some groups.
func (f *fleet) loseDirectory() {
	if !f.whole() {
		return
	}
	n := f.leader()
	n.end(syscall.SIGKILL)
	folders, _ := filepath.Glob(filepath.Join(n.data(), "group-*"))
	if rand.IntN(2) == 0 || len(folders) == 0 {
		n.empty()
	} else {
		for _, i := range rand.Perm(len(folders))[:1+rand.IntN(len(folders))] {
			os.RemoveAll(folders[i])
		}
	}
	time.Sleep(between(0, time.Second))
	n.start()
	f.whole()
}

// rollBack puts back an old directory of a node, as the snapshot of a virtual machine, while
// another node is behind: these two are a majority that has forgotten what was granted meanwhile.
// The node that knows it is there, and a little late.
func (f *fleet) rollBack() {
	if !f.whole() {
		return
	}
	order := rand.Perm(len(f.nodes))
	old, behind, knows := f.nodes[order[0]], f.nodes[order[1]], f.nodes[order[2]]
	f.cut(behind, true, true)
	f.healthyBut(behind, 10*time.Second)
	old.end(syscall.SIGKILL)
	saved := old.dir + "-saved" // its own file system has no room for both
	err := os.CopyFS(saved, os.DirFS(old.data()))
	defer os.RemoveAll(saved)
	old.start()
	if err != nil {
		f.network.Heal()
		f.book.find(fmt.Sprintf("the directory of %s cannot be saved: %v", old.name, err), nil)
		return
	}
	f.healthyBut(behind, 10*time.Second)
	b := f.clients.newBurst()
	b.call(old.host, clustertest.Hit)
	time.Sleep(between(500*time.Millisecond, 2*time.Second))
	old.end(syscall.SIGKILL)
	old.empty()
	if err := os.CopyFS(old.data(), os.DirFS(saved)); err != nil {
		f.book.find(fmt.Sprintf("the directory of %s cannot be put back: %v", old.name, err), nil)
	}
	f.network.Heal()
	for _, other := range f.others(knows) {
		f.network.Set(knows.host, other.host, network.Link{Delay: 250 * time.Millisecond})
	}
	said := strings.Count(old.log.String(), setBack)
	old.start()
	refused := func() bool { return strings.Count(old.log.String(), setBack) > said }
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if refused() || f.unhealthy(f.nodes) == nil {
			break
		}
	}
	f.network.Heal()
	b.call(knows.host, clustertest.Hit)
	if refused() {
		old.end(syscall.SIGTERM)
		old.empty() // as its log says
		old.start()
	} else {
		f.note("a directory that was rolled back was not refused while the node that knows was late")
	}
	b.call(f.leader().host, clustertest.Hit)
	b.release()
	f.whole()
}

// setBack is what a node logs that is refused as its directory is older than what others have seen.
const setBack = "refuses this one"

// healthyBut waits until the other nodes serve.
func (f *fleet) healthyBut(n *node, patience time.Duration) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if f.unhealthy(f.others(n)) == nil {
			return
		}
	}
}

// wrongClock kills all nodes, and starts them when the clock of one is hours off. Until then the
// clocks are right: nothing else tells the cluster the time.
func (f *fleet) wrongClock() {
	f.rightClocks()
	for _, n := range f.nodes {
		n.end(syscall.SIGKILL)
	}
	wrong := f.nodes[rand.IntN(len(f.nodes))]
	off := between(90*time.Minute, 10*time.Hour)
	if rand.IntN(4) == 0 {
		off = -off
	}
	wrong.setClock(off)
	f.startAll()
	f.healthy(30 * time.Second)
	b := f.clients.newBurst()
	b.call(wrong.host, clustertest.Hit)
	b.release()
	time.Sleep(time.Second)
	f.rightClocks()
}

func (f *fleet) rightClocks() {
	for _, n := range f.nodes {
		n.setClock(0)
	}
}
