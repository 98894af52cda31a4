// Package mux shares one TCP port of a node among its groups and the control calls between nodes.
//
// A connection begins with a header that says what it is for; from then on it belongs to that
// channel:
//
//	+----------+---------+-----------+-------------------------+----------+
//	| RLSRVCLU | version | channel   | 16 bytes of the cluster | instance |
//	| 8 bytes  | 1 byte  | 2 bytes   | (zeros: none yet)       | 8 bytes  |
//	+----------+---------+-----------+-------------------------+----------+
//
// A random nonce of 16 bytes follows the header. Then both sides prove that they know the secret of
// the nodes, see prove.go, and the side that accepts answers with one byte: 0, or why it refuses. A
// connection of another cluster is refused, and the side that has dialled gets an error that says
// so. So is one of another version: the answer then is the version of the side that accepts, and
// nothing else. So is one for another instance of the channel than the node has: a replica that has
// lost its data is not taken for the one that it was. With a TLS configuration both sides prove
// themselves with certificates before the header is sent.
package mux

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rlserver/internal/clock"
	"rlserver/internal/listen"
)

// Channel is what a connection is for: a group, Control or Forward.
type Channel uint16

// The channels that are no groups.
const (
	Control Channel = 0xffff // calls between nodes
	Forward Channel = 0xfffe // calls of clients that nodes pass on
)

// ClusterID names a cluster. The zero value is that of a node that belongs to none.
type ClusterID [16]byte

const (
	magic      = "RLSRVCLU"
	version    = 6
	headerSize = len(magic) + 1 + 2 + len(ClusterID{}) + 8

	// handshakeTime is how long a side waits for the other's part of the handshake.
	handshakeTime = 5 * time.Second
	// longestHeader is more, in bytes, than any version sends before it is answered.
	longestHeader = 4 << 10
)

// What the accepting side answers.
const (
	accepted       = 0
	refusedCluster = 2
	refusedChannel = 3 // the node has no such replica, or not now
	refusedSecret  = 4
)

// The reasons for which a node refuses a connection.
var (
	ErrOtherVersion = errors.New("the nodes speak different versions of the cluster's protocol")
	ErrOtherCluster = errors.New("the node belongs to another cluster")
	ErrNoChannel    = errors.New("the node does not have this replica of the group now")
	ErrOtherSecret  = errors.New("the node has another --cluster-secret-file")
)

// Options are what a port is made of.
type Options struct {
	Listener net.Listener
	More     []net.Listener // for further addresses of this machine
	// nil: connections are neither encrypted nor proven; must ask for certificates
	TLS *tls.Config
	// Secret is what both sides of a connection prove to know; empty: none
	Secret []byte
	// Log gets a line when a connection is refused for its secret or certificate; nil: none
	Log *slog.Logger
	// Resolve returns the host:port at which a node can be dialled now.
	Resolve func(node string) (string, error)
}

// Port is the listener of a node and what its connections are handed to.
type Port struct {
	options Options
	cluster atomic.Pointer[ClusterID]
	greets  handshakes
	started time.Time
	// lines of the log about connections that were refused here, and at other nodes
	refusals, refused clock.Throttle

	mu       sync.Mutex
	channels map[Channel]*Layer
	open     map[net.Conn]struct{} // accepted connections, closed with the port
	closed   bool
}

// New returns a port that accepts from its listeners at once.
func New(o Options) *Port {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Port{
		options: o, channels: make(map[Channel]*Layer), open: make(map[net.Conn]struct{}), started: time.Now(),
	}
	p.cluster.Store(new(ClusterID))
	go p.run(o.Listener)
	for _, listener := range o.More {
		go p.run(listener)
	}
	return p
}

// SetCluster sets the cluster that the node belongs to from now on.
func (p *Port) SetCluster(id ClusterID) { p.cluster.Store(&id) }

// Addr is where the port listens.
func (p *Port) Addr() net.Addr { return p.options.Listener.Addr() }

// Close closes the listeners and all connections that it has accepted.
func (p *Port) Close() error {
	err := p.options.Listener.Close()
	for _, listener := range p.options.More {
		err = errors.Join(err, listener.Close())
	}
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	return err
}

