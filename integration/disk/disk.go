//go:build linux

package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Disk is the disk of a process. The zero Disk has no faults.
type Disk struct {
	mu    sync.Mutex
	delay time.Duration
	hung  chan struct{} // closed when the disk no longer hangs; nil: it does not
}

// Argument is the first argument by which this program is started as another one whose disk it
// delays. The rest of the arguments are for Run.
const Argument = "-on-disk"

// diskCalls are the calls that wait for a disk.
var diskCalls = []uint32{
	unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_MSYNC, unix.SYS_FALLOCATE,
	unix.SYS_FTRUNCATE, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT,
}

// Slow has each call take so much longer.
func (d *Disk) Slow(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = delay
}

// Hang makes calls wait until the disk is released.
func (d *Disk) Hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung == nil {
		d.hung = make(chan struct{})
	}
}

// Release ends all faults.
func (d *Disk) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = 0
	if d.hung != nil {
		close(d.hung)
		d.hung = nil
	}
}

// wait returns when a call may begin. ended is closed when its process has ended.
func (d *Disk) wait(ended <-chan struct{}) {
	d.mu.Lock()
	delay, hung := d.delay, d.hung
	d.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if hung != nil {
		select {
		case <-hung:
		case <-ended:
		}
	}
}

// Possible returns an error if disks cannot be delayed on this machine.
func (d *Disk) Possible() error {
	cmd, started := d.Command(exec.Command("/bin/true"))
	err := started(cmd.Start())
	if cmd.Process != nil {
		cmd.Wait()
	}
	return err
}

// Command returns a command that runs another one on the disk. served has to be called when it was
// started.
func (d *Disk) Command(cmd *exec.Cmd) (*exec.Cmd, func(started error) error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return cmd, func(started error) error { return errors.Join(started, err) }
	}
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	helper := exec.Command("/proc/self/exe", append([]string{Argument, cmd.Path}, cmd.Args[1:]...)...)
	helper.ExtraFiles = []*os.File{theirs}
	return helper, func(started error) error {
		theirs.Close()
		defer unix.Close(pair[0])
		if started != nil {
			return started
		}
		listener, err := receiveFile(pair[0])
		if err != nil {
			return fmt.Errorf("the disk of a process cannot be delayed here: %w", err)
		}
		go d.serve(listener)
		return nil
	}
}

// serve answers the kernel until the process ends.
func (d *Disk) serve(listener int) {
	ended := make(chan struct{})
	defer unix.Close(listener)
	defer close(ended)
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return // no process has the filter any more
		}
		var call notification
		if control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)) != 0 {
			continue // it has ended meanwhile
		}
		go func() {
			d.wait(ended)
			answer := answer{id: call.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
		}()
	}
}

// notification and answer are struct seccomp_notif and seccomp_notif_resp of Linux.
type notification struct {
	id         uint64
	pid, flags uint32
	call       [64]byte
}

type answer struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

func control(fd int, request uintptr, argument unsafe.Pointer) syscall.Errno {
	_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return no
}

func receiveFile(socket int) (int, error) {
	// a program that ends without sending a file closes the socket
	var text, control [64]byte
	_, size, _, _, err := unix.Recvmsg(socket, text[:], control[:], unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) == 0 {
		return 0, errors.Join(err, errors.New("no filter was set"))
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return files[0], nil
}

// Run sets the filter, sends its file to the program that has started this one, and becomes the
// program that args name. It returns only if that fails.
func Run(args []string) error {
	runtime.LockOSThread() // the filter is that of the thread
	const socket = 3       // the first of ExtraFiles
	unix.CloseOnExec(socket)
	number := unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0} // of the call
	filter := []unix.SockFilter{number}
	for i, call := range diskCalls {
		filter = append(filter, unix.SockFilter{
			Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(diskCalls) - i),
		})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	listener, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		uintptr(unsafe.Pointer(&program)))
	if no != 0 {
		return no
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	return unix.Exec(args[0], args, os.Environ())
}
