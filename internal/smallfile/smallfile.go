// Package smallfile reads and writes small files, such as one with a password, whose paths
// operators configure. Reads are limited in size and never block. Writes replace a file atomically.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read reads a regular file of at most limit bytes. Other kinds of files are errors; opening a
// named pipe, for example, would block.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Unwrap(err))
	}
	if err := check(path, info, limit); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil { // the path may refer to another file now
		return nil, err
	}
	if err := check(path, info, limit); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = tooLarge(path, limit)
	}
	return text, err
}

func check(path string, info fs.FileInfo, limit int64) error {
	if info.Mode().IsRegular() {
		if info.Size() > limit {
			return tooLarge(path, limit)
		}
		return nil
	}
	kind := "something else"
	switch info.Mode().Type() &^ fs.ModeCharDevice {
	case fs.ModeDir:
		kind = "a directory"
	case fs.ModeNamedPipe:
		kind = "a named pipe"
	case fs.ModeSocket:
		kind = "a socket"
	case fs.ModeDevice:
		kind = "a device"
	}
	return fmt.Errorf("%s must be a regular file, but is %s", path, kind)
}

func tooLarge(path string, limit int64) error {
	return fmt.Errorf("%s is too large: at most %d bytes are read", path, limit)
}
