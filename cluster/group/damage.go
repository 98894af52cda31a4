package group

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Raft-wal takes whatever it cannot read in the last file of a log for a write that was not
// completed, and cuts the log there. If a disk has damaged what was stored before, the replica
// would vote without entries that it has acknowledged. But an incomplete write is the last one: if
// a complete one follows, the disk has failed.

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

// checkLog returns an error if a file of an open log is damaged elsewhere than in the last write of
// the log. The files before the last one are sealed by an index.
func checkLog(folder string) error {
	names, last, err := logFiles(folder)
	for _, name := range names {
		if err == nil {
			err = checkFile(name, name == last)
		}
	}
	return err
}

// logFiles returns the files of a log, and the one that was made last.
func logFiles(folder string) (names []string, last string, err error) {
	files, err := os.ReadDir(folder)
	newest := ""
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".wal"); ok {
			names = append(names, filepath.Join(folder, file.Name()))
			if _, id, _ := strings.Cut(name, "-"); id >= newest { // hexadecimal, of one length
				newest, last = id, names[len(names)-1]
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, last, err
}

func checkFile(name string, last bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := readWrites(f, info.Size())
	if err == nil && (found.damaged || !last && !found.sealed) {
		return fmt.Errorf("%s is damaged after byte %d, which no crash can cause: the disk may be failing. Remove "+
			"the folder of the group, and the node gets it from the others", name, found.end)
	}
	return err
}

// writes is what a file of a log has.
type writes struct {
	end     int64 // of the complete writes at its beginning
	sealed  bool  // the last one of them has an index
	damaged bool  // another complete write follows what is there
}

// readWrites reads a file of a log.
func readWrites(f io.ReaderAt, size int64) (found writes, err error) {
	s := scan{in: bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 64<<10)}
	index := false
	for length := segmentHeader; s.skip(length) == nil; {
		header, _ := s.in.Peek(frameHeader)
		frame, more, ok := frameOf(header)
		if frame == frameCommit {
			ok = s.sum == binary.LittleEndian.Uint32(header[4:])
		}
		if !ok {
			break
		}
		index, length = index || frame == frameIndex, more
		if frame == frameCommit {
			s.drop(frameHeader)
			found.end, found.sealed = s.at, index
			index, length, s.sum = false, 0, 0
		}
	}
	rest := io.NewSectionReader(f, found.end, size-found.end) // usually zeros, perhaps megabytes
	if _, err = io.Copy(zeros{}, rest); err != errNotZero {
		return found, err
	}
	b := make([]byte, size-found.end)
	_, err = f.ReadAt(b, found.end)
	found.damaged = err == nil && hasWrite(b)
	return found, err
}

// scan reads frames from the beginning of a file.
type scan struct {
	in  *bufio.Reader
	at  int64
	sum uint32 // of what was skipped
}

// skip reads n bytes; an error if there are fewer.
func (s *scan) skip(n int) error {
	for n > 0 {
		b, err := s.in.Peek(min(n, 4<<10))
		if err != nil {
			return err
		}
		s.sum = crc32.Update(s.sum, castagnoli, b)
		s.drop(len(b))
		n -= len(b)
	}
	return nil
}

// drop is skip for bytes that are not summed.
func (s *scan) drop(n int) {
	s.in.Discard(n)
	s.at += int64(n)
}

// zeros takes nothing but zeros.
type zeros struct{}

var errNotZero = errors.New("not zero")

var zeroBytes [64 << 10]byte

func (zeros) Write(b []byte) (int, error) {
	for piece := range slices.Chunk(b, len(zeroBytes)) {
		if !bytes.Equal(piece, zeroBytes[:len(piece)]) {
			return 0, errNotZero
		}
	}
	return len(b), nil
}

// frameOf returns the type of the frame that has a header, and its size with header and padding. ok
// is false if that is none.
func frameOf(header []byte) (frame byte, size int, ok bool) {
	if len(header) < frameHeader || header[1]|header[2]|header[3] != 0 {
		return 0, 0, false
	}
	switch header[0] {
	case frameCommit:
		return frameCommit, frameHeader, true
	case frameEntry, frameIndex:
		payload := int(binary.LittleEndian.Uint32(header[4:]))
		return header[0], frameHeader + (payload+frameHeader-1)/frameHeader*frameHeader, true
	}
	return 0, 0, false
}

// maxBegins is how many places a write may have begun at that are tried at the same time: one for
// each of its entries.
const maxBegins = 256

// hasWrite reports whether a complete write is somewhere in b, which begins with an incomplete one:
// a commit with the checksum of what is before it, from the beginning of a frame. What is in the
// payload of a frame does not count, as a client may have sent it.
func hasWrite(b []byte) bool {
	used := min(len(bytes.TrimRight(b, "\x00"))+frameHeader, len(b))
	var sums []uint32      // from each of the places to the present one
	next, chain := 0, true // the frame after the present one, while each follows the one before
	for at := 0; at+frameHeader <= used; at += frameHeader {
		frame, size, ok := frameOf(b[at:])
		ok = ok && at+size <= len(b) && (!chain || at == next)
		if chain && at == next {
			next, chain = at+size, ok
		}
		switch {
		case !ok:
		case frame == frameCommit:
			for _, sum := range sums {
				if sum == binary.LittleEndian.Uint32(b[at+4:]) {
					return true
				}
			}
		default:
			if len(sums) == maxBegins {
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
