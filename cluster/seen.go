package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A directory may come back as it was some time ago: a virtual machine is set back to a snapshot, a
// volume is restored, a copy is started. Its replicas have forgotten what they have acknowledged,
// and must not vote. The node cannot know that, but the others do: each remembers, in a file, the
// latest start and the latest entries that each node has shown.
//
// A replica speaks with those of another node when that one has reported that it knows of nothing
// later, and when all other nodes have reported what they know of this start. Those that do not
// for a while count as gone: a message that is late does not. Who has shown more than it has now is
// refused: it ends, and joins as a new node when its directory is removed.

// seenFile has what this node has seen of the others.
const seenFile = "seen.json"

const (
	// seenInterval is the time between writes of the file, if something has changed. A new start is
	// written at once, and only then accepted.
	seenInterval = 2 * time.Second
	// maxStarts is how many starts a node names.
	maxStarts = 64
	// maxOvertaken is more than how many reports of a node may be on their way, or be waiting in a
	// process that was suspended, when a later one is heard.
	maxOvertaken = 8
	// awaitTimeouts is how long a node waits at a start for what others have seen of it, in
	// Options.Timeout. A connection and the first call on it take up to five round trips.
	awaitTimeouts = 5
)

// seen is what this node has seen of the others.
type seen struct {
	Cluster string // its id: what was seen in another one does not count
	Nodes   map[string]*seenNode
}

// seenNode is the most that a node has shown.
type seenNode struct {
	Instance uint64 // of its directory, see Member
	Starts   uint64 // how often it was started
	Start    uint64 // the identity of that start
	Entries  map[int]seenEntry

	saved   uint64    // the start that is in the file
	history []uint64  // its starts, as it says
	order   uint64    // of its latest report, see Report.Order
	at      time.Time // when that came
	back    int       // how many of its reports in a row were made before that
	refused uint64    // the start that is refused
	why     string    // why; "": none is
}

// seenEntry is the latest entry that a replica has applied.
type seenEntry struct{ Instance, Entry uint64 }

// Refusal says that a start of a node is refused, and why.
type Refusal struct {
	Start uint64
	Why   string
}

// loadSeen reads the file.
func loadSeen(dir string) (s seen, err error) {
	path := filepath.Join(dir, seenFile)
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s cannot be used: %w", path, err)
	}
	for _, of := range s.Nodes {
		of.saved = of.Start
	}
	return s, nil
}

// judge notes what a report shows, and returns false if the report does not count: it is late, or
// the node is refused. n.mu is held.
func (n *Node) judge(r *Report, clusterID string) bool {
	if n.seen.Cluster != clusterID || n.seen.Nodes == nil {
		n.seen = seen{clusterID, make(map[string]*seenNode)}
	}
	of := n.seen.Nodes[r.Node]
	if of == nil || of.Instance != r.Member.Instance {
		of = &seenNode{Instance: r.Member.Instance, Entries: make(map[int]seenEntry)}
		n.seen.Nodes[r.Node] = of
	}
	back := of.Start == r.Start && r.Order <= of.order
	if recent := time.Since(of.at) < 2*n.options.Timeout; recent && (back ||
		of.Start != r.Start && slices.Contains(of.history, r.Start)) {
		return false // a later one has overtaken it
	}
	why := of.less(r)
	if back {
		if of.back++; of.back < maxOvertaken {
			return false
		}
		why = "its machine was set back while it was running"
	}
	before := of.why
	of.why, of.refused = why, r.Start
	if why != before {
		n.trustLocked()
	}
	if why != "" {
		return false
	}
	of.show(r)
	if of.saved != of.Start {
		select {
		case n.saveSeen <- struct{}{}:
		default:
		}
	}
	return true
}

// less returns what a node has shown that it does not have any more; "": it has all.
func (of *seenNode) less(r *Report) string {
	if of.Starts > r.Starts {
		return fmt.Sprintf("it has been started %d times, and was seen at its start %d", r.Starts, of.Starts)
	}
	if back := r.Starts - of.Starts; back < uint64(len(r.History)) && of.Start != 0 {
		if r.History[uint64(len(r.History))-1-back] != of.Start {
			return fmt.Sprintf("it does not know of its start %d, at which it was seen", of.Starts)
		}
	}
	for number, has := range r.Replicas {
		if e := of.Entries[number]; e.Instance == has.Instance && has.Last < e.Entry {
			return fmt.Sprintf("its log of group %d ends at entry %d, and it was seen at entry %d", number, has.Last,
				e.Entry)
		}
	}
	return ""
}

func (of *seenNode) show(r *Report) {
	of.Starts, of.Start, of.order, of.at = r.Starts, r.Start, r.Order, time.Now()
	of.history, of.back = r.History, 0
	for number, has := range r.Replicas {
		if e := of.Entries[number]; e.Instance != has.Instance || has.Applied > e.Entry {
			of.Entries[number] = seenEntry{has.Instance, has.Applied}
		}
	}
}

