package wire

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// The sockets of clients are read and written by raw system calls, as they do not block. Around
// others, the runtime lets another thread take the processor, which costs more than what a short
// call takes: a tenth of a plain call, and more if the thread is really changed.

// receiver reads from a socket. Only the connection's goroutine may use it.
type receiver struct {
	try   func(fd uintptr) bool // tryReceive, bound once to avoid an allocation
	space []byte                // the input of tryReceive
	n     int                   // its result
	errno syscall.Errno
}

// readSocket reads from the socket, below TLS.
func (g *Guard) readSocket(p []byte) (n int, err error) {
	if g.sender.raw == nil || len(p) == 0 || len(p) > maxRaw {
		return g.Conn.Read(p)
	}
	r := &g.receiver
	r.space, r.n, r.errno = p, 0, 0
	err = g.sender.raw.Read(r.try)
	r.space = nil
	switch {
	case err != nil:
		return 0, err
	case r.errno != 0:
		at := g.LocalAddr()
		return 0, &net.OpError{Op: "read", Net: at.Network(), Source: at, Addr: g.RemoteAddr(),
			Err: os.NewSyscallError("recvfrom", r.errno)}
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}

// tryReceive reads what has arrived. It returns false if that is nothing: RawConn.Read then waits.
func (r *receiver) tryReceive(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&r.space[0])),
			uintptr(len(r.space)), syscall.MSG_DONTWAIT, 0, 0)
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			r.n = int(n)
		default:
			r.errno = errno
		}
		return true
	}
}

// writeSocket writes to a socket, which is not blocking, what it accepts. p is not empty.
func writeSocket(fd uintptr, p []byte) (n int, err error) {
	if len(p) > maxRaw {
		return syscall.Write(int(fd), p)
	}
	sent, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)),
		syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sent), nil
}