func (p *Port) run(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // too many open files, for example
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok { // a machine that has lost its power closes nothing
			tcp.SetKeepAliveConfig(keepAlive)
		}
		end := p.greets.begin(c)
		go func() {
			defer end()
			p.greet(c)
		}()
	}
}

// greet does the handshake of a connection and hands it to its channel.
func (p *Port) greet(c net.Conn) {
	c.SetDeadline(time.Now().Add(handshakeTime))
	if p.options.TLS != nil {
		secured := tls.Server(c, p.options.TLS)
		if err := secured.Handshake(); err != nil {
			p.sayRefused("certificate", c.RemoteAddr(), err)
			c.Close()
			return
		}
		c = secured
	}
	var header [headerSize]byte
	begin := header[:len(magic)+1]
	if _, err := io.ReadFull(c, begin); err != nil || string(begin[:len(magic)]) != magic {
		c.Close()
		return
	}
	if header[len(magic)] != version {
		refuseVersion(c)
		return
	}
	if _, err := io.ReadFull(c, header[len(begin):]); err != nil {
		c.Close()
		return
	}
	var layer *Layer
	var answer byte
	known, own, err := p.proveAccepting(c, header[:])
	if err != nil {
		c.Close()
		return
	}
	reply := []byte{refusedSecret}
	if known {
		layer, answer = p.place(header[len(magic)+1:])
		reply = append([]byte{answer}, own(answer)...)
	} else {
		p.sayRefused("secret", c.RemoteAddr(), errUnknownSecret)
	}
	if _, err := c.Write(reply); err != nil || layer == nil {
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	if c = p.keep(c); layer.Hand(context.Background(), c) != nil {
		c.Close()
	}
}

// errUnknownSecret is why a connection is refused.
var errUnknownSecret = errors.New("it does not know the secret of --cluster-secret-file")

// warnInterval is the time between lines about connections that were refused: anybody can cause
// them.
const warnInterval = 10 * time.Second

// sayRefused logs that a connection from an address was refused.
func (p *Port) sayRefused(what string, from net.Addr, err error) {
	var late net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &late) && late.Timeout() {
		return // it has proved nothing, and tried nothing
	}
	if more, ok := p.refusals.Allow(time.Since(p.started).Milliseconds(), warnInterval); ok {
		p.options.Log.Warn("a connection to the port for other nodes was refused for its "+what, "from", from.String(),
			"error", err, "others", more)
	}
}

// sayRefusedBy logs that the secrets or certificates of this node and another one do not match.
func (p *Port) sayRefusedBy(address string, err error) {
	if more, ok := p.refused.Allow(time.Since(p.started).Milliseconds(), warnInterval); ok {
		p.options.Log.Warn("a node cannot be reached: secrets or certificates do not match", "node", address,
			"error", err, "others", more)
	}
}

// refuseVersion answers a node of another version with the own one. What that node has sent after
// its version is read, or its system might drop the answer.
func refuseVersion(c net.Conn) {
	defer c.Close()
	if _, err := c.Write([]byte{version}); err == nil {
		io.CopyN(io.Discard, c, longestHeader)
	}
}

// place finds the channel of a connection.
func (p *Port) place(header []byte) (*Layer, byte) {
	channel := Channel(binary.BigEndian.Uint16(header))
	own, theirs := *p.cluster.Load(), ClusterID(header[2:18])
	// a node that belongs to no cluster yet may ask, and be asked, but replicates nothing
	if theirs != own && (channel != Control || theirs != ClusterID{} && own != ClusterID{}) {
		return nil, refusedCluster
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.channels[channel]; l != nil && l.instance == binary.BigEndian.Uint64(header[18:]) {
		return l, accepted
	}
	return nil, refusedChannel
}

// keepAlive is that of connections that other nodes have opened.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// kept is a connection that the port closes when it is closed.
type kept struct {
	net.Conn
	port *Port
}

func (p *Port) keep(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return c
	}
	k := &kept{c, p}
	p.open[k] = struct{}{}
	return k
}

// SyscallConn implements syscall.Conn, so that what serves the connection never blocks.
func (k *kept) SyscallConn() (syscall.RawConn, error) {
	if socket, ok := k.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return nil, errors.ErrUnsupported // TLS
}

