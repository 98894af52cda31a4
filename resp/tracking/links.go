package tracking

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Word is the first word of a call on a connection between nodes: the node that sends it wants to
// be told of all changes that the other one makes to its keys. The reply is OK. Sent again, it
// changes nothing. No command of clients has this name.
const Word = "\x00track"

// A link is checked each interval. One that is silent for longer than silence has failed.
const (
	interval = time.Second
	silence  = 3 * interval
)

// maxKey is the longest name of a key, in bytes.
const maxKey = 512 << 20

// Links are connections on which the other nodes of a cluster tell this one what they change, while
// clients track keys whose calls other nodes run. It is safe for concurrent use.
//
// What a node tells may be missed before a link is made, and when it fails. So all that these
// clients have read counts as changed whenever a link begins or ends, and at each interval while
// there is none to a node that is heard.
type Links struct {
	others func() []string
	dial   func(node string) (net.Conn, error)
	told   func(keys []string)
	wanted func() bool // there is a client that needs links

	mu      sync.Mutex
	running bool
	links   map[string]*link // by node
}

type link struct {
	conn net.Conn // nil: it is being dialed
	up   bool     // the other node tells this one of changes
}

// NewLinks returns links that are not made yet. others returns the names of the other nodes that
// are heard; dial opens a connection to the port for nodes of one; told is called with keys that
// have changed on another node, nil: all may have.
func (t *Table) NewLinks(others func() []string, dial func(string) (net.Conn, error), told func([]string)) *Links {
	return &Links{
		others: others, dial: dial, told: told, wanted: func() bool { return t.proxied.Load() > 0 },
		links: make(map[string]*link),
	}
}

// wake begins to make links if they are wanted.
func (l *Links) wake() {
	if l == nil || !l.wanted() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running {
		l.running = true
		go l.run()
	}
}

// count returns how many nodes tell this one of changes.
func (l *Links) count() (up int) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		if k.up {
			up++
		}
	}
	return up
}

// run makes links until they are not wanted any more.
func (l *Links) run() {
	for first := true; ; first = false {
		missing, ended := l.connect()
		if ended {
			return
		}
		if missing && !first {
			l.told(nil)
		}
		time.Sleep(interval)
	}
}

// connect begins to make the links that there are not. It reports whether there are such, and
// whether none are wanted any more.
func (l *Links) connect() (missing, ended bool) {
	others := l.others()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wanted() {
		l.running = false
		for _, k := range l.links {
			if k.conn != nil {
				k.conn.Close()
			}
		}
		clear(l.links)
		return false, true
	}
	for _, node := range others {
		k := l.links[node]
		if k == nil {
			k = new(link)
			l.links[node] = k
			go l.serve(node, k)
		}
		missing = missing || !k.up
	}
	return missing, false
}

// serve makes a link, and passes on what the other node tells, until it fails.
func (l *Links) serve(node string, k *link) {
	defer l.ended(node, k)
	conn, err := l.dial(node)
	if err != nil {
		return
	}
	defer conn.Close()
	l.mu.Lock()
	k.conn = conn
	wanted := l.links[node] == k
	l.mu.Unlock()
	if !wanted {
		return
	}
	done := make(chan struct{})
	defer close(done)
	go ask(conn, done)
	in := bufio.NewReader(quiet{conn})
	for {
		keys, told, err := readTold(in)
		switch {
		case err != nil:
			return
		case told:
			l.told(keys)
		default:
			l.begun(k)
		}
	}
}

// begun notes that the other node has confirmed a link.
func (l *Links) begun(k *link) {
	l.mu.Lock()
	first := !k.up
	k.up = true
	l.mu.Unlock()
	if first {
		l.told(nil)
	}
}

// ended removes a link, which is made again at the next interval.
func (l *Links) ended(node string, k *link) {
	l.mu.Lock()
	if l.links[node] == k {
		delete(l.links, node)
	}
	up := k.up
	l.mu.Unlock()
	if up {
		l.told(nil)
	}
}

// ask sends Word, and again each interval.
func ask(conn net.Conn, done <-chan struct{}) {
	request := []byte("*1\r\n$" + strconv.Itoa(len(Word)) + "\r\n" + Word + "\r\n")
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		conn.SetWriteDeadline(time.Now().Add(silence))
		if _, err := conn.Write(request); err != nil {
			conn.Close()
			return
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// quiet is a connection whose reads fail when nothing arrives for too long.
type quiet struct{ net.Conn }

func (q quiet) Read(b []byte) (int, error) {
	if err := q.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return q.Conn.Read(b)
}

var errMalformed = errors.New("what another node tells of changes is malformed")

// readTold reads what a node sends: either a reply to Word, or what it tells.
func readTold(in *bufio.Reader) (keys []string, told bool, err error) {
	kind, n, err := readHeader(in)
	switch {
	case err != nil:
		return nil, false, err
	case kind == '+':
		return nil, false, nil
	case kind != '>' || n != 2:
		return nil, false, errMalformed
	}
	if _, err := readBulk(in); err != nil {
		return nil, false, err
	}
	kind, n, err = readHeader(in)
	switch {
	case err != nil || kind == '_':
		return nil, true, err
	case kind != '*':
		return nil, false, errMalformed
	}
	keys = []string{}
	for range n {
		key, err := readBulk(in)
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, key)
	}
	return keys, true, nil
}

// readHeader reads a line: its kind, and its number if it has one.
func readHeader(in *bufio.Reader) (kind byte, n int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil || len(line) < 3 {
		return 0, 0, errors.Join(err, errMalformed)
	}
	if kind = line[0]; kind == '+' || kind == '_' {
		return kind, 0, nil
	}
	n, err = strconv.Atoi(string(line[1 : len(line)-2]))
	if n < 0 {
		err = errMalformed
	}
	return kind, n, err
}

func readBulk(in *bufio.Reader) (string, error) {
	kind, n, err := readHeader(in)
	if err != nil || kind != '$' || n > maxKey {
		return "", errors.Join(err, errMalformed)
	}
	text := make([]byte, n+2)
	_, err = io.ReadFull(in, text)
	return string(text[:n]), err
}
