package persistence

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	errDisk  = errors.New("the disk fails")
	errPower = errors.New("the power has failed")
)

// disk is a file system in memory that can fail at one operation, and that loses what was not
// synced when the power fails.
type disk struct {
	mu      sync.Mutex
	names   map[string]*inode
	durable map[string]*inode // the names as of the last syncDir
	pending []dirChange       // directory changes since then
	ops     int               // number of operations that change something
	history []string          // the operations
	// duration of a write or a sync, by extension of the file's name
	slow    map[string]time.Duration
	why     error // error of the failing operation; nil: errDisk
	failAt  int   // the operation that fails; 0: none
	fullAt  int   // the operation from which on the disk is full
	fullFor int   // number of writes and new files that fail
	mode    failure
	dark    bool // the power has failed
}

type inode struct {
	data   []byte
	synced int // bytes that survive a crash
}

type dirChange struct {
	name    string
	file    *inode // nil: removed
	removed string // at the same time
}

// failure is how an operation fails.
type failure int

const (
	failOnce failure = iota // it returns an error and does nothing
	failTorn                // it returns an error and does half
	powerCut                // the power fails when half is done
)

var failures = map[failure]string{
	failOnce: "fails once",
	failTorn: "is torn",
	powerCut: "is interrupted by a power failure",
}

func newDisk() *disk {
	return &disk{names: map[string]*inode{}, durable: map[string]*inode{}, slow: map[string]time.Duration{}}
}

// operate counts an operation and returns how much of it is done: all (1), none or half.
func (d *disk) operate(what string) (share float64, err error) {
	if d.dark {
		return 0, errPower
	}
	d.history = append(d.history, what)
	d.ops++
	takesSpace := strings.HasPrefix(what, "write ") || strings.HasPrefix(what, "create ")
	if takesSpace && d.fullFor > 0 && d.ops >= d.fullAt {
		d.fullFor--
		if d.mode == failTorn {
			return 0.5, errFull
		}
		return 0, errFull
	}
	if d.ops != d.failAt {
		return 1, nil
	}
	switch d.mode {
	case failTorn:
		return 0.5, cmp.Or(d.why, errDisk)
	case powerCut:
		d.dark = true
		return 0.5, errPower
	}
	return 0, cmp.Or(d.why, errDisk)
}

// operations returns the operations so far.
func (d *disk) operations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.history)
}

const (
	ofLog       = ".log"
	ofSnapshots = temporary
)

// slowDown makes writes and syncs of files with an extension take this long from now on.
func (d *disk) slowDown(of string, to time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow[of] = to
}

// wait sleeps as long as a write or a sync takes.
func (d *disk) wait(name string) {
	d.mu.Lock()
	slow := d.slow[filepath.Ext(name)]
	d.mu.Unlock()
	time.Sleep(slow)
}

// fail makes the next operation fail.
func (d *disk) fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = d.ops + 1
}

func (d *disk) list() (names []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (d *disk) change(c dirChange) {
	c.apply(d.names)
	d.pending = append(d.pending, c)
}

func (c dirChange) apply(names map[string]*inode) {
	if c.file == nil {
		delete(names, c.name)
	} else {
		names[c.name] = c.file
	}
	delete(names, c.removed)
}

func (d *disk) create(name string) (outFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.operate("create " + name); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, os.ErrExist
	}
	file := &inode{}
	d.change(dirChange{name: name, file: file})
	return &diskFile{d, name, file}, nil
}

func (d *disk) open(name string) (inFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := d.names[name]
	if file == nil {
		return nil, os.ErrNotExist
	}
	return memoryFile{bytes.NewReader(slices.Clone(file.data))}, nil
}

type memoryFile struct{ *bytes.Reader }

func (f memoryFile) size() (int64, error) { return f.Reader.Size(), nil }
func (f memoryFile) Close() error         { return nil }

func (d *disk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.operate("rename " + from + " " + to); err != nil {
		return err
	}
	d.change(dirChange{to, d.names[from], from})
	return nil
}

func (d *disk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.operate("remove " + name); err != nil {
		return err
	}
	if d.names[name] == nil {
		return os.ErrNotExist
	}
	d.change(dirChange{name: name})
	return nil
}

func (d *disk) truncate(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.operate("truncate " + name); err != nil {
		return err
	}
	file := d.names[name]
	file.data = file.data[:size:size]
	file.synced = len(file.data)
	return nil
}

func (d *disk) syncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.operate("sync directory"); err != nil {
		return err
	}
	for _, c := range d.pending {
		c.apply(d.durable)
	}
	d.pending = nil
	return nil
}

type diskFile struct {
	d    *disk
	name string
	file *inode
}

func (f *diskFile) Write(p []byte) (int, error) {
	f.d.wait(f.name)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	share, err := f.d.operate("write " + f.name)
	n := int(float64(len(p)) * share)
	f.file.data = append(f.file.data, p[:n]...)
	return n, err
}

func (f *diskFile) Sync() error {
	f.d.wait(f.name)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	share, err := f.d.operate("sync " + f.name)
	f.file.synced += int(float64(len(f.file.data)-f.file.synced) * share)
	return err
}

func (f *diskFile) cut(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.operate("cut " + f.name); err != nil {
		return err
	}
	f.file.data = f.file.data[:size:size]
	f.file.synced = min(f.file.synced, int(size))
	return nil
}

func (f *diskFile) inPlace() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.names[f.name] != f.file {
		return os.ErrNotExist
	}
	return nil
}

func (f *diskFile) Close() error { return nil }

// crash returns the disk as it is after a power failure: a random part of the names and bytes that
// were not synced is lost, and a sector may be zeros.
func (d *disk) crash(r *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := maps.Clone(d.durable)
	for _, c := range d.pending {
		if r.IntN(2) == 0 {
			c.apply(names)
		}
	}
	found := newDisk()
	for name, file := range names {
		data := slices.Clone(file.data[:file.synced+r.IntN(len(file.data)-file.synced+1)])
		if loose := data[file.synced:]; len(loose) > 0 && r.IntN(2) == 0 {
			begin := r.IntN(len(loose))
			clear(loose[begin : begin+r.IntN(len(loose)-begin)+1]) // a sector that was not written
		}
		copied := &inode{data: data, synced: len(data)}
		found.names[name], found.durable[name] = copied, copied
	}
	return found
}

// killed returns the disk as the next process finds it after the writer was killed: unsynced data
// is there.
func (d *disk) killed() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	copies := map[*inode]*inode{nil: nil}
	copyOf := func(file *inode) *inode {
		if _, ok := copies[file]; !ok {
			copies[file] = &inode{data: slices.Clone(file.data), synced: file.synced}
		}
		return copies[file]
	}
	found := newDisk()
	for name, file := range d.names {
		found.names[name] = copyOf(file)
	}
	for name, file := range d.durable {
		found.durable[name] = copyOf(file)
	}
	for _, c := range d.pending {
		found.pending = append(found.pending, dirChange{c.name, copyOf(c.file), c.removed})
	}
	return found
}

var _ io.Writer = (*diskFile)(nil)
