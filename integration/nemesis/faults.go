//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"rlserver/cluster/clustertest"
	"rlserver/integration/network"
)

// fleet is the cluster, and what can be done to it.
type fleet struct {
	nodes   []*node
	spare   *node // joins and is removed
	network *network.Network
	book    *book
	clients *clients
	counts  map[string]int           // of faults, and of notes in parentheses
	gaps    map[string]time.Duration // of faults: the longest time that a group has not answered
}

// fault is something that is done to the cluster, and ends with everything in order again, except
// that nodes may still be starting.
type fault struct {
	name string
	do   func(f *fleet)
}

// faults are drawn at random.
var faults = []fault{
	{"kill -9 of leaders", (*fleet).killLeaders},
	{"kill -9 of a majority", (*fleet).killMajority},
	{"SIGSTOP of a leader", (*fleet).pause},
	{"rolling restart", (*fleet).rollingRestart},
	{"leader alone", (*fleet).isolate},
	{"leader alone in one direction", (*fleet).isolateOneWay},
	{"flapping", (*fleet).flap},
	{"delay of 200 ms", (*fleet).delay},
	{"5 % loss", (*fleet).lose},
	{"clock steps", (*fleet).stepClocks},
	{"full disk", (*fleet).fillDisk},
	{"torn tail", (*fleet).tearTail},
	{"hand over", (*fleet).handOver},
	{"join and removal", (*fleet).joinAndRemove},
	{"hung disk", (*fleet).hangDisk},
	{"slow disk", (*fleet).slowDisk},
	{"slow disks of all", (*fleet).slowDisks},
	{"lost directory", (*fleet).loseDirectory},
	{"directory rolled back", (*fleet).rollBack},
	{"total restart with a wrong clock", (*fleet).wrongClock},
	{"delay on all links", (*fleet).delayAll},
	{"nodes replaced in a row", (*fleet).replaceAll},
	{"upgrade", (*fleet).upgrade},
	{"drain", (*fleet).drain},
	{"restore", (*fleet).restore},
	{"forced recovery", (*fleet).recover},
}

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// leader returns a node that leads groups, or any if none answers.
func (f *fleet) leader() *node {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, i := range rand.Perm(len(f.nodes)) {
		if f.nodes[i].leads(ctx) > 0 {
			return f.nodes[i]
		}
	}
	return f.nodes[rand.IntN(len(f.nodes))]
}

func (f *fleet) startAll() {
	for _, n := range f.nodes {
		if err := n.start(); err != nil {
			fmt.Println(n.name, "cannot be started:", err)
		}
	}
}

// healthy waits until each node sees a leader of each group, or there is a finding.
func (f *fleet) healthy(patience time.Duration) error {
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		f.startAll() // one may have ended as its disk was full
		if err = f.unhealthy(f.nodes); err == nil || f.finding() != "" {
			return nil
		}
	}
	return err
}

// finding returns what the check of the calls or the nodes themselves have found; "": nothing.
func (f *fleet) finding() string {
	if what := f.book.finding.Load(); what != nil {
		return *what
	}
	for _, n := range f.all() {
		if trouble := n.trouble(); trouble != "" {
			return trouble
		}
	}
	return ""
}

// unhealthy says what prevents nodes from serving all groups among themselves.
func (f *fleet) unhealthy(nodes []*node) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	led := 0
	for _, n := range nodes {
		info := n.info(ctx)
		led += n.leads(ctx)
		if info["cluster_groups"] != fmt.Sprint(groups) || info["cluster_groups_without_leader"] != "0" {
			return fmt.Errorf("%s: groups %s, without leader %s", n.name, info["cluster_groups"],
				info["cluster_groups_without_leader"])
		}
	}
	if led != groups {
		return fmt.Errorf("%d groups of %d are led", led, groups)
	}
	return nil
}

func (f *fleet) killLeaders() {
	for range 3 {
		n := f.leader()
		n.end(syscall.SIGKILL)
		time.Sleep(between(0, 1500*time.Millisecond))
		n.start()
		time.Sleep(500 * time.Millisecond)
	}
}

