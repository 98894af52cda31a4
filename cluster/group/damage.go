package group

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// Raft-wal takes whatever it cannot read in the last file of a log for a write that was not
// completed, and cuts the log there. If a disk has damaged what was stored before, the replica
// would vote without entries that it has agreed to. But an incomplete write is the last one: if a
// complete one follows, the disk has failed.

// The format of raft-wal: a header, then frames. A frame has a type, three bytes that are zero, and
// the length of its payload, which is padded to eight bytes; a commit has the checksum of all that
// was written with it instead.
const (
	segmentHeader = 32
	frameHeader   = 8
	frameEntry    = 1
	frameIndex    = 2
	frameCommit   = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkLog returns an error if a file of a log is damaged elsewhere than in its last write.
func checkLog(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, file := range files {
		name := filepath.Join(folder, file.Name())
		if filepath.Ext(name) != ".wal" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if at, damaged := damage(b); damaged {
			return fmt.Errorf("%s is damaged after byte %d, which no crash can cause: the disk may be failing. Remove "+
				"the folder of the group, and the node gets it from the others", name, at)
		}
	}
	return nil
}

// damage returns where the complete writes at the beginning of a file of the log end, and whether
// another complete one follows what is there.
func damage(b []byte) (at int, damaged bool) {
	for next := segmentHeader; ; {
		frame, size, ok := frameAt(b, next)
		if !ok {
			break
		}
		if frame == frameCommit {
			if crc32.Checksum(b[at:next], castagnoli) != binary.LittleEndian.Uint32(b[next+4:]) {
				break
			}
			at = next + frameHeader
		}
		next += size
	}
	return at, hasWrite(b[at:])
}

// frameAt returns the type and the size of the frame at an offset, with its padding. ok is false if
// there is none.
func frameAt(b []byte, at int) (frame byte, size int, ok bool) {
	if at+frameHeader > len(b) || b[at+1]|b[at+2]|b[at+3] != 0 {
		return 0, 0, false
	}
	size = frameHeader
	switch frame = b[at]; frame {
	case frameCommit:
	case frameEntry, frameIndex:
		payload := int(binary.LittleEndian.Uint32(b[at+4:]))
		size += (payload + frameHeader - 1) / frameHeader * frameHeader
	default:
		return 0, 0, false
	}
	return frame, size, at+size <= len(b)
}

// mostBegins is how many places a write may have begun at that are tried at the same time: one for
// each of its entries.
const mostBegins = 256

// hasWrite reports whether a complete write is somewhere in b: a commit with the checksum of what
// is before it, from the beginning of a frame.
func hasWrite(b []byte) bool {
	used := len(bytes.TrimRight(b, "\x00")) + frameHeader
	var sums []uint32 // from each of the places to the present one
	for at := 0; at+frameHeader <= min(used, len(b)); at += frameHeader {
		switch frame, _, ok := frameAt(b, at); {
		case !ok:
		case frame == frameCommit:
			for _, sum := range sums {
				if sum == binary.LittleEndian.Uint32(b[at+4:]) {
					return true
				}
			}
		default:
			if len(sums) == mostBegins {
				sums = sums[1:]
			}
			sums = append(sums, 0)
		}
		for i := range sums {
			sums[i] = crc32.Update(sums[i], castagnoli, b[at:at+frameHeader])
		}
	}
	return false
}
