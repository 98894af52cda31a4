package persistence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// fileSystem is the part of a file system that a store uses, within one directory: names have no
// path. Tests use one that fails, tears writes and loses what was not synced.
type fileSystem interface {
	// list returns the names of all files.
	list() ([]string, error)
	// create creates a file for writing, which must not exist. Its name is durable once syncDir has
	// returned.
	create(name string) (outFile, error)
	open(name string) (inFile, error)
	rename(from, to string) error
	remove(name string) error
	// truncate shortens a file, and returns when that is durable.
	truncate(name string, size int64) error
	// syncDir makes the creation, renaming and removal of files durable.
	syncDir() error
}

type outFile interface {
	io.Writer
	// Sync returns when everything written is durable.
	Sync() error
	// cut shortens the file. The next write goes to its new end.
	cut(size int64) error
	// inPlace returns an error if the file is no longer where it was created.
	inPlace() error
	io.Closer
}

type inFile interface {
	io.Reader
	size() (int64, error)
	io.Closer
}

// directory is a fileSystem in a directory of the operating system.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

func (d directory) list() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d directory) create(name string) (outFile, error) {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err
	}
	return writtenFile{f}, nil
}

type writtenFile struct{ *os.File }

func (f writtenFile) cut(size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

func (f writtenFile) inPlace() error {
	there, err := os.Stat(f.Name())
	if err != nil {
		return err
	}
	if own, err := f.Stat(); err == nil && !os.SameFile(own, there) {
		return fmt.Errorf("%s is another file now", f.Name())
	}
	return nil
}

type readFile struct{ *os.File }

func (f readFile) size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d directory) open(name string) (inFile, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	return readFile{f}, nil
}

func (d directory) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d directory) remove(name string) error { return os.Remove(d.path(name)) }

func (d directory) truncate(name string, size int64) error {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (d directory) syncDir() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeDirectory creates a directory and its parents, durably, unless they exist.
func makeDirectory(path string) error {
	if isDirectory(path) {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := makeDirectory(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o750); err != nil && !isDirectory(path) {
		return err
	}
	return directory(above).syncDir()
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lockName is the file that the server using a directory keeps locked. It contains the process id.
const lockName = "lock"

// lock locks the directory for this process until the file is closed.
func (d directory) lock() (*os.File, error) {
	f, err := os.OpenFile(d.path(lockName), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s cannot be locked: %w", f.Name(), err)
		}
		var pid [20]byte
		n, _ := f.ReadAt(pid[:], 0)
		return nil, fmt.Errorf("the data directory %s is in use by process %s", string(d),
			strings.TrimSpace(string(pid[:n])))
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockedDirectory is a directory that this process has locked. It fails if another one has taken
// its place, which may be in use by another server.
type lockedDirectory struct {
	directory
	place   os.FileInfo   // of the directory
	file    *os.File      // the lock
	answers *atomic.Int64 // of the disk
}

func (d lockedDirectory) inPlace() error {
	err := (writtenFile{d.file}).inPlace()
	if errors.Is(err, fs.ErrNotExist) { // another server would have made a lock of its own
		if now, gone := os.Stat(string(d.directory)); gone == nil && os.SameFile(now, d.place) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("the data directory %s was replaced or removed: %w", d.directory, err)
	}
	d.answers.Add(1)
	return nil
}

func (d lockedDirectory) list() ([]string, error) {
	if err := d.inPlace(); err != nil {
		return nil, err
	}
	return d.directory.list()
}

func (d lockedDirectory) create(name string) (outFile, error) {
	if err := d.inPlace(); err != nil {
		return nil, err
	}
	f, err := d.directory.create(name)
	return countedFile{f, d.answers}, err
}

// countedFile counts what the disk has done.
type countedFile struct {
	outFile
	answers *atomic.Int64
}

func (f countedFile) Write(p []byte) (int, error) {
	defer f.answers.Add(1)
	return f.outFile.Write(p)
}

func (f countedFile) Sync() error {
	defer f.answers.Add(1)
	return f.outFile.Sync()
}

func (d lockedDirectory) rename(from, to string) error {
	if err := d.inPlace(); err != nil {
		return err
	}
	return d.directory.rename(from, to)
}

func (d lockedDirectory) remove(name string) error {
	if err := d.inPlace(); err != nil {
		return err
	}
	return d.directory.remove(name)
}

func (d lockedDirectory) truncate(name string, size int64) error {
	if err := d.inPlace(); err != nil {
		return err
	}
	return d.directory.truncate(name, size)
}
