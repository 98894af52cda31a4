//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"rlserver/integration/network"
)

// What operators do, as docs/CLUSTER.md has it.

// httpPort is the port of /readyz.
const httpPort = 9121

// ready asks /readyz of the node.
func (n *node) ready() bool {
	client := http.Client{Timeout: 2 * time.Second}
	reply, err := client.Get(fmt.Sprintf("http://%s:%d/readyz", network.Address(n.host), httpPort))
	if err != nil {
		return false
	}
	reply.Body.Close()
	return reply.StatusCode == http.StatusOK
}

// becomesReady waits for /readyz of a node. If it does not come, that is a finding.
func (f *fleet) becomesReady(n *node) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if n.ready() || f.finding() != "" {
			return true
		}
	}
	f.book.find(n.name+" is not ready a minute after it was started", nil)
	return false
}

// whole waits until every node is ready and all replicas are where they should be.
func (f *fleet) whole() bool {
	f.startAll()
	for _, n := range f.nodes {
		if !f.becomesReady(n) {
			return false
		}
	}
	return f.settle("the cluster is not whole", len(f.nodes))
}

// replaceAll replaces the directories of all nodes, one after the other. Only /readyz of the node
// says when the next one may follow.
func (f *fleet) replaceAll() {
	if !f.whole() {
		return
	}
	for _, i := range rand.Perm(len(f.nodes)) {
		n := f.nodes[i]
		n.end(syscall.SIGTERM)
		n.empty()
		n.start()
		f.becomesReady(n)
	}
}

// upgrade restarts all nodes, one after the other, as an upgrade does.
func (f *fleet) upgrade() {
	for _, n := range f.nodes {
		n.end(syscall.SIGTERM)
		n.start()
		f.becomesReady(n)
	}
}

// drain moves everything away from a leader before it is killed.
func (f *fleet) drain() {
	n := f.leader()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.client.WithTimeout(time.Minute).Do(ctx, "CLUSTER", "DRAIN").Err(); err != nil {
		f.note("drain: " + err.Error())
	} else {
		for ctx.Err() == nil && n.leads(ctx) > 0 { // it was elected again, and hands over again
			time.Sleep(20 * time.Millisecond)
		}
		if n.leads(context.Background()) > 0 {
			f.book.find(n.name+" leads groups a minute after CLUSTER DRAIN", nil)
		}
	}
	n.end(syscall.SIGKILL)
	time.Sleep(between(0, time.Second))
	n.start()
}

// quiet stops all calls, and waits until all nodes have the same. resume lets calls go on.
func (f *fleet) quiet() (resume func(), ok bool) {
	if !f.whole() {
		return nil, false
	}
	f.clients.gate.Lock()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if ok = f.caughtUp(); ok {
			return f.clients.gate.Unlock, true
		}
	}
	f.clients.gate.Unlock()
	f.note("the nodes do not catch up in 30 s without calls")
	return nil, false
}

// caughtUp reports whether every replica has applied all that any replica has in its log. A lag of
// 0 is not enough: it counts what a replica has heard of.
func (f *fleet) caughtUp() bool {
	at := map[string]string{} // by group: the index that all replicas must have applied
	for _, n := range f.nodes {
		reply, err := n.client.Info(context.Background(), "replication").Result()
		if err != nil {
			return false
		}
		for _, m := range positions.FindAllStringSubmatch(reply, -1) {
			group, logEnd, applied := m[1], m[2], m[3]
			if first, ok := at[group]; logEnd != applied || ok && first != applied {
				return false
			}
			at[group] = applied
		}
	}
	return len(at) > 0
}

// positions finds the positions of a group's replica in INFO.
var positions = regexp.MustCompile(`(group\d+):.*,log_end=(\d+),applied=(\d+),`)

// restore makes a backup, and a new cluster of it. No call is made in between: nothing is lost.
func (f *fleet) restore() {
	resume, ok := f.quiet()
	if !ok {
		return
	}
	defer resume()
	n := f.nodes[rand.IntN(len(f.nodes))]
	copied := filepath.Join(n.dir, "backup")
	defer os.RemoveAll(copied)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	slow := n.client.WithTimeout(time.Minute)
	if err := slow.Do(ctx, "SAVE").Err(); err != nil {
		f.note("SAVE: " + err.Error())
		return
	}
	if out, err := exec.Command(n.binary, "backup", n.data(), copied).CombinedOutput(); err != nil {
		f.book.find(fmt.Sprintf("rlserver backup: %v: %s", err, out), nil)
		return
	}
	f.endAll()
	if err := os.Rename(copied, n.data()); err != nil {
		f.note("restore: " + err.Error())
	}
	f.growFrom(n)
}

// recover loses all nodes but one for ever, which goes on alone. It has all, as no call is made.
func (f *fleet) recover() {
	resume, ok := f.quiet()
	if !ok {
		return
	}
	defer resume()
	n := f.nodes[rand.IntN(len(f.nodes))]
	kept := filepath.Join(n.dir, "kept")
	for _, x := range f.nodes {
		x.end(syscall.SIGKILL)
	}
	os.Rename(n.data(), kept)
	f.endAll()
	os.Rename(kept, n.data())
	f.growFrom(n, "--force-recover")
}

// endAll ends all nodes and removes their directories.
func (f *fleet) endAll() {
	for _, n := range f.nodes {
		n.end(syscall.SIGKILL)
		n.empty()
	}
	f.rightClocks()
}

// growFrom starts a node alone, and then the others, which join it.
func (f *fleet) growFrom(n *node, flags ...string) {
	if err := n.startWith(network.Address(n.host), flags...); err != nil {
		f.note(err.Error())
	}
	f.becomesReady(n)
	for _, other := range f.others(n) {
		other.startWith(network.Address(n.host))
	}
	f.whole()
}

// note counts something that the summary should have beside the faults.
func (f *fleet) note(what string) {
	fmt.Println("         ", what)
	f.counts["("+what+")"]++
}