func (k *kept) Close() error {
	k.port.mu.Lock()
	delete(k.port.open, k)
	k.port.mu.Unlock()
	return k.Conn.Close()
}

// Dial opens a connection to a channel of another node. The address is resolved anew each time.
// timeout is for each answer of the other node: three, and one or two more with TLS. A connection
// takes so many round trips, and must not need a longer timeout than a message on it.
func (p *Port) Dial(node string, channel Channel, timeout time.Duration) (net.Conn, error) {
	return p.dial(node, channel, 0, timeout)
}

func (p *Port) dial(node string, channel Channel, instance uint64, timeout time.Duration) (net.Conn, error) {
	address, err := p.options.Resolve(node)
	if err != nil {
		return nil, err
	}
	return p.DialAddress(address, channel, instance, timeout)
}

// DialAddress is Layer.Dial for a node whose name is not known, by host:port.
func (p *Port) DialAddress(
	address string, channel Channel, instance uint64, timeout time.Duration,
) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	if p.options.TLS != nil {
		c, err = p.secure(c, address, timeout)
		if err != nil {
			return nil, err
		}
	}
	if err = p.introduce(c, channel, instance, timeout); err != nil {
		_, alert := errors.AsType[tls.AlertError](err)
		if alert || errors.Is(err, ErrOtherSecret) {
			p.sayRefusedBy(address, err)
		}
		c.Close()
		return nil, fmt.Errorf("node %s: %w", address, err)
	}
	c.SetDeadline(time.Time{})
	return c, nil
}

func (p *Port) secure(c net.Conn, address string, timeout time.Duration) (net.Conn, error) {
	c.SetDeadline(time.Now().Add(timeout))
	config := p.options.TLS.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	if config.GetConfigForClient != nil { // the CAs of the moment: the files may have changed
		if now, err := config.GetConfigForClient(nil); err == nil && now.ClientCAs != nil {
			config.RootCAs = now.ClientCAs
		}
	}
	secured := tls.Client(c, config)
	if err := secured.Handshake(); err != nil {
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			p.sayRefusedBy(address, err)
		}
		c.Close()
		return nil, fmt.Errorf("TLS with node %s: %w", address, err)
	}
	return secured, nil
}

func (p *Port) introduce(c net.Conn, channel Channel, instance uint64, timeout time.Duration) error {
	header := append([]byte(magic), version)
	header = binary.BigEndian.AppendUint16(header, uint16(channel))
	id := *p.cluster.Load()
	header = binary.BigEndian.AppendUint64(append(header, id[:]...), instance)
	answer, err := p.proveDialling(c, header, timeout)
	if err != nil {
		return err
	}
	switch answer {
	case accepted:
		return nil
	case refusedCluster:
		return ErrOtherCluster
	case refusedChannel:
		return ErrNoChannel
	}
	return fmt.Errorf("the node answers %d, which this version does not know", answer)
}

// Layer is the connections of one channel. It is a net.Listener of those that arrive.
type Layer struct {
	*listen.Handed
	port     *Port
	channel  Channel
	instance uint64
}

// Layer opens a channel: from now on its connections are accepted. A channel is open once at a
// time.
func (p *Port) Layer(channel Channel) *Layer { return p.Instance(channel, 0) }

// Instance opens a channel for connections to one instance of what it is for.
func (p *Port) Instance(channel Channel, instance uint64) *Layer {
	l := &Layer{listen.NewHanded(nil), p, channel, instance}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.channels[channel] != nil {
		panic(fmt.Sprintf("mux: channel %d is opened twice", channel))
	}
	p.channels[channel] = l
	return l
}

// Close closes the channel. Connections that were accepted stay open.
func (l *Layer) Close() error {
	err := l.Handed.Close()
	l.port.mu.Lock()
	defer l.port.mu.Unlock()
	if l.port.channels[l.channel] == l {
		delete(l.port.channels, l.channel)
	}
	return err
}

// Addr implements net.Listener.
func (l *Layer) Addr() net.Addr { return l.port.Addr() }

// Dial opens a connection to the same channel of another node, if that has this instance of it.
func (l *Layer) Dial(node string, instance uint64, timeout time.Duration) (net.Conn, error) {
	return l.port.dial(node, l.channel, instance, timeout)
}
