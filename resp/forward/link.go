package forward

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rlserver/resp/wire"
)

// Control is the first word of a control message on a link, which has no reply:
//
//	Control user protocol no-touch link
//
// link is the name of the link. The following calls are those of a client that acts as the user,
// with RESP2 or RESP3, and with CLIENT NO-TOUCH if no-touch is 1. Control confirms that previous
// refusals were read. No command of clients has this name.
const Control = "\x00as"

// Unblock is the first word of a call that ends the wait of a call on a link. The reply is 1 or 0,
// as for CLIENT UNBLOCK:
//
//	Unblock link how
const Unblock = "\x00unblock"

// OnGroup is the first word of a call on all keys of a group of slots:
//
//	OnGroup group command [argument ...]
const OnGroup = "\x00on"

// Caller describes a client to the other node.
type Caller struct {
	User    string
	RESP3   bool
	NoTouch bool
}

func (c Caller) appendControl(b []byte, name string) []byte {
	protocol, noTouch := "2", "0"
	if c.RESP3 {
		protocol = "3"
	}
	if c.NoTouch {
		noTouch = "1"
	}
	return AppendCall(b, []string{Control, c.User, protocol, noTouch, name})
}

// ParseControl returns what a node tells another. ok is false if it is malformed.
func ParseControl(words [][]byte) (as Caller, link string, ok bool) {
	if len(words) != 5 || string(words[0]) != Control {
		return as, "", false
	}
	return Caller{
		User: string(words[1]), RESP3: string(words[2]) == "3", NoTouch: string(words[3]) == "1",
	}, string(words[4]), true
}

// AppendCall appends a call to a request.
func AppendCall[W string | []byte](b []byte, words []W) []byte {
	b = wire.AppendHeader(b, '*', int64(len(words)))
	for _, word := range words {
		b = wire.AppendHeader(b, '$', int64(len(word)))
		b = append(b, word...)
		b = append(b, "\r\n"...)
	}
	return b
}

// AppendExec appends a transaction of calls.
func AppendExec(b []byte, calls [][][]byte) []byte {
	b = append(b, "*1\r\n$5\r\nMULTI\r\n"...)
	for _, words := range calls {
		b = AppendCall(b, words)
	}
	return append(b, "*1\r\n$4\r\nEXEC\r\n"...)
}

// AppendOnGroup appends a call on all keys of a group.
func AppendOnGroup(b []byte, group int, words [][]byte) []byte {
	return AppendCall(b, slices.Concat([][]byte{[]byte(OnGroup), strconv.AppendInt(nil, int64(group), 10)}, words))
}

// link is a connection to another node. One goroutine uses it at a time.
type link struct {
	peer      *peer
	name      string // unique in the cluster, ends with the epoch
	epoch     string // of its calls, see Nodes
	conn      net.Conn
	in        *bufio.Reader
	as        Caller
	announced bool // as was sent, and no refusal was read since

	unread int // number of replies that were not read
	broken bool
	used   time.Time // when it was last returned

	client *Client       // the current user, or nil
	slice  time.Duration // interval between checks whether to wait for a reply any longer
}

const linkBuffer = 4 << 10 // bytes

func newLink(p *peer, conn net.Conn, epoch string, slice time.Duration) *link {
	l := &link{peer: p, conn: conn, epoch: epoch, slice: slice}
	l.rename()
	l.in = bufio.NewReaderSize(linkReader{l}, linkBuffer)
	return l
}

// rename gives the link a new name, which the next call announces. Each call that waits has a name
// of its own: Unblock may arrive when the call has ended and another client uses the link.
func (l *link) rename() {
	l.name, l.announced = strconv.FormatUint(rand.Uint64(), 36)+" "+l.epoch, false
}

// EpochOf returns the epoch of the calls on a link, by its name; "" if it has none.
func EpochOf(link string) string {
	_, epoch, _ := strings.Cut(link, " ")
	return epoch
}

// linkReader reads from a link until checkWait returns an error.
type linkReader struct{ l *link }

func (p linkReader) Read(b []byte) (int, error) {
	for {
		if err := p.l.conn.SetReadDeadline(time.Now().Add(p.l.slice)); err != nil {
			return 0, err
		}
		n, err := p.l.conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := p.l.client.checkWait(p.l); err != nil {
			return 0, err
		}
	}
}

// alive reports whether an idle link is still open, without waiting.
func (l *link) alive() bool {
	if l.in.Buffered() > 0 {
		return false // an idle link must not receive data
	}
	conn := l.conn
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var next [1]byte
		_, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		alive = err == syscall.EAGAIN || err == syscall.EINTR
	})
	return alive && err == nil
}

// announce sends Control, so that the other node runs the following calls for a caller.
func (l *link) announce(as Caller, within time.Duration) error {
	if l.announced && l.as == as {
		return nil
	}
	l.as, l.announced = as, true
	return l.send(as.appendControl(nil, l.name), within)
}

// send writes to the socket. Each piece has a timeout, as the other node reads all the time. It
// changes nothing in l.
func (l *link) send(b []byte, within time.Duration) error {
	const piece = 256 << 10
	for b := range slices.Chunk(b, piece) {
		l.conn.SetWriteDeadline(time.Now().Add(within))
		if _, err := l.conn.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// read appends the next reply to r. If refused is true, the call was not carried out and r has not
// changed.
func (l *link) read(r *wire.Reply) (refused bool, err error) {
	mark := len(r.B)
	if err := wire.CopyReply(r, l.in); err != nil {
		l.broken = true
		if !r.Truncated {
			r.B = r.B[:mark]
		}
		return false, err
	}
	l.unread--
	if !r.Truncated && isRefusal(r.B[mark:]) {
		l.announced = false
		r.B = r.B[:mark]
		return true, nil
	}
	return false, nil
}

// Refusal is the error with which a node refuses a call of another node, as it does not lead the
// slot. It is compared as a whole: the errors of scripts may begin like it.
const Refusal = "CLUSTERDOWN this node does not lead the slot now"

func isRefusal(reply []byte) bool { return string(reply) == "-"+Refusal+"\r\n" }