func (f *fleet) killMajority() {
	order := rand.Perm(len(f.nodes))[:len(f.nodes)/2+1]
	for _, i := range order {
		f.nodes[i].end(syscall.SIGKILL)
	}
	time.Sleep(between(0, time.Second))
	f.startAll()
	time.Sleep(time.Second)
}

// pause stops a leader until another one has served the keys. Calls wait for it when it wakes up
// and does not know yet, and no others: reads must be confirmed though nothing else is on its way.
func (f *fleet) pause() {
	n := f.leader()
	kind := []clustertest.Kind{clustertest.Hit, clustertest.Read}[rand.IntN(2)]
	b := f.clients.newBurst()
	waiting := b.dial(n.host, clientPort)
	f.clients.gate.Lock()
	n.signal(syscall.SIGSTOP)
	time.Sleep(between(1500*time.Millisecond, 3*time.Second))
	b.call(f.others(n)[0].host, clustertest.Hit)
	b.send(waiting, kind)
	time.Sleep(200 * time.Millisecond)
	n.signal(syscall.SIGCONT)
	b.wait()
	f.clients.gate.Unlock()
	b.release()
}

// others returns the other nodes.
func (f *fleet) others(n *node) []*node {
	return slices.DeleteFunc(slices.Clone(f.nodes), func(x *node) bool { return x == n })
}

func (f *fleet) rollingRestart() {
	for _, n := range f.nodes {
		n.end(syscall.SIGTERM)
		n.start()
		f.healthy(10 * time.Second)
	}
}

// between nodes only: clients reach all of them.
func (f *fleet) cut(n *node, out, in bool) {
	for _, other := range f.others(n) {
		f.network.Set(n.host, other.host, network.Link{Cut: out})
		f.network.Set(other.host, n.host, network.Link{Cut: in})
	}
}

// isolate cuts off a leader under calls that it decides and that are never committed. Then it leads
// again, as it calls the first election after the others were killed, and then another one does: no
// key may tell of those calls under the one and not under the other.
func (f *fleet) isolate() {
	n := f.leader()
	b := f.clients.newBurst()
	conns := b.dial(n.host, clientPort)
	f.cut(n, true, true)
	b.send(conns, clustertest.Hit)
	time.Sleep(between(1500*time.Millisecond, 4*time.Second))
	f.network.Heal()
	b.wait()
	f.healthy(10 * time.Second)
	for _, other := range f.others(n) {
		other.end(syscall.SIGKILL)
	}
	f.healthy(10 * time.Second)
	b.call(n.host, clustertest.Read)
	f.handOverFrom(n)
	f.healthy(10 * time.Second)
	b.call(n.host, clustertest.Read)
	b.release()
}

func (f *fleet) isolateOneWay() {
	out := rand.IntN(2) == 0
	f.cut(f.leader(), out, !out)
	time.Sleep(between(1500*time.Millisecond, 4*time.Second))
}

func (f *fleet) flap() {
	n := f.leader()
	for range 8 {
		f.cut(n, true, true)
		time.Sleep(between(50*time.Millisecond, 600*time.Millisecond))
		f.network.Heal()
		time.Sleep(between(50*time.Millisecond, 400*time.Millisecond))
	}
}

func (f *fleet) links(l network.Link) {
	for _, a := range f.nodes {
		for _, b := range f.nodes {
			f.network.Set(a.host, b.host, l)
		}
	}
}

// delay delays what one node sends: calls to it and from it take 200 ms longer.
func (f *fleet) delay() {
	n := f.leader()
	for _, other := range f.nodes {
		f.network.Set(n.host, other.host, network.Link{Delay: 200 * time.Millisecond})
	}
	time.Sleep(3 * time.Second)
}

func (f *fleet) lose() {
	f.links(network.Link{Loss: 0.05})
	time.Sleep(4 * time.Second)
}

