//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// tear writes to the end of each log of a node what a write leaves behind that the machine did not
// complete: the beginning of an entry, without a commit. It returns how many logs it has torn.
func tear(dir string) (torn int, err error) {
	folders, err := filepath.Glob(filepath.Join(dir, "group-*", "log"))
	for _, folder := range folders {
		segments, _ := filepath.Glob(filepath.Join(folder, "*.wal"))
		if len(segments) == 0 {
			continue
		}
		slices.Sort(segments)
		if e := tearSegment(segments[len(segments)-1]); e != nil {
			err = errors.Join(err, e)
		} else {
			torn++
		}
	}
	return torn, err
}

// The format of raft-wal: a header, then frames, each with a header of a type, three bytes that are
// reserved, and a length (of a commit: a checksum), padded to eight bytes.
const (
	segmentHeader = 32
	frameHeader   = 8
	frameEntry    = 1
	frameCommit   = 3
)

func tearSegment(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	at := int64(segmentHeader)
	for {
		var header [frameHeader]byte
		if _, err := f.ReadAt(header[:], at); err != nil {
			return err
		}
		size := int64(0)
		switch header[0] {
		case 0:
			torn := make([]byte, frameHeader+100)
			torn[0] = frameEntry
			binary.LittleEndian.PutUint32(torn[4:], 300) // of which 100 are there
			for i := frameHeader; i < len(torn); i++ {
				torn[i] = byte(i)
			}
			_, err := f.WriteAt(torn, at)
			return err
		case frameCommit:
		default:
			size = int64(binary.LittleEndian.Uint32(header[4:]))
		}
		at += (frameHeader + size + frameHeader - 1) / frameHeader * frameHeader
	}
}