// verdicts returns which starts of the other nodes this one accepts, and which it refuses. n.mu is
// held.
func (n *Node) verdicts() (accepts map[string]uint64, refuses map[string]Refusal) {
	accepts, refuses = make(map[string]uint64), make(map[string]Refusal)
	for name, of := range n.seen.Nodes {
		switch {
		case of.why != "":
			refuses[name] = Refusal{of.refused, of.why}
		case of.saved == of.Start:
			accepts[name] = of.Start
		}
	}
	return accepts, refuses
}

// receiveVerdict notes what another node says about this one. What it says about an earlier start
// says nothing about this one. n.mu is held.
func (n *Node) receiveVerdict(r *Report) {
	refusal, refused := r.Refuses[n.self.Name]
	if !refused || refusal.Start != n.nonce {
		o := n.others[r.Node]
		o.accepted = o.accepted || r.Accepts[n.self.Name] == n.nonce
		n.others[r.Node] = o
		n.trustLocked()
		return
	}
	if n.setBack != "" {
		return
	}
	n.setBack = fmt.Sprintf("node %s refuses this one, %s: %s. The directory %s is older than what it has "+
		"acknowledged, as after a virtual machine was set back or a copy was started, so it must not vote. Remove "+
		"it, and the node joins as a new one", r.Node, n.self.Name, refusal.Why, n.options.Dir)
	n.log.Error(n.setBack)
	n.trustLocked()
	n.leave()
}

// await counts the time that this node has waited for what the others say about this start. Time in
// which it did not run is not counted: nobody could be heard.
func (n *Node) await(passed time.Duration) {
	n.mu.Lock()
	before := n.awaited
	n.awaited += min(passed, 2*n.options.roundInterval)
	silent := n.silentLocked()
	waits := !n.allReported && len(silent) > 0 && n.setBack == ""
	if waits {
		n.trustLocked()
	}
	ended := n.allReported
	n.mu.Unlock()
	switch names := strings.Join(silent, ", "); {
	case waits && ended:
		n.log.Warn("this node votes without having heard from all others: if only they have seen a later state of its "+
			"directory, nobody has found out", "silent", names)
	case waits && before < n.options.Timeout && n.awaited >= n.options.Timeout:
		n.log.Warn("this node does not vote before the others have reported what they have seen of it", "silent", names,
			"at_most", n.options.awaitOthers)
	}
}

// silentLocked returns the nodes that have not accepted this start. n.mu is held.
func (n *Node) silentLocked() (names []string) {
	if n.m != nil {
		for _, member := range n.m.Members {
			if member.Name != n.self.Name && !n.others[member.Name].accepted {
				names = append(names, member.Name)
			}
		}
	}
	return names
}

// exchangeTimeout returns how long a call to another node may take. Until that one has reported
// what it knows of this start, a late answer is better than none.
func (n *Node) exchangeTimeout(name string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.allReported || n.others[name].accepted {
		return n.options.Timeout
	}
	return 2 * n.options.Timeout
}

// trustLocked sets whose replicas the own ones speak with. n.mu is held.
func (n *Node) trustLocked() {
	if n.m == nil || n.setBack != "" {
		n.trusted.Store(nil)
		return
	}
	if !n.allReported && n.awaited < n.options.awaitOthers && len(n.silentLocked()) > 0 {
		return
	}
	n.allReported = true
	var trusted []string
	for name, o := range n.others {
		if of := n.seen.Nodes[name]; o.accepted && (of == nil || of.why == "") {
			trusted = append(trusted, name)
		}
	}
	slices.Sort(trusted)
	if before := n.trusted.Swap(&trusted); before == nil || !slices.Equal(*before, trusted) {
		n.wakeLocked()
	}
}

// trusts reports whether replicas on this node speak with those of another one.
func (n *Node) trusts(name string) bool {
	trusted := n.trusted.Load()
	return name == n.self.Name || trusted != nil && slices.Contains(*trusted, name)
}

// speakTogether reports whether the replicas of this node and of another one speak with each other,
// as far as is known.
func (n *Node) speakTogether(name string) bool {
	if name == n.self.Name {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trusts(name) && slices.Contains(n.others[name].report.Trusts, n.self.Name)
}

// keepSeen writes the file when it is due, until the context ends.
func (n *Node) keepSeen(ctx context.Context) {
	ticker := time.NewTicker(seenInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.saveSeen:
		case <-ticker.C:
		}
		if err := n.storeSeen(); err != nil {
			n.warnOften("what was seen of the other nodes cannot be stored: " + err.Error())
		}
	}
}

// storeSeen writes the file, if it has changed. One goroutine at a time calls it.
func (n *Node) storeSeen() error {
	n.mu.Lock()
	b, err := json.Marshal(&n.seen)
	starts := make(map[string]uint64)
	for name, of := range n.seen.Nodes {
		starts[name] = of.Start
	}
	n.mu.Unlock()
	if err != nil || string(b) == n.stored {
		return err
	}
	if err := replaceFile(n.options.Dir, seenFile, b); err != nil {
		return err
	}
	n.stored = string(b)
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := false
	for name, start := range starts {
		if of := n.seen.Nodes[name]; of != nil && of.saved != start {
			of.saved, changed = start, true
		}
	}
	if changed {
		n.wakeLocked() // those who wait to be accepted
	}
	return nil
}