// delayAll delays all that nodes send to each other, kills a leader, and waits until they serve.
func (f *fleet) delayAll() {
	delay := between(40*time.Millisecond, 50*time.Millisecond)
	f.links(network.Link{Delay: delay})
	time.Sleep(between(time.Second, 3*time.Second))
	n := f.leader()
	n.end(syscall.SIGKILL)
	n.start()
	time.Sleep(4 * time.Second)
	if f.healthy(20*time.Second) != nil {
		f.note(fmt.Sprint("no service within 24 s with round trips of ", (2 * delay).Round(10*time.Millisecond)))
	}
}

// stepClocks sets each node's clock off by up to ten hours, and has others lead.
func (f *fleet) stepClocks() {
	for _, n := range f.nodes {
		n.setClock(between(-10*time.Hour, 10*time.Hour))
	}
	n := f.leader()
	n.end(syscall.SIGKILL)
	time.Sleep(between(0, time.Second))
	n.start()
	time.Sleep(time.Second)
}

func (f *fleet) fillDisk() {
	n := f.leader()
	free, err := n.fill()
	if err != nil {
		fmt.Println("the disk of", n.name, "cannot be filled:", err)
		return
	}
	time.Sleep(2 * time.Second)
	other := f.leader()
	if other != n { // it needs to write when it hears another leader
		other.end(syscall.SIGKILL)
		time.Sleep(time.Second)
	}
	free()
	f.startAll()
}

func (f *fleet) tearTail() {
	n := f.leader()
	n.end(syscall.SIGKILL)
	torn, err := tear(n.data())
	if err != nil || torn == 0 {
		fmt.Println("the logs of", n.name, "could not all be torn:", torn, err)
	}
	n.start()
	time.Sleep(time.Second)
}

// joinAndRemove has another node join, kills a leader while replicas move, and removes the node.
func (f *fleet) joinAndRemove() {
	f.spare.empty()
	if err := f.spare.start(); err != nil {
		fmt.Println(f.spare.name, "cannot be started:", err)
		return
	}
	time.Sleep(between(0, 2*time.Second))
	n := f.leader()
	n.end(syscall.SIGKILL)
	n.start()
	f.settle(f.spare.name+" has not joined", len(f.nodes)+1)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		err := f.leader().client.Do(ctx, "CLUSTER", "FORGET", f.spare.name).Err()
		cancel()
		if err == nil {
			break
		}
	}
	f.settle(f.spare.name+" has not left", len(f.nodes))
	f.spare.end(syscall.SIGKILL)
}

// settle waits until the cluster has so many nodes and no replica moves.
func (f *fleet) settle(otherwise string, nodes int) bool {
	info := map[string]string{}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		info = f.leader().info(ctx)
		cancel()
		if info["cluster_nodes"] == fmt.Sprint(nodes) && info["cluster_moves_in_progress"] == "0" &&
			info["cluster_nodes_leaving"] == "0" || f.finding() != "" {
			return true
		}
	}
	f.note(fmt.Sprintf("%s in a minute: nodes %s, leaving %s, moves %s", otherwise, info["cluster_nodes"],
		info["cluster_nodes_leaving"], info["cluster_moves_in_progress"]))
	return false
}

// served waits until calls on all groups are answered that begin from now on. If they are not, that
// is a finding.
func (f *fleet) served(during string, patience time.Duration) {
	since := f.book.now()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if f.book.servedSince(since) || f.finding() != "" {
			return
		}
	}
	f.book.find(fmt.Sprintf("not all groups are served within %v while %s", patience, during), nil)
}

// all returns all nodes that there may be.
func (f *fleet) all() []*node { return append(slices.Clone(f.nodes), f.spare) }

func (f *fleet) handOver() {
	for range 3 {
		f.handOverFrom(f.leader())
		time.Sleep(500 * time.Millisecond)
	}
}

// handOverFrom has a node hand over all groups that it leads.
func (f *fleet) handOverFrom(n *node) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	n.client.Do(ctx, "CLUSTER", "FAILOVER")
}
