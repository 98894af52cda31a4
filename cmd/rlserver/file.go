package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// readRegular reads a regular file of at most so many bytes. Anything else under that name is refused and never
// waited for, as opening a named pipe would.
func readRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Unwrap(err))
	}
	if err := checkRegular(path, info, most); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil { // it may be another file by now
		return nil, err
	}
	if err := checkRegular(path, info, most); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = tooLarge(path, most)
	}
	return text, err
}

func checkRegular(path string, info fs.FileInfo, most int64) error {
	if info.Mode().IsRegular() {
		if info.Size() > most {
			return tooLarge(path, most)
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

func tooLarge(path string, most int64) error {
	return fmt.Errorf("%s is too large: at most %d bytes are read", path, most)
}
